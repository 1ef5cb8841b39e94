// CenterCropPad: crops, or pads with zeros, around the centre; only moves data.
#include "graph/lower/ops/spatial/spatial.h"

enum ree_status ree_lower_op_center_crop_pad(struct ree_lower *lower, struct ree_view *const *in,
                                             struct ree_view **out) {
    struct ree_view *t = in[0];
    const int64_t *shape, *axes;
    size_t n, n_axes;
    bool has_axes;
    REE_TRY(ree_lower_host_ints(lower, in[1], "shape", &shape, &n));
    REE_TRY(ree_data_ints(lower, in, REE_DATA_ATTR_ONLY, "axes", &axes, &n_axes, &has_axes));
    size_t wanted = has_axes ? n_axes : t->rank;
    if (in[1]->rank != 1 || n != wanted)
        return ree_lower_fail(lower, REE_INVALID,
                              "shape has %zu sizes, expected one for each of "
                              "%zu axes",
                              n, wanted);
    uint32_t mask;
    if (has_axes) REE_TRY(ree_data_axes_mask(lower, n_axes, axes, t->rank, &mask));
    int64_t before[REE_MAX_RANK] = {0}, after[REE_MAX_RANK] = {0};
    for (size_t i = 0; i < n; i++) {
        uint32_t axis = (uint32_t)i;
        if (has_axes) REE_TRY(ree_lower_axis(lower, axes[i], t->rank, &axis));
        if (shape[i] < 0 || shape[i] > INT32_MAX)
            return ree_lower_fail(lower, REE_INVALID, "shape[%zu] is %lld, expected 0 or more", i,
                                  (long long)shape[i]);
        int64_t more = shape[i] - t->dims[axis];
        if (more >= 0) {
            before[axis] = more / 2;
            after[axis] = more - more / 2;
        } else {
            REE_TRY(ree_lower_slice(lower, t, axis, shape[i] ? -more / 2 : 0, 1, shape[i], &t));
        }
    }
    return ree_spatial_border(lower, t, before, after, &out[0]);
}
