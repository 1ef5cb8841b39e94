// ai.onnx.ml: ArrayFeatureExtractor, Binarizer, Scaler, Normalizer.
#include "graph/lower/ops/data.h"

#include <string.h>

// Selects columns of the last axis; a vector counts as one row.
enum ree_status ree_lower_op_array_feature_extractor(struct ree_lower *lower,
                                                     struct ree_view *const *in,
                                                     struct ree_view **out) {
    struct ree_view *x = in[0], *index = in[1];
    char text[128];
    REE_TRY(ree_rule_require_rank(lower, x, "X", 1, REE_MAX_RANK));
    if (index->dtype != REE_I64 || ree_view_count(index) == 0)
        return ree_lower_fail(lower, REE_INVALID, "input Y is %s, expected int64 indices",
                              ree_view_text(index, text, sizeof text));
    if (x->rank == 1) REE_TRY(ree_lower_reshape(lower, x, 2, (int64_t[]){1, x->dims[0]}, &x));
    uint32_t last = x->rank - 1;
    int64_t dims[REE_MAX_RANK], n = ree_view_count(index);
    REE_TRY(ree_lower_reshape(lower, index, 1, &n, &index));
    REE_TRY(ree_lower_dense(lower, index, &index));
    struct ree_gather_params p = {.n_components = 1};
    for (uint32_t i = 0; i < last; i++) {
        dims[i] = x->dims[i];
        p.data_strides[i] = (int32_t)x->strides[i];
    }
    dims[last] = n;
    p.index_strides[last] = 1;
    p.component_sizes[0] = (uint32_t)x->dims[last];
    p.component_strides[0] = (int32_t)x->strides[last];
    return ree_data_emit_gather(lower, x, index, &p, x->rank, dims, &out[0]);
}

// threshold < x ? 1 : 0, in x's type
enum ree_status ree_lower_op_binarizer(struct ree_lower *lower, struct ree_view *const *in,
                                       struct ree_view **out) {
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, in[0]->rank, in[0]->dims);
    int x = ree_expr_cast(&b, ree_expr_tensor(&b, in[0]), in[0]->dtype, REE_F32);
    int threshold = ree_expr_f32(&b, ree_rule_float(lower, "threshold", 0));
    int above = ree_expr_op2(&b, REE_MAP_lt_f32, threshold, x);
    return ree_lower_map(&b, ree_expr_cast(&b, above, REE_I32, in[0]->dtype), in[0]->dtype,
                         &out[0]);
}

// Reads a list of floats as a tensor: one for all columns, or one per column of the last axis. If
// the list is absent or empty, all columns have `fallback`.
static enum ree_status read_columns(struct ree_lower *lower, const char *name, int64_t columns,
                                    float fallback, struct ree_view **out) {
    size_t n;
    const float *values = ree_rule_floats(lower, name, &n);
    if (n == 0) return ree_lower_literal(lower, REE_F32, 0, NULL, &fallback, out);
    if (n != 1 && (int64_t)n != columns)
        return ree_lower_fail(lower, REE_INVALID, "%s has %zu entries, expected 1 or %lld", name, n,
                              (long long)columns);
    int64_t dim = (int64_t)n;
    return ree_lower_literal(lower, REE_F32, 1, &dim, values, out);
}

// (x - offset) * scale, as float32
enum ree_status ree_lower_op_scaler(struct ree_lower *lower, struct ree_view *const *in,
                                    struct ree_view **out) {
    struct ree_view *x = in[0], *offset, *scale;
    REE_TRY(ree_rule_require_rank(lower, x, "X", 1, REE_MAX_RANK));
    int64_t columns = x->dims[x->rank - 1];
    REE_TRY(read_columns(lower, "offset", columns, 0, &offset));
    REE_TRY(read_columns(lower, "scale", columns, 1, &scale));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, x->rank, x->dims);
    int value = ree_expr_cast(&b, ree_expr_tensor(&b, x), x->dtype, REE_F32);
    value = ree_expr_op2(&b, REE_MAP_sub_f32, value, ree_expr_tensor(&b, offset));
    value = ree_expr_op2(&b, REE_MAP_mul_f32, value, ree_expr_tensor(&b, scale));
    return ree_lower_map(&b, value, REE_F32, &out[0]);
}

// Divides each row by its maximum, its sum of magnitudes or the root of its sum of squares. A row
// is unchanged if this divisor is 0.
enum ree_status ree_lower_op_normalizer(struct ree_lower *lower, struct ree_view *const *in,
                                        struct ree_view **out) {
    struct ree_view *x, *norm;
    const char *kind = ree_rule_string(lower, "norm", "MAX");
    bool max = !strcmp(kind, "MAX"), l1 = !strcmp(kind, "L1");
    if (!max && !l1 && strcmp(kind, "L2"))
        return ree_lower_fail(lower, REE_INVALID, "norm is '%s', expected MAX, L1 or L2", kind);
    REE_TRY(ree_rule_require_rank(lower, in[0], "X", 1, REE_MAX_RANK));
    REE_TRY(ree_lower_cast(lower, in[0], REE_F32, &x));
    enum ree_reduce_kind reduce = max  ? REE_REDUCE_MAX
                                  : l1 ? REE_REDUCE_SUM_ABS
                                       : REE_REDUCE_SUM_SQ;
    REE_TRY(ree_lower_reduce(lower, x, reduce, 1u << (x->rank - 1), true, false, &norm));
    if (!max && !l1) REE_TRY(ree_rule_step1(lower, REE_MAP_sqrt_f32, norm, &norm));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, x->rank, x->dims);
    int value = ree_expr_tensor(&b, x), divisor = ree_expr_tensor(&b, norm);
    int zero = ree_expr_op2(&b, REE_MAP_eq_f32, divisor, ree_expr_f32(&b, 0));
    int divided = ree_expr_op2(&b, REE_MAP_div_f32, value, divisor);
    return ree_lower_map(&b, ree_expr_select(&b, REE_F32, zero, value, divided), REE_F32, &out[0]);
}
