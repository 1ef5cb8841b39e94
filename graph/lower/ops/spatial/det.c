// Det: Gaussian elimination with partial pivoting, one column at a time, in all matrices of the
// batch together.
#include "graph/lower/ops/spatial/spatial.h"

// One elimination step on the matrices s (batch, m, m). The pivot is the element of largest
// magnitude in the first column. *out_pivot (batch) is the pivot, negated if it was not in the
// first row. *out_s is the remaining matrix (batch, m - 1, m - 1), in which the first row has
// replaced the pivot row; it is not set if m = 1.
static enum ree_status eliminate(struct ree_lower *lower, struct ree_view *s,
                                 struct ree_view **out_pivot, struct ree_view **out_s) {
    int64_t batch = s->dims[0], m = s->dims[1];
    struct ree_view *column, *magnitude, *at, *row, *row0, *corner;
    struct ree_expr_builder b;
    REE_TRY(ree_lower_slice(lower, s, 2, 0, 1, 1, &column));
    REE_TRY(ree_rule_step1(lower, REE_MAP_abs_f32, column, &magnitude));
    REE_TRY(ree_lower_reduce(lower, magnitude, REE_REDUCE_ARGMAX, 1u << 1, true, false, &at));

    struct ree_gather_params p = {.n_components = 1};
    p.data_strides[0] = (int32_t)s->strides[0];
    p.data_strides[2] = (int32_t)s->strides[2];
    p.index_strides[0] = 1;
    p.component_sizes[0] = (uint32_t)m;
    p.component_strides[0] = (int32_t)s->strides[1];
    REE_TRY(ree_data_emit_gather(lower, s, at, &p, 3, (int64_t[]){batch, 1, m}, &row));

    REE_TRY(ree_lower_slice(lower, row, 2, 0, 1, 1, &corner));
    ree_expr_init(&b, lower, 3, corner->dims);
    int pivot = ree_expr_tensor(&b, corner), p_at = ree_expr_tensor(&b, at);
    int first = ree_expr_op2(&b, REE_MAP_eq_i64, p_at, ree_expr_i64(&b, 0));
    int negated = ree_expr_op1(&b, REE_MAP_neg_f32, pivot);
    REE_TRY(
        ree_lower_map(&b, ree_expr_select(&b, REE_F32, first, pivot, negated), REE_F32, out_pivot));
    REE_TRY(ree_lower_reshape(lower, *out_pivot, 1, &batch, out_pivot));
    if (m == 1) return REE_OK;

    // s'[i, j] = fma(-f, row[j], below[i, j]), with f = below[i, 0] / pivot, or f = 0 if the pivot
    // is 0. `row` is the pivot row. In `below`, the first row has replaced the pivot row.
    struct ree_view *below, *below_column, *row0_rest, *row0_corner, *row_rest;
    REE_TRY(ree_lower_slice(lower, s, 1, 1, 1, m - 1, &below));
    REE_TRY(ree_lower_slice(lower, below, 2, 0, 1, 1, &below_column));
    REE_TRY(ree_lower_slice(lower, below, 2, 1, 1, m - 1, &below));
    REE_TRY(ree_lower_slice(lower, s, 1, 0, 1, 1, &row0));
    REE_TRY(ree_lower_slice(lower, row0, 2, 0, 1, 1, &row0_corner));
    REE_TRY(ree_lower_slice(lower, row0, 2, 1, 1, m - 1, &row0_rest));
    REE_TRY(ree_lower_slice(lower, row, 2, 1, 1, m - 1, &row_rest));
    struct ree_view *factors;
    int64_t down[3] = {0, 1, 0};
    ree_expr_init(&b, lower, 3, below_column->dims);
    int here = ree_expr_op2(&b, REE_MAP_eq_i64, ree_expr_iota(&b, REE_I64, 1, down),
                            ree_expr_tensor(&b, at));
    int entry = ree_expr_select(&b, REE_F32, here, ree_expr_tensor(&b, row0_corner),
                                ree_expr_tensor(&b, below_column));
    pivot = ree_expr_tensor(&b, corner);
    int zero = ree_expr_f32(&b, 0), singular = ree_expr_op2(&b, REE_MAP_eq_f32, pivot, zero);
    int factor = ree_expr_op1(&b, REE_MAP_neg_f32, ree_expr_op2(&b, REE_MAP_div_f32, entry, pivot));
    REE_TRY(
        ree_lower_map(&b, ree_expr_select(&b, REE_F32, singular, zero, factor), REE_F32, &factors));
    ree_expr_init(&b, lower, 3, below->dims);
    here = ree_expr_op2(&b, REE_MAP_eq_i64, ree_expr_iota(&b, REE_I64, 1, down),
                        ree_expr_tensor(&b, at));
    entry = ree_expr_select(&b, REE_F32, here, ree_expr_tensor(&b, row0_rest),
                            ree_expr_tensor(&b, below));
    int value = ree_expr_op3(&b, REE_MAP_fma_f32, ree_expr_tensor(&b, factors),
                             ree_expr_tensor(&b, row_rest), entry);
    return ree_lower_map(&b, value, REE_F32, out_s);
}

enum ree_status ree_lower_op_det(struct ree_lower *lower, struct ree_view *const *in,
                                 struct ree_view **out) {
    struct ree_view *x = in[0], *s, *det = NULL, *pivot;
    char text[128];
    REE_TRY(ree_rule_require_f32(lower, x));
    if (x->rank < 2 || x->dims[x->rank - 1] != x->dims[x->rank - 2])
        return ree_lower_fail(lower, REE_INVALID, "input X is %s, expected square matrices",
                              ree_view_text(x, text, sizeof text));
    int64_t m = x->dims[x->rank - 1], batch = 1;
    for (uint32_t i = 0; i + 2 < x->rank; i++)
        batch *= x->dims[i];
    if (m == 0 || batch == 0)
        return ree_rule_fill(lower, x->rank - 2, x->dims, 1, &out[0]); // det of a 0 x 0 matrix is 1
    REE_TRY(ree_lower_reshape(lower, x, 3, (int64_t[]){batch, m, m}, &s));
    for (int64_t k = 0; k < m; k++) {
        REE_TRY(eliminate(lower, s, &pivot, &s));
        if (det)
            REE_TRY(ree_rule_step2(lower, REE_MAP_mul_f32, det, pivot, &det));
        else
            det = pivot;
    }
    return ree_lower_reshape(lower, det, x->rank - 2, x->dims, &out[0]);
}
