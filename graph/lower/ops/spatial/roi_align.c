// RoiAlign: bilinear samples in each bin of each region; the result is their average or maximum.
//
// The positions of the samples are computed on the device. The number of samples is fixed by the
// model, or (sampling_ratio = 0) differs between regions. In the second case the host reads the
// largest number, and regions with fewer samples are padded: with samples of weight 0 for the
// average, with repetitions of the last sample for the maximum.
#include "graph/lower/ops/spatial/roi.h"

#include <string.h>

// The place of a sample outside the plane. The sum of two of these, or of one and a valid row or
// place, is negative.
#define OUTSIDE (-(INT32_C(1) << 29))
// The first row for a batch index out of range. It is beyond every row, so that the gather fails,
// also if one or two OUTSIDE are added. Rows and places are below 2^29, so no sum overflows.
#define BAD_BATCH (INT32_C(3) << 29)
#define MAX_SAMPLES (INT64_C(1) << 22)

struct roi_align {
    bool max, half_pixel;
    int64_t pooled[2]; // height, width
    int64_t sampling_ratio;
    float scale;
    int64_t n_rois, n_samples; // n_samples: per bin, the maximum over all regions
    int64_t sizes[2];          // of x
    // Per region (n_rois, 1, 1, 1):
    struct ree_view *start[2], *bin[2]; // float32
    // i32: samples along each axis of a bin; NULL if fixed
    struct ree_view *grid[2];
};

static enum ree_status read_attributes(struct ree_lower *lower, struct roi_align *r) {
    const struct ree_node *node = lower->node;
    const char *mode = ree_rule_string(lower, "mode", "avg");
    const char *shift = ree_rule_string(lower, "coordinate_transformation_mode",
                                        node->opset < 16 ? "output_half_pixel" : "half_pixel");
    r->max = !strcmp(mode, "max");
    r->half_pixel = !strcmp(shift, "half_pixel");
    r->pooled[0] = ree_rule_int(lower, "output_height", 1);
    r->pooled[1] = ree_rule_int(lower, "output_width", 1);
    r->sampling_ratio = ree_rule_int(lower, "sampling_ratio", 0);
    r->scale = ree_rule_float(lower, "spatial_scale", 1);
    if (!r->max && strcmp(mode, "avg"))
        return ree_lower_fail(lower, REE_INVALID, "mode is '%s', expected avg or max", mode);
    if (!r->half_pixel && strcmp(shift, "output_half_pixel"))
        return ree_lower_fail(lower, REE_INVALID,
                              "coordinate_transformation_mode is '%s', expected half_pixel or "
                              "output_half_pixel",
                              shift);
    for (int i = 0; i < 2; i++)
        if (r->pooled[i] < 1 || r->pooled[i] > REE_SAMPLE_MAX_SIZE)
            return ree_lower_fail(lower, REE_INVALID, "output_%s is %lld, expected 1 or more",
                                  i ? "width" : "height", (long long)r->pooled[i]);
    if (r->sampling_ratio < 0 || r->sampling_ratio > 2048)
        return ree_lower_fail(lower, REE_INVALID, "sampling_ratio is %lld, expected 0 to 2048",
                              (long long)r->sampling_ratio);
    return REE_OK;
}

// Computes start, bin and (if sampling_ratio is 0) grid along one axis (0: y, 1: x).
static enum ree_status measure(struct ree_lower *lower, struct roi_align *r, struct ree_view *rois,
                               int axis) {
    int64_t dims[4] = {r->n_rois, 1, 1, 1};
    struct ree_view *ends[2];
    struct ree_expr_builder b;
    for (int i = 0; i < 2; i++) {
        int64_t column = (axis ? 0 : 1) + 2 * i;
        REE_TRY(ree_lower_slice(lower, rois, 1, column, 1, 1, &ends[i]));
        REE_TRY(ree_lower_reshape(lower, ends[i], 4, dims, &ends[i]));
        ree_expr_init(&b, lower, 4, dims);
        int value = ree_expr_op2(&b, REE_MAP_mul_f32, ree_expr_tensor(&b, ends[i]),
                                 ree_expr_f32(&b, r->scale));
        if (r->half_pixel) value = ree_expr_op2(&b, REE_MAP_sub_f32, value, ree_expr_f32(&b, 0.5f));
        REE_TRY(ree_lower_map(&b, value, REE_F32, &ends[i]));
    }
    r->start[axis] = ends[0];
    ree_expr_init(&b, lower, 4, dims);
    int start = ree_expr_tensor(&b, ends[0]), end = ree_expr_tensor(&b, ends[1]);
    int size = ree_expr_op2(&b, REE_MAP_sub_f32, end, start);
    if (!r->half_pixel) size = ree_expr_op2(&b, REE_MAP_max_f32, size, ree_expr_f32(&b, 1));
    int bin = ree_expr_op2(&b, REE_MAP_div_f32, size, ree_expr_f32(&b, (float)r->pooled[axis]));
    REE_TRY(ree_lower_map(&b, bin, REE_F32, &r->bin[axis]));
    if (r->sampling_ratio) return REE_OK;
    ree_expr_init(&b, lower, 4, dims);
    int up = ree_expr_op1(&b, REE_MAP_ceil_f32, ree_expr_tensor(&b, r->bin[axis]));
    int grid = ree_expr_op1(&b, REE_MAP_f32_to_i32, up);
    grid = ree_expr_op2(&b, REE_MAP_max_i32, grid, ree_expr_i32(&b, 0));
    return ree_lower_map(&b, grid, REE_I32, &r->grid[axis]);
}

// Sets n_samples to the largest number of samples in a bin of any region.
static enum ree_status count_samples(struct ree_lower *lower, struct roi_align *r) {
    r->n_samples = r->sampling_ratio * r->sampling_ratio;
    if (r->sampling_ratio) return REE_OK;
    const int64_t *grid[2];
    size_t n;
    for (int i = 0; i < 2; i++)
        REE_TRY(ree_lower_host_ints(lower, r->grid[i], "rois", &grid[i], &n));
    for (size_t i = 0; i < n; i++) {
        int64_t samples = grid[0][i] * grid[1][i];
        if (samples > MAX_SAMPLES)
            return ree_lower_fail(lower, REE_UNSUPPORTED,
                                  "region %zu requires %lld x %lld samples in each bin", i,
                                  (long long)grid[0][i], (long long)grid[1][i]);
        if (samples > r->n_samples) r->n_samples = samples;
    }
    return REE_OK;
}

// Sets *out to the coordinates of the samples along one axis: (n_rois, bins, samples, 1). A sample
// that the region does not have gets -2, which is outside the plane.
static enum ree_status sample_coordinates(struct ree_lower *lower, const struct roi_align *r,
                                          int axis, struct ree_view **out) {
    int64_t dims[4] = {r->n_rois, r->pooled[axis], r->n_samples, 1};
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 4, dims);
    int p = ree_expr_iota(&b, REE_I32, 0, (int64_t[]){0, 1, 0, 0});
    int s = ree_expr_iota(&b, REE_I32, 0, (int64_t[]){0, 0, 1, 0}), zero = ree_expr_i32(&b, 0);
    int ratio = ree_expr_i32(&b, (int32_t)r->sampling_ratio), there = 0;
    int grid_x = r->grid[1] ? ree_expr_tensor(&b, r->grid[1]) : ratio, grid = grid_x;
    if (r->grid[0]) {
        int grid_y = ree_expr_tensor(&b, r->grid[0]);
        int count = ree_expr_op2(&b, REE_MAP_mul_i32, grid_x, grid_y);
        // Repeat the last sample, which does not change the maximum.
        if (r->max) {
            int last = ree_expr_op2(&b, REE_MAP_sub_i32, count, ree_expr_i32(&b, 1));
            s = ree_expr_op2(&b, REE_MAP_min_i32, s, last);
            s = ree_expr_op2(&b, REE_MAP_max_i32, s, zero);
        }
        there = ree_expr_op2(&b, REE_MAP_lt_i32, s, count);
        if (axis == 0) grid = grid_y;
    }
    int i = ree_expr_op2(&b, axis ? REE_MAP_mod_i32 : REE_MAP_div_i32, s, grid_x);
    int start = ree_expr_tensor(&b, r->start[axis]), bin = ree_expr_tensor(&b, r->bin[axis]);
    p = ree_expr_op1(&b, REE_MAP_i32_to_f32, p);
    i = ree_expr_op1(&b, REE_MAP_i32_to_f32, i);
    grid = ree_expr_op1(&b, REE_MAP_i32_to_f32, grid);
    int origin = ree_expr_op2(&b, REE_MAP_mul_f32, p, bin);
    origin = ree_expr_op2(&b, REE_MAP_add_f32, start, origin);
    int inner = ree_expr_op2(&b, REE_MAP_add_f32, i, ree_expr_f32(&b, 0.5f));
    inner = ree_expr_op2(&b, REE_MAP_mul_f32, inner, bin);
    inner = ree_expr_op2(&b, REE_MAP_div_f32, inner, grid);
    int at = ree_expr_op2(&b, REE_MAP_add_f32, origin, inner);
    if (r->grid[0]) at = ree_expr_select(&b, REE_F32, there, at, ree_expr_f32(&b, -2));
    return ree_lower_map(&b, at, REE_F32, out);
}

// Returns whether a coordinate is on the plane or at most one element outside.
static int is_near(struct ree_expr_builder *b, int at, int64_t size) {
    int low = ree_expr_op2(b, REE_MAP_le_f32, ree_expr_f32(b, -1), at);
    int high = ree_expr_op2(b, REE_MAP_le_f32, at, ree_expr_f32(b, (float)size));
    return ree_expr_op2(b, REE_MAP_and_b32, low, high);
}

// Computes the two taps of each sample along an axis: places (times the stride, plus `base` if it
// is not NULL) and weights, each (n_rois, bins, samples, 2).
static enum ree_status sample_taps(struct ree_lower *lower, const struct roi_align *r, int axis,
                                   struct ree_view *base, struct ree_view **out_places,
                                   struct ree_view **out_weights) {
    struct ree_view *at;
    int64_t dims[4] = {r->n_rois, r->pooled[axis], r->n_samples, 2}, size = r->sizes[axis];
    float last = (float)(size - 1);
    REE_TRY(sample_coordinates(lower, r, axis, &at));
    for (int weights = 0; weights < 2; weights++) {
        struct ree_expr_builder b;
        ree_expr_init(&b, lower, 4, dims);
        int tap = ree_expr_iota(&b, REE_I32, 0, (int64_t[]){0, 0, 0, 1});
        int x = ree_expr_tensor(&b, at), near = is_near(&b, x, size);
        x = ree_expr_op2(&b, REE_MAP_max_f32, x, ree_expr_f32(&b, 0));
        x = ree_expr_op2(&b, REE_MAP_min_f32, x, ree_expr_f32(&b, last));
        int low = ree_expr_op1(&b, REE_MAP_floor_f32, x);
        if (weights) {
            int rest = ree_expr_op2(&b, REE_MAP_sub_f32, x, low);
            int other = ree_expr_op2(&b, REE_MAP_sub_f32, ree_expr_f32(&b, 1), rest);
            int weight = ree_expr_select(&b, REE_F32, tap, rest, other);
            weight = ree_expr_select(&b, REE_F32, near, weight, ree_expr_f32(&b, 0));
            REE_TRY(ree_lower_map(&b, weight, REE_F32, out_weights));
            continue;
        }
        int place = ree_expr_op1(&b, REE_MAP_f32_to_i32, low);
        place = ree_expr_op2(&b, REE_MAP_add_i32, place, tap);
        place = ree_expr_op2(&b, REE_MAP_min_i32, place, ree_expr_i32(&b, (int32_t)size - 1));
        if (axis == 0) {
            int width = ree_expr_i32(&b, (int32_t)r->sizes[1]);
            place = ree_expr_op2(&b, REE_MAP_mul_i32, place, width);
        }
        place = ree_expr_op3(&b, REE_MAP_select_b32, near, place, ree_expr_i32(&b, OUTSIDE));
        if (base) place = ree_expr_op2(&b, REE_MAP_add_i32, place, ree_expr_tensor(&b, base));
        REE_TRY(ree_lower_map(&b, place, REE_I32, out_places));
    }
    return REE_OK;
}

// Sets *out to the first row of each region's batch sample: i32 (n_rois, 1, 1, 1).
static enum ree_status first_rows(struct ree_lower *lower, const struct roi_align *r,
                                  struct ree_view *batch, int64_t n, struct ree_view **out) {
    int64_t dims[4] = {r->n_rois, 1, 1, 1};
    struct ree_expr_builder b;
    REE_TRY(ree_lower_cast(lower, batch, REE_I64, &batch));
    REE_TRY(ree_lower_reshape(lower, batch, 4, dims, &batch));
    ree_expr_init(&b, lower, 4, dims);
    int at = ree_expr_tensor(&b, batch);
    int low = ree_expr_op2(&b, REE_MAP_le_i64, ree_expr_i64(&b, 0), at);
    int high = ree_expr_op2(&b, REE_MAP_lt_i64, at, ree_expr_i64(&b, n));
    int row = ree_expr_op2(&b, REE_MAP_mul_i32, ree_expr_op1(&b, REE_MAP_i64_to_i32, at),
                           ree_expr_i32(&b, (int32_t)(r->sizes[0] * r->sizes[1])));
    row = ree_expr_op3(&b, REE_MAP_select_b32, ree_expr_op2(&b, REE_MAP_and_b32, low, high), row,
                       ree_expr_i32(&b, BAD_BATCH));
    return ree_lower_map(&b, row, REE_I32, out);
}

// Computes the rows and weights of all taps: (n_rois, height, width, samples, 2, 2); the last two
// dimensions are y and x. The taps of a sample outside the plane have weight 0 and the row of
// zeros.
static enum ree_status all_taps(struct ree_lower *lower, const struct roi_align *r,
                                struct ree_view *base, int64_t zero_row,
                                struct ree_view **out_places, struct ree_view **out_weights) {
    struct ree_view *places[2], *weights[2];
    struct ree_expr_builder b;
    int64_t dims[6] = {r->n_rois, r->pooled[0], r->pooled[1], r->n_samples, 2, 2};
    for (int i = 0; i < 2; i++) {
        int64_t seen[6] = {
            r->n_rois, i ? 1 : r->pooled[0], i ? r->pooled[1] : 1, r->n_samples, i ? 1 : 2,
            i ? 2 : 1};
        REE_TRY(sample_taps(lower, r, i, i ? NULL : base, &places[i], &weights[i]));
        REE_TRY(ree_lower_reshape(lower, places[i], 6, seen, &places[i]));
        REE_TRY(ree_lower_reshape(lower, weights[i], 6, seen, &weights[i]));
    }
    ree_expr_init(&b, lower, 6, dims);
    int y = ree_expr_tensor(&b, places[0]), x = ree_expr_tensor(&b, places[1]);
    int row = ree_expr_op2(&b, REE_MAP_add_i32, y, x);
    int nowhere = ree_expr_op2(&b, REE_MAP_lt_i32, row, ree_expr_i32(&b, 0));
    int zeros = ree_expr_i32(&b, (int32_t)zero_row);
    row = ree_expr_op3(&b, REE_MAP_select_b32, nowhere, zeros, row);
    REE_TRY(ree_lower_map(&b, row, REE_I32, out_places));
    return ree_rule_step2(lower, REE_MAP_mul_f32, weights[0], weights[1], out_weights);
}

// Chunk-dots or maxima over the taps, for one block of regions: from rows (bins * taps, channels)
// and weights (bins, taps) to (bins, channels).
static enum ree_status pool_block(struct ree_lower *lower, const struct roi_align *r,
                                  struct ree_view *values, struct ree_view *weights,
                                  struct ree_view **out) {
    int64_t bins = weights->dims[0], taps = weights->dims[1], channels = values->dims[1];
    REE_TRY(ree_lower_reshape(lower, values, 3, (int64_t[]){bins, taps, channels}, &values));
    if (r->max) {
        REE_TRY(ree_lower_reshape(lower, weights, 3, (int64_t[]){bins, taps, 1}, &weights));
        REE_TRY(ree_rule_step2(lower, REE_MAP_mul_f32, weights, values, &values));
        return ree_lower_reduce(lower, values, REE_REDUCE_MAX, 1u << 1, false, false, out);
    }
    REE_TRY(ree_lower_reshape(lower, weights, 3, (int64_t[]){bins, 1, taps}, &weights));
    REE_TRY(ree_lower_matmul(lower, weights, values, out));
    return ree_lower_reshape(lower, *out, 2, (int64_t[]){bins, channels}, out);
}

// Divides the sums (n_rois, channels, bins) by the number of samples in a bin, at least 1.
static enum ree_status divide(struct ree_lower *lower, const struct roi_align *r,
                              struct ree_view *sums, struct ree_view **out) {
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 3, sums->dims);
    int value = ree_expr_tensor(&b, sums), n;
    if (r->grid[0]) {
        int64_t dims[3] = {r->n_rois, 1, 1};
        struct ree_view *grid[2];
        for (int i = 0; i < 2; i++)
            REE_TRY(ree_lower_reshape(lower, r->grid[i], 3, dims, &grid[i]));
        int y = ree_expr_tensor(&b, grid[0]), x = ree_expr_tensor(&b, grid[1]);
        n = ree_expr_op2(&b, REE_MAP_mul_i32, y, x);
        n = ree_expr_op2(&b, REE_MAP_max_i32, n, ree_expr_i32(&b, 1));
        n = ree_expr_op1(&b, REE_MAP_i32_to_f32, n);
    } else {
        n = ree_expr_f32(&b, (float)r->n_samples);
    }
    return ree_lower_map(&b, ree_expr_op2(&b, REE_MAP_div_f32, value, n), REE_F32, out);
}

enum ree_status ree_lower_op_roi_align(struct ree_lower *lower, struct ree_view *const *in,
                                       struct ree_view **out) {
    struct ree_view *x = in[0], *rois = in[1], *batch = in[2];
    struct ree_view *rows, *base, *places, *weights, *sums;
    struct roi_align r = {0};
    char text[128];
    REE_TRY(ree_roi_check(lower, x, rois, 4));
    REE_TRY(read_attributes(lower, &r));
    r.n_rois = rois->dims[0];
    if ((batch->dtype != REE_I64 && batch->dtype != REE_I32) || batch->rank != 1 ||
        batch->dims[0] != r.n_rois)
        return ree_lower_fail(lower, REE_INVALID, "input batch_indices is %s, expected int64[%lld]",
                              ree_view_text(batch, text, sizeof text), (long long)r.n_rois);
    int64_t channels = x->dims[1], bins = r.pooled[0] * r.pooled[1];
    int64_t dims[4] = {r.n_rois, channels, r.pooled[0], r.pooled[1]};
    if (r.n_rois == 0 || channels == 0) return ree_lower_new(lower, REE_F32, 4, dims, &out[0]);
    for (int i = 0; i < 2; i++) {
        r.sizes[i] = x->dims[2 + i];
        REE_TRY(measure(lower, &r, rois, i));
    }
    REE_TRY(count_samples(lower, &r));
    if (r.n_samples == 0) return ree_rule_fill(lower, 4, dims, 0, &out[0]);
    int64_t taps = r.n_samples * 4, per_roi, total_bins;
    if (!ree_count_elements(3, (int64_t[]){bins, taps, channels}, &per_roi) ||
        !ree_count_elements(2, (int64_t[]){bins, r.n_rois}, &total_bins))
        return ree_lower_fail(lower, REE_UNSUPPORTED, "a region of %lld bins of %lld samples",
                              (long long)bins, (long long)r.n_samples);
    REE_TRY(ree_roi_rows(lower, x, &rows));
    REE_TRY(first_rows(lower, &r, batch, x->dims[0], &base));
    REE_TRY(all_taps(lower, &r, base, rows->dims[0] - 1, &places, &weights));
    REE_TRY(ree_lower_reshape(lower, places, 2, (int64_t[]){total_bins, taps}, &places));
    REE_TRY(ree_lower_reshape(lower, weights, 2, (int64_t[]){total_bins, taps}, &weights));

    int64_t block = ree_roi_block(per_roi) * bins;
    struct ree_view *pooled = NULL, *index, *weight, *values, *part, *place;
    if (block < total_bins)
        REE_TRY(ree_lower_new(lower, REE_F32, 2, (int64_t[]){total_bins, channels}, &pooled));
    for (int64_t at = 0; at < total_bins; at += block) {
        int64_t n = total_bins - at < block ? total_bins - at : block;
        REE_TRY(ree_lower_slice(lower, places, 0, at, 1, n, &index));
        REE_TRY(ree_lower_slice(lower, weights, 0, at, 1, n, &weight));
        REE_TRY(ree_roi_gather(lower, rows, index, &values));
        REE_TRY(pool_block(lower, &r, values, weight, &part));
        if (!pooled) {
            pooled = part;
            break;
        }
        REE_TRY(ree_lower_slice(lower, pooled, 0, at, 1, n, &place));
        REE_TRY(ree_lower_copy_into(lower, part, place));
    }
    REE_TRY(ree_lower_reshape(lower, pooled, 3, (int64_t[]){r.n_rois, bins, channels}, &pooled));
    REE_TRY(ree_lower_transpose(lower, pooled, (uint32_t[]){0, 2, 1}, &sums));
    if (!r.max) REE_TRY(divide(lower, &r, sums, &sums));
    return ree_lower_reshape(lower, sums, 4, dims, &out[0]);
}
