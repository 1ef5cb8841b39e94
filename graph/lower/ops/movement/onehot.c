// OneHot: out[.., j, ..] = index[..] == j ? on : off, as a map over an index pattern.
#include "graph/lower/ops/data.h"

#include <math.h>
#include <string.h>

// depth may have any numeric type; a fraction is truncated.
static enum ree_status read_depth(struct ree_lower *lower, struct ree_view *t, int64_t *out) {
    if (ree_data_wide(t->dtype) == REE_F32) {
        struct ree_view *number;
        float value;
        REE_TRY(ree_lower_cast(lower, t, REE_F32, &number));
        REE_TRY(ree_lower_host_float(lower, number, "depth", &value));
        *out = value >= 0 && value < 2147483648.0f ? (int64_t)value : -1;
    } else {
        struct ree_view *number;
        REE_TRY(ree_lower_cast(lower, t, REE_I64, &number));
        REE_TRY(ree_data_int(lower, number, "depth", out));
    }
    if (*out < 0 || *out > INT32_MAX)
        return ree_lower_fail(lower, REE_INVALID, "depth is out of range");
    return REE_OK;
}

// Returns element i of values as a scalar.
static enum ree_status pick(struct ree_lower *lower, struct ree_view *values, int64_t i,
                            struct ree_view **out) {
    REE_TRY(ree_lower_slice(lower, values, 0, i, 1, 1, out));
    return ree_lower_reshape(lower, *out, 0, NULL, out);
}

enum ree_status ree_lower_op_onehot(struct ree_lower *lower, struct ree_view *const *in,
                                    struct ree_view **out) {
    struct ree_view *index = in[0], *values = in[2];
    char text[128];
    if (values->rank != 1 || values->dims[0] != 2)
        return ree_lower_fail(lower, REE_INVALID, "values is %s, expected [off, on]",
                              ree_view_text(values, text, sizeof text));
    if (index->rank == REE_MAX_RANK)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "the result has rank %u; at most %d is "
                              "supported",
                              index->rank + 1, REE_MAX_RANK);
    uint32_t axis, rank = index->rank + 1;
    int64_t depth;
    REE_TRY(ree_lower_axis(lower, ree_node_int(lower->node, "axis", -1), rank, &axis));
    REE_TRY(read_depth(lower, in[1], &depth));

    // The index gets a dimension of size 1 at the axis, along which it broadcasts.
    struct ree_view *spread = ree_lower_view(lower, index);
    if (!spread) return ree_lower_fail(lower, REE_NO_MEMORY, "out of memory");
    int64_t dims[REE_MAX_RANK], along[REE_MAX_RANK] = {0};
    spread->rank = rank;
    for (uint32_t i = 0, from = 0; i < rank; i++) {
        spread->dims[i] = i == axis ? 1 : index->dims[from];
        spread->strides[i] = i == axis ? 0 : index->strides[from];
        dims[i] = i == axis ? depth : index->dims[from];
        if (i != axis) from++;
    }
    along[axis] = 1;

    enum ree_dtype carrier = ree_data_carrier(values->dtype);
    struct ree_view *raw, *off, *on;
    REE_TRY(ree_data_reinterpret(lower, values, carrier, &raw));
    REE_TRY(pick(lower, raw, 0, &off));
    REE_TRY(pick(lower, raw, 1, &on));

    struct ree_expr_builder b;
    ree_expr_init(&b, lower, rank, dims);
    int i = ree_expr_cast(&b, ree_expr_tensor(&b, spread), index->dtype, REE_I64);
    // Before opset 11, a negative index is out of range.
    if (lower->node->opset >= 11) {
        int negative = ree_expr_op2(&b, REE_MAP_lt_i64, i, ree_expr_i64(&b, 0));
        int wrapped = ree_expr_op2(&b, REE_MAP_add_i64, i, ree_expr_i64(&b, depth));
        i = ree_expr_op3(&b, REE_MAP_select_b64, negative, wrapped, i);
    }
    int hit = ree_expr_op2(&b, REE_MAP_eq_i64, i, ree_expr_iota(&b, REE_I64, 0, along));
    bool wide = ree_dtype_class(carrier) == REE_CLASS_D;
    int value = ree_expr_op3(&b, wide ? REE_MAP_select_b64 : REE_MAP_select_b32, hit,
                             ree_expr_tensor(&b, on), ree_expr_tensor(&b, off));
    REE_TRY(ree_lower_map(&b, value, carrier, &out[0]));
    return ree_data_reinterpret(lower, out[0], values->dtype, &out[0]);
}
