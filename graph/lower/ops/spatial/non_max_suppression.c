// NonMaxSuppression: greedy, on the host, because the number of selected boxes determines the
// result's shape. The arithmetic is binary32, each step rounded once (NUMERICS.md).
#include "graph/lower/ops/spatial/spatial.h"

#include <math.h>
#include <stdlib.h>
#include "base/memory.h"

struct box {
    float x0, y0, x1, y1, area;
};

struct candidate {
    float score;
    int32_t index;
};

// Descending by score; equal scores by ascending index; NaN last.
static int by_score(const void *a, const void *b) {
    const struct candidate *x = a, *y = b;
    bool x_nan = isnan(x->score), y_nan = isnan(y->score);
    if (x_nan != y_nan) return x_nan ? 1 : -1;
    if (!x_nan && x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static struct box read_box(const float *p, bool centre) {
    struct box box;
    if (centre) {
        float half_width = p[2] / 2, half_height = p[3] / 2;
        box = (struct box){p[0] - half_width, p[1] - half_height, p[0] + half_width,
                           p[1] + half_height, 0};
    } else {
        bool x_swapped = p[1] >= p[3], y_swapped = p[0] >= p[2];
        box.x0 = x_swapped ? p[3] : p[1];
        box.x1 = x_swapped ? p[1] : p[3];
        box.y0 = y_swapped ? p[2] : p[0];
        box.y1 = y_swapped ? p[0] : p[2];
    }
    box.area = (box.x1 - box.x0) * (box.y1 - box.y0);
    return box;
}

// Returns whether the boxes overlap by more than the threshold. A comparison with NaN is false, so
// a box with a NaN among its numbers overlaps no other.
static bool overlap(const struct box *a, const struct box *b, float threshold) {
    float x0 = a->x0 > b->x0 ? a->x0 : b->x0, x1 = a->x1 < b->x1 ? a->x1 : b->x1;
    float y0 = a->y0 > b->y0 ? a->y0 : b->y0, y1 = a->y1 < b->y1 ? a->y1 : b->y1;
    if (!(x1 > x0) || !(y1 > y0)) return false;
    float shared = (x1 - x0) * (y1 - y0);
    float both = (a->area + b->area) - shared;
    if (!(shared > 0) || !(a->area > 0) || !(b->area > 0) || !(both > 0)) return false;
    return shared / both > threshold;
}

struct settings {
    bool centre, has_score_threshold;
    int64_t most; // maximum number of boxes per class
    float iou_threshold, score_threshold;
};

static enum ree_status read_settings(struct ree_lower *lower, struct ree_view *const *in,
                                     struct settings *s) {
    struct ree_view *most = ree_rule_input(lower, in, 2), *iou = ree_rule_input(lower, in, 3);
    struct ree_view *score = ree_rule_input(lower, in, 4);
    int64_t centre = ree_rule_int(lower, "center_point_box", 0);
    *s = (struct settings){.centre = centre == 1, .has_score_threshold = score != NULL};
    if (centre != 0 && centre != 1)
        return ree_lower_fail(lower, REE_INVALID, "center_point_box is %lld, expected 0 or 1",
                              (long long)centre);
    if (most) REE_TRY(ree_data_int(lower, most, "max_output_boxes_per_class", &s->most));
    if (iou) REE_TRY(ree_lower_host_float(lower, iou, "iou_threshold", &s->iou_threshold));
    if (score) REE_TRY(ree_lower_host_float(lower, score, "score_threshold", &s->score_threshold));
    return REE_OK;
}

// Selects the boxes of one class, best first, into `kept` and their indices into out_kept. Returns
// their number. `candidates` is scratch space for n entries.
static int64_t select_class(const struct settings *s, int64_t n, const struct box *boxes,
                            const float *scores, struct candidate *candidates, struct box *kept,
                            int32_t *out_kept) {
    int64_t n_candidates = 0, n_kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (!s->has_score_threshold || scores[i] > s->score_threshold)
            candidates[n_candidates++] = (struct candidate){scores[i], (int32_t)i};
    if (n_candidates) qsort(candidates, (size_t)n_candidates, sizeof *candidates, by_score);
    for (int64_t i = 0; i < n_candidates && n_kept < s->most; i++) {
        struct box box = boxes[candidates[i].index];
        bool keep = true;
        for (int64_t k = 0; keep && k < n_kept; k++)
            keep = !overlap(&box, &kept[k], s->iou_threshold);
        if (!keep) continue;
        kept[n_kept] = box;
        out_kept[n_kept++] = candidates[i].index;
    }
    return n_kept;
}

enum ree_status ree_lower_op_non_max_suppression(struct ree_lower *lower,
                                                 struct ree_view *const *in,
                                                 struct ree_view **out) {
    struct ree_view *boxes = in[0], *scores = in[1];
    char a[128], b[128];
    bool fits = boxes->dtype == REE_F32 && scores->dtype == REE_F32 && boxes->rank == 3 &&
                scores->rank == 3 && boxes->dims[2] == 4 && boxes->dims[0] == scores->dims[0] &&
                boxes->dims[1] == scores->dims[2];
    if (!fits)
        return ree_lower_fail(lower, REE_INVALID,
                              "boxes are %s and scores %s, expected float32[N,n,4] and "
                              "float32[N,classes,n]",
                              ree_view_text(boxes, a, sizeof a),
                              ree_view_text(scores, b, sizeof b));
    struct settings s;
    REE_TRY(read_settings(lower, in, &s));
    int64_t batch = scores->dims[0], classes = scores->dims[1], n = scores->dims[2];
    const void *box_bytes, *score_bytes;
    REE_TRY(ree_lower_host(lower, boxes, &box_bytes));
    REE_TRY(ree_lower_host(lower, scores, &score_bytes));
    const float *box_data = box_bytes, *score_data = score_bytes;

    int64_t n_rows = 0, capacity = 0, *rows = NULL;
    size_t count = (size_t)n + 1;
    struct box *all = ree_arena_alloc_array(lower->arena, count, sizeof *all);
    struct box *kept = ree_arena_alloc_array(lower->arena, count, sizeof *kept);
    struct candidate *candidates = ree_arena_alloc_array(lower->arena, count, sizeof *candidates);
    int32_t *kept_index = ree_arena_alloc_array(lower->arena, count, sizeof *kept_index);
    if (!all || !kept || !candidates || !kept_index) goto no_memory;
    for (int64_t at = 0; n && at < batch * classes; at++) {
        if (at % classes == 0)
            for (int64_t i = 0; i < n; i++)
                all[i] = read_box(box_data + (at / classes * n + i) * 4, s.centre);
        int64_t found = select_class(&s, n, all, score_data + at * n, candidates, kept, kept_index);
        if (n_rows + found > capacity) {
            capacity = (n_rows + found) * 2;
            int64_t *grown = ree_realloc(rows, (size_t)capacity * 3 * sizeof *rows);
            if (!grown) goto no_memory;
            rows = grown;
        }
        for (int64_t k = 0; k < found; k++, n_rows++) {
            rows[n_rows * 3] = at / classes;
            rows[n_rows * 3 + 1] = at % classes;
            rows[n_rows * 3 + 2] = kept_index[k];
        }
    }
    enum ree_status status =
        ree_lower_literal(lower, REE_I64, 2, (int64_t[]){n_rows, 3}, rows, &out[0]);
    ree_free(rows);
    return status;
no_memory:
    ree_free(rows);
    return ree_lower_no_memory(lower);
}
