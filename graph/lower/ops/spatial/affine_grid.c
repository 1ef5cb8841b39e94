// AffineGrid: the normalised coordinates of all elements of a plane or volume, multiplied by one
// affine matrix per sample.
#include "graph/lower/ops/spatial/spatial.h"

// Sets *out to the homogeneous coordinates (x, y, 1) or (x, y, z, 1) of all positions, as columns:
// (axes + 1, sizes...).
static enum ree_status base_grid(struct ree_lower *lower, uint32_t n_axes, const int64_t *sizes,
                                 bool align_corners, struct ree_view **out) {
    int64_t dims[REE_MAX_RANK] = {n_axes + 1};
    for (uint32_t i = 0; i < n_axes; i++)
        dims[1 + i] = sizes[i];
    REE_TRY(ree_lower_new(lower, REE_F32, n_axes + 1, dims, out));
    dims[0] = 1;
    for (uint32_t row = 0; row <= n_axes; row++) {
        struct ree_expr_builder b;
        struct ree_view *values, *place;
        ree_expr_init(&b, lower, n_axes + 1, dims);
        int value = ree_expr_f32(&b, 1);
        if (row < n_axes) { // x is the innermost axis
            uint32_t axis = n_axes - 1 - row;
            float size = (float)sizes[axis], start = -1, step;
            if (align_corners) {
                step = sizes[axis] == 1 ? 0 : 2 / (size - 1);
            } else {
                step = 2 / size;
                start = -1 + step / 2;
            }
            int64_t strides[REE_MAX_RANK] = {0};
            strides[1 + axis] = 1;
            int at = ree_expr_op1(&b, REE_MAP_i32_to_f32, ree_expr_iota(&b, REE_I32, 0, strides));
            value = ree_expr_op2(&b, REE_MAP_mul_f32, at, ree_expr_f32(&b, step));
            value = ree_expr_op2(&b, REE_MAP_add_f32, ree_expr_f32(&b, start), value);
        }
        REE_TRY(ree_lower_map(&b, value, REE_F32, &values));
        REE_TRY(ree_lower_slice(lower, *out, 0, row, 1, 1, &place));
        REE_TRY(ree_lower_copy_into(lower, values, place));
    }
    return REE_OK;
}

enum ree_status ree_lower_op_affine_grid(struct ree_lower *lower, struct ree_view *const *in,
                                         struct ree_view **out) {
    struct ree_view *theta = in[0], *grid, *product;
    const int64_t *size;
    size_t n;
    char text[128];
    bool align_corners = ree_rule_int(lower, "align_corners", 0) != 0;
    REE_TRY(ree_rule_require_f32(lower, theta));
    REE_TRY(ree_lower_host_ints(lower, in[1], "size", &size, &n));
    if (in[1]->rank != 1 || (n != 4 && n != 5))
        return ree_lower_fail(lower, REE_INVALID, "size is %s, expected 4 or 5 sizes",
                              ree_view_text(in[1], text, sizeof text));
    uint32_t n_axes = (uint32_t)n - 2;
    if (theta->rank != 3 || theta->dims[0] != size[0] || theta->dims[1] != n_axes ||
        theta->dims[2] != n_axes + 1)
        return ree_lower_fail(lower, REE_INVALID, "theta is %s, expected float32[%lld,%u,%u]",
                              ree_view_text(theta, text, sizeof text), (long long)size[0], n_axes,
                              n_axes + 1);
    int64_t positions = 1, dims[REE_MAX_RANK] = {size[0]};
    for (uint32_t i = 0; i < n_axes; i++) {
        if (size[2 + i] < 1 || size[2 + i] > INT32_MAX)
            return ree_lower_fail(lower, REE_INVALID, "size[%u] is %lld, expected 1 or more", 2 + i,
                                  (long long)size[2 + i]);
        dims[1 + i] = size[2 + i];
    }
    dims[1 + n_axes] = n_axes;
    REE_TRY(base_grid(lower, n_axes, size + 2, align_corners, &grid));
    for (uint32_t i = 0; i < n_axes; i++)
        positions *= size[2 + i];
    REE_TRY(ree_lower_reshape(lower, grid, 2, (int64_t[]){n_axes + 1, positions}, &grid));
    REE_TRY(ree_lower_matmul(lower, theta, grid, &product));
    REE_TRY(ree_lower_transpose(lower, product, (uint32_t[]){0, 2, 1}, &product));
    return ree_lower_reshape(lower, product, n_axes + 2, dims, &out[0]);
}
