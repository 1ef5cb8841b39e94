// MaxRoiPool: the maximum over whole elements in each bin of each region. The number of elements in
// a bin depends on the regions, so the regions are read on the host.
#include "graph/lower/ops/spatial/roi.h"

#include <math.h>

// The bins of one region of sample `batch` of x. Arrays have one entry per axis, (y, x): the number
// of bins, the sizes of x, and the size of a bin in elements.
struct bins {
    int64_t pooled[2], sizes[2];
    int64_t batch;
    int64_t begin[2]; // start of the region, in whole elements
    float bin[2];
};

// Rounds to nearest, ties away from zero, and clamps to a range in which sums stay small.
static int64_t whole(float x) {
    if (!(x > -1e9f)) return isnan(x) ? 0 : -1000000000;
    return x < 1e9f ? (int64_t)roundf(x) : 1000000000;
}

static void measure(const float *roi, float scale, struct bins *b) {
    for (int i = 0; i < 2; i++) {
        b->begin[i] = whole(roi[i ? 1 : 2] * scale);
        int64_t end = whole(roi[i ? 3 : 4] * scale), size = end - b->begin[i] + 1;
        b->bin[i] = (float)(size > 1 ? size : 1) / (float)b->pooled[i];
    }
}

static void bin_range(const struct bins *b, int axis, int64_t p, int64_t *from, int64_t *to) {
    int64_t low = (int64_t)floorf((float)p * b->bin[axis]) + b->begin[axis];
    int64_t high = (int64_t)ceilf((float)(p + 1) * b->bin[axis]) + b->begin[axis];
    int64_t size = b->sizes[axis];
    *from = low < 0 ? 0 : low > size ? size : low;
    *to = high < 0 ? 0 : high > size ? size : high;
}

// Lists the elements of one bin in `out`, as row numbers of ree_roi_rows, and repeats the first one
// up to n entries. An empty bin lists the row of zeros.
static void list_bin(const struct bins *b, int64_t ph, int64_t pw, int64_t zero_row, int64_t n,
                     int32_t *out) {
    int64_t y0, y1, x0, x1, k = 0;
    bin_range(b, 0, ph, &y0, &y1);
    bin_range(b, 1, pw, &x0, &x1);
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++)
            out[k++] = (int32_t)((b->batch * b->sizes[0] + y) * b->sizes[1] + x);
    if (k == 0) out[k++] = (int32_t)zero_row;
    for (; k < n; k++)
        out[k] = out[0];
}

// The number of elements in the region's largest bin.
static int64_t largest_bin(const struct bins *b) {
    int64_t most = 1;
    for (int64_t ph = 0; ph < b->pooled[0]; ph++)
        for (int64_t pw = 0; pw < b->pooled[1]; pw++) {
            int64_t y0, y1, x0, x1;
            bin_range(b, 0, ph, &y0, &y1);
            bin_range(b, 1, pw, &x0, &x1);
            if (y1 > y0 && x1 > x0 && (y1 - y0) * (x1 - x0) > most) most = (y1 - y0) * (x1 - x0);
        }
    return most;
}

// Pools n regions whose bins have at most `most` elements: *out is (n * height * width of the
// output, channels).
static enum ree_status pool_block(struct ree_lower *lower, const struct bins *b, int64_t n,
                                  int64_t most, struct ree_view *rows, struct ree_view **out) {
    int64_t n_bins = b->pooled[0] * b->pooled[1];
    int64_t dims[3] = {n * n_bins, most, rows->dims[1]}, count;
    if (!ree_count_elements(3, dims, &count) || count >= INT64_C(1) << 31)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "%lld bins of %lld elements",
                              (long long)n_bins, (long long)most);
    int32_t *list = ree_arena_alloc_array(lower->arena, (size_t)(dims[0] * most), sizeof *list);
    if (!list) return ree_lower_no_memory(lower);
    for (int64_t at = 0; at < dims[0]; at++) {
        int64_t p = at % n_bins;
        list_bin(&b[at / n_bins], p / b->pooled[1], p % b->pooled[1], rows->dims[0] - 1, most,
                 list + at * most);
    }
    struct ree_view *index, *values;
    REE_TRY(ree_lower_literal(lower, REE_I32, 2, dims, list, &index));
    REE_TRY(ree_roi_gather(lower, rows, index, &values));
    REE_TRY(ree_lower_reshape(lower, values, 3, dims, &values));
    return ree_lower_reduce(lower, values, REE_REDUCE_MAX, 1u << 1, false, false, out);
}

// Pools all regions, in blocks of as many regions as ree_roi_block allows, into pooled (regions *
// bins, channels).
static enum ree_status pool_regions(struct ree_lower *lower, const struct bins *regions,
                                    int64_t n_rois, struct ree_view *rows,
                                    struct ree_view *pooled) {
    int64_t n_bins = regions->pooled[0] * regions->pooled[1];
    for (int64_t at = 0, n; at < n_rois; at += n) {
        int64_t most = largest_bin(&regions[at]);
        for (n = 1; at + n < n_rois; n++) {
            int64_t next = largest_bin(&regions[at + n]), per_region;
            if (next < most) next = most;
            if (!ree_count_elements(3, (int64_t[]){n_bins, next, rows->dims[1]}, &per_region) ||
                n >= ree_roi_block(per_region))
                break;
            most = next;
        }
        struct ree_view *part, *place;
        REE_TRY(pool_block(lower, &regions[at], n, most, rows, &part));
        REE_TRY(ree_lower_slice(lower, pooled, 0, at * n_bins, 1, n * n_bins, &place));
        REE_TRY(ree_lower_copy_into(lower, part, place));
    }
    return REE_OK;
}

enum ree_status ree_lower_op_max_roi_pool(struct ree_lower *lower, struct ree_view *const *in,
                                          struct ree_view **out) {
    struct ree_view *x = in[0], *rois = in[1], *rows, *pooled;
    size_t n;
    REE_TRY(ree_roi_check(lower, x, rois, 5));
    const int64_t *shape = ree_rule_ints(lower, "pooled_shape", &n);
    float scale = ree_rule_float(lower, "spatial_scale", 1);
    bool sane = shape && n == 2;
    for (int i = 0; sane && i < 2; i++)
        sane = shape[i] >= 1 && shape[i] <= REE_SAMPLE_MAX_SIZE;
    if (!sane)
        return ree_lower_fail(lower, REE_INVALID, "pooled_shape is not two sizes of 1 or more");
    int64_t n_rois = rois->dims[0], n_bins = shape[0] * shape[1];
    int64_t dims[4] = {n_rois, x->dims[1], shape[0], shape[1]}, count;
    // ree_lower_new fails if the shape is invalid.
    if (!ree_count_elements(4, dims, &count) || count == 0)
        return ree_lower_new(lower, REE_F32, 4, dims, &out[0]);
    const void *bytes;
    REE_TRY(ree_lower_host(lower, rois, &bytes));
    struct bins *regions = ree_arena_alloc_array(lower->arena, (size_t)n_rois, sizeof *regions);
    if (!regions) return ree_lower_no_memory(lower);
    for (int64_t r = 0; r < n_rois; r++) {
        const float *roi = (const float *)bytes + r * 5;
        if (!(roi[0] >= 0 && roi[0] < (float)x->dims[0]))
            return ree_lower_fail(lower, REE_INVALID,
                                  "region %lld refers to sample %g, but X has %lld samples",
                                  (long long)r, (double)roi[0], (long long)x->dims[0]);
        regions[r] = (struct bins){.pooled = {shape[0], shape[1]},
                                   .sizes = {x->dims[2], x->dims[3]},
                                   .batch = (int64_t)roi[0]};
        measure(roi, scale, &regions[r]);
    }
    REE_TRY(ree_lower_new(lower, REE_F32, 2, (int64_t[]){n_rois * n_bins, dims[1]}, &pooled));
    REE_TRY(ree_roi_rows(lower, x, &rows));
    REE_TRY(pool_regions(lower, regions, n_rois, rows, pooled));
    REE_TRY(ree_lower_reshape(lower, pooled, 3, (int64_t[]){n_rois, n_bins, dims[1]}, &pooled));
    REE_TRY(ree_lower_transpose(lower, pooled, (uint32_t[]){0, 2, 1}, &pooled));
    return ree_lower_reshape(lower, pooled, 4, dims, &out[0]);
}
