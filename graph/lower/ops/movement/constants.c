// Tensors made from a few numbers: Constant, ConstantOfShape (a view of one element), EyeLike,
// Range and Trilu (index patterns in a map).
#include "graph/lower/ops/data.h"

#include <math.h>
#include <string.h>

static enum ree_status constant_tensor(struct ree_lower *lower, const struct ree_attr *attr,
                                       struct ree_view **out) {
    const struct ree_value *value = attr->tensor;
    if (attr->kind != REE_ATTR_TENSOR || !value)
        return ree_lower_fail(lower, REE_INVALID, "attribute 'value' is not a tensor");
    REE_TRY(ree_lower_new(lower, value->dtype, value->rank, value->dims, out));
    if ((*out)->storage->nbytes != value->nbytes || (value->nbytes && !value->data))
        return ree_lower_fail(lower, REE_INVALID, "attribute 'value' has %zu bytes, expected %llu",
                              value->nbytes, (unsigned long long)(*out)->storage->nbytes);
    if (attr->tensor->dtype == REE_STRING)
        return ree_lower_strings(lower, attr->tensor->rank, attr->tensor->dims, attr->tensor->data,
                                 out);
    return ree_lower_literal(lower, value->dtype, value->rank, value->dims, value->data, out);
}

enum ree_status ree_lower_op_constant(struct ree_lower *lower, struct ree_view *const *in,
                                      struct ree_view **out) {
    (void)in;
    const struct ree_node *node = lower->node;
    if (node->n_attrs != 1)
        return ree_lower_fail(lower, REE_INVALID, "has %zu attributes, expected one value",
                              node->n_attrs);
    const struct ree_attr *attr = &node->attrs[0];
    int64_t n = (int64_t)attr->n;
    if (!strcmp(attr->name, "value")) return constant_tensor(lower, attr, &out[0]);
    if (!strcmp(attr->name, "value_int") && attr->kind == REE_ATTR_INT)
        return ree_lower_literal(lower, REE_I64, 0, NULL, &attr->i, &out[0]);
    if (!strcmp(attr->name, "value_ints") && attr->kind == REE_ATTR_INTS)
        return ree_lower_literal(lower, REE_I64, 1, &n, attr->ints, &out[0]);
    if (!strcmp(attr->name, "value_float") && attr->kind == REE_ATTR_FLOAT)
        return ree_lower_literal(lower, REE_F32, 0, NULL, &attr->f, &out[0]);
    if (!strcmp(attr->name, "value_floats") && attr->kind == REE_ATTR_FLOATS)
        return ree_lower_literal(lower, REE_F32, 1, &n, attr->floats, &out[0]);
    if (!strcmp(attr->name, "value_string") && attr->kind == REE_ATTR_STRING)
        return ree_lower_strings(lower, 0, NULL, &attr->s, &out[0]);
    if (!strcmp(attr->name, "value_strings") && attr->kind == REE_ATTR_STRINGS)
        return ree_lower_strings(lower, 1, &n, attr->strings, &out[0]);
    return ree_lower_fail(lower, REE_UNSUPPORTED, "a constant given as '%s' is not supported",
                          attr->name);
}

enum ree_status ree_lower_op_constantofshape(struct ree_lower *lower, struct ree_view *const *in,
                                             struct ree_view **out) {
    const int64_t *shape;
    size_t n;
    bool given;
    REE_TRY(ree_data_ints(lower, in, 0, "shape", &shape, &n, &given));
    int64_t count;
    if (n > REE_MAX_RANK || !ree_count_elements((uint32_t)n, shape, &count) ||
        count >= INT64_C(1) << 31) {
        char text[192];
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "cannot make a tensor of shape %s: at most %d sizes, none negative, "
                              "with a product below 2^31",
                              ree_data_list_text(n, shape, text, sizeof text), REE_MAX_RANK);
    }
    struct ree_view *one;
    const struct ree_attr *attr = ree_node_attr(lower->node, "value");
    if (attr) {
        REE_TRY(constant_tensor(lower, attr, &one));
        if (ree_view_count(one) != 1)
            return ree_lower_fail(lower, REE_INVALID,
                                  "attribute 'value' has %lld elements, "
                                  "expected one",
                                  (long long)ree_view_count(one));
        REE_TRY(ree_lower_reshape(lower, one, 0, NULL, &one));
    } else {
        float zero = 0;
        REE_TRY(ree_lower_literal(lower, REE_F32, 0, NULL, &zero, &one));
    }
    return ree_lower_broadcast(lower, one, (uint32_t)n, shape, &out[0]);
}

// A diagonal's number must fit in 32 bits. All numbers beyond the largest matrix are equivalent.
static int32_t clamp_diagonal(int64_t k) {
    return (int32_t)(k > INT32_MAX ? INT32_MAX : k < -INT32_MAX ? -INT32_MAX : k);
}

// Adds the value column - row of each element to the expression.
static int diagonal_iota(struct ree_expr_builder *b, uint32_t rank) {
    int64_t strides[REE_MAX_RANK] = {0};
    strides[rank - 2] = -1;
    strides[rank - 1] = 1;
    return ree_expr_iota(b, REE_I32, 0, strides);
}

enum ree_status ree_lower_op_eyelike(struct ree_lower *lower, struct ree_view *const *in,
                                     struct ree_view **out) {
    char text[128];
    if (in[0]->rank != 2)
        return ree_lower_fail(lower, REE_INVALID, "the input is %s, expected rank 2",
                              ree_view_text(in[0], text, sizeof text));
    enum ree_dtype dtype = (enum ree_dtype)ree_rule_int(lower, "dtype", (int64_t)in[0]->dtype);
    int32_t k = clamp_diagonal(ree_rule_int(lower, "k", 0));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 2, in[0]->dims);
    int on = ree_expr_op2(&b, REE_MAP_eq_i32, diagonal_iota(&b, 2), ree_expr_i32(&b, k));
    if (dtype == REE_F64) {
        // 1.0 and 0.0 as bits: the expression writes float64 through an integer type
        // (ree_data_carrier).
        const uint64_t one = UINT64_C(0x3ff) << 52;
        on = ree_expr_op3(&b, REE_MAP_select_b64, on, ree_expr_i64(&b, (int64_t)one),
                          ree_expr_i64(&b, 0));
    } else {
        on = ree_expr_cast(&b, on, REE_BOOL, dtype);
    }
    REE_TRY(ree_lower_map(&b, on, ree_data_carrier(dtype), &out[0]));
    return ree_data_reinterpret(lower, out[0], dtype, &out[0]);
}

// Range

static enum ree_status range_ints(struct ree_lower *lower, enum ree_dtype dtype, const int64_t *v,
                                  struct ree_view **out) {
    if (v[2] == 0) return ree_lower_fail(lower, REE_INVALID, "delta is 0");
    // ceil((limit - start) / delta), at least 0; the difference needs 65 bits.
    __int128 distance = (__int128)v[1] - v[0], delta = v[2];
    if (delta < 0) distance = -distance, delta = -delta;
    __int128 n = distance > 0 ? (distance + delta - 1) / delta : 0;
    int64_t count = n > INT64_MAX ? INT64_MAX : (int64_t)n;
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 1, &count);
    bool wide = dtype == REE_I64;
    int i = ree_expr_iota(&b, wide ? REE_I64 : REE_I32, 0, &(int64_t){1});
    int result =
        wide ? ree_expr_op2(&b, REE_MAP_add_i64, ree_expr_i64(&b, v[0]),
                            ree_expr_op2(&b, REE_MAP_mul_i64, i, ree_expr_i64(&b, v[2])))
             : ree_expr_op2(&b, REE_MAP_add_i32, ree_expr_i32(&b, (int32_t)v[0]),
                            ree_expr_op2(&b, REE_MAP_mul_i32, i, ree_expr_i32(&b, (int32_t)v[2])));
    return ree_lower_map(&b, result, dtype, out);
}

static int real_number(struct ree_expr_builder *b, enum ree_dtype real, double value) {
    return real == REE_F64 ? ree_expr_f64(b, value) : ree_expr_f32(b, (float)value);
}

// v: numbers of type `real` (float32 or float64), the type in which start + i * delta is computed.
static enum ree_status range_floats(struct ree_lower *lower, enum ree_dtype dtype,
                                    enum ree_dtype real, const double *v, struct ree_view **out) {
    double n = ceil((v[1] - v[0]) / v[2]);
    if (!(n < 2147483648.0)) // also true for NaN
        return ree_lower_fail(lower, REE_INVALID, "cannot make a range from %g to %g by %g", v[0],
                              v[1], v[2]);
    int64_t count = n > 0 ? (int64_t)n : 0;
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 1, &count);
    int i = ree_expr_iota(&b, REE_I32, 0, &(int64_t){1});
    int step = ree_expr_op2(&b, REE_MAP_mul_f32, ree_expr_cast(&b, i, REE_I32, real),
                            real_number(&b, real, v[2]));
    int result = ree_expr_op2(&b, REE_MAP_add_f32, real_number(&b, real, v[0]), step);
    return ree_lower_map(&b, ree_expr_cast(&b, result, real, dtype), dtype, out);
}

enum ree_status ree_lower_op_range(struct ree_lower *lower, struct ree_view *const *in,
                                   struct ree_view **out) {
    static const char *const names[3] = {"start", "limit", "delta"};
    enum ree_dtype dtype = in[0]->dtype, wide = ree_data_wide(dtype);
    int64_t ints[3];
    double floats[3];
    for (int k = 0; k < 3; k++) {
        char text[128];
        if (in[k]->dtype != dtype || ree_view_count(in[k]) != 1)
            return ree_lower_fail(lower, REE_INVALID, "%s is %s, expected one %s", names[k],
                                  ree_view_text(in[k], text, sizeof text), ree_dtype_name(dtype));
        struct ree_view *number;
        REE_TRY(ree_lower_cast(lower, in[k], wide, &number));
        const void *bytes;
        float f32;
        if (wide == REE_F64) {
            REE_TRY(ree_lower_host(lower, number, &bytes));
            memcpy(&floats[k], bytes, sizeof floats[k]);
        } else if (wide == REE_F32) {
            REE_TRY(ree_lower_host_float(lower, number, names[k], &f32));
            floats[k] = (double)f32;
        } else {
            REE_TRY(ree_data_int(lower, number, names[k], &ints[k]));
        }
    }
    return wide == REE_F32 || wide == REE_F64 ? range_floats(lower, dtype, wide, floats, &out[0])
                                              : range_ints(lower, dtype, ints, &out[0]);
}

enum ree_status ree_lower_op_trilu(struct ree_lower *lower, struct ree_view *const *in,
                                   struct ree_view **out) {
    struct ree_view *t = in[0], *k_input = ree_rule_input(lower, in, 1);
    char text[128];
    if (t->rank < 2)
        return ree_lower_fail(lower, REE_INVALID, "the input is %s, expected rank 2 or more",
                              ree_view_text(t, text, sizeof text));
    int64_t k_value = 0;
    if (k_input) REE_TRY(ree_data_int(lower, k_input, "k", &k_value));
    bool upper = ree_rule_int(lower, "upper", 1) != 0;
    enum ree_dtype dtype = t->dtype, carrier = ree_data_carrier(dtype);
    REE_TRY(ree_data_reinterpret(lower, t, carrier, &t));
    bool wide = ree_dtype_class(carrier) == REE_CLASS_D;
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, t->rank, t->dims);
    int diagonal = diagonal_iota(&b, t->rank), k = ree_expr_i32(&b, clamp_diagonal(k_value));
    int keep = upper ? ree_expr_op2(&b, REE_MAP_le_i32, k, diagonal)
                     : ree_expr_op2(&b, REE_MAP_le_i32, diagonal, k);
    int zero = wide ? ree_expr_i64(&b, 0) : ree_expr_i32(&b, 0);
    int value = ree_expr_op3(&b, wide ? REE_MAP_select_b64 : REE_MAP_select_b32, keep,
                             ree_expr_tensor(&b, t), zero);
    REE_TRY(ree_lower_map(&b, value, carrier, &out[0]));
    return ree_data_reinterpret(lower, out[0], dtype, &out[0]);
}
