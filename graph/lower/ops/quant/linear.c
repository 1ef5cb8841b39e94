// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.
#include "graph/lower/ops/quant/quant.h"

#include <string.h>

enum ree_status ree_quant_along_blocks(struct ree_lower *lower, struct ree_view *t,
                                       const char *name, const struct ree_view *x, uint32_t axis,
                                       int64_t block, struct ree_view **out) {
    char text[128];
    bool fits = t->rank == x->rank;
    int64_t n = x->dims[axis] / block + (x->dims[axis] % block != 0);
    for (uint32_t i = 0; fits && i < x->rank; i++)
        fits = t->dims[i] == (i == axis ? n : x->dims[i]);
    if (!fits)
        return ree_lower_fail(lower, REE_INVALID,
                              "input %s is %s, expected the shape of x with %lld blocks along axis "
                              "%u",
                              name, ree_view_text(t, text, sizeof text), (long long)n, axis);
    if (x->rank == REE_MAX_RANK)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "blocks of a tensor of rank %u", x->rank);
    // Repeat each block's element: (..., n, 1, ...) to (..., n, block, ...) to (..., n * block,
    // ...), then cut the excess of the last block.
    int64_t dims[REE_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        dims[rank++] = t->dims[i];
        if (i == axis) dims[rank++] = 1;
    }
    REE_TRY(ree_lower_reshape(lower, t, rank, dims, out));
    dims[axis + 1] = block;
    REE_TRY(ree_lower_broadcast(lower, *out, rank, dims, out));
    for (uint32_t i = 0; i < x->rank; i++)
        dims[i] = i == axis ? n * block : x->dims[i];
    REE_TRY(ree_lower_reshape(lower, *out, x->rank, dims, out));
    return ree_lower_slice(lower, *out, axis, 0, 1, x->dims[axis], out);
}

// Spreads t, the scale or the zero point, over x. t is one element, a vector along `axis`, or a
// tensor of x's rank with one element per block of block_size along the axis.
static enum ree_status spread(struct ree_lower *lower, struct ree_view *t, const char *name,
                              const struct ree_view *x, struct ree_view **out) {
    int64_t block = ree_rule_int(lower, "block_size", 0);
    if (block < 0)
        return ree_lower_fail(lower, REE_INVALID, "block_size is %lld, expected 0 or more",
                              (long long)block);
    if (block == 0 && ree_view_count(t) == 1) return ree_lower_reshape(lower, t, 0, NULL, out);
    uint32_t axis;
    REE_TRY(ree_lower_axis(lower, ree_rule_int(lower, "axis", 1), x->rank, &axis));
    if (block == 0) return ree_quant_along(lower, t, name, x->rank, axis, x->dims[axis], out);
    return ree_quant_along_blocks(lower, t, name, x, axis, block, out);
}

// Checks that the zero point has the scale's shape. One element has the same effect in any shape.
static enum ree_status require_alike(struct ree_lower *lower, const struct ree_view *zero,
                                     const char *name, const struct ree_view *scale,
                                     const char *scale_name) {
    char text[128], wanted[128];
    bool fits = ree_view_count(zero) == 1 && ree_view_count(scale) == 1;
    if (!fits)
        fits = zero->rank == scale->rank &&
               memcmp(zero->dims, scale->dims, zero->rank * sizeof zero->dims[0]) == 0;
    if (fits) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "input %s is %s, expected the shape of %s, %s", name,
                          ree_view_text(zero, text, sizeof text), scale_name,
                          ree_view_text(scale, wanted, sizeof wanted));
}

// Reads the type that an attribute names; `fallback` if it is absent or 0.
static enum ree_status type_attribute(struct ree_lower *lower, const char *name,
                                      enum ree_dtype fallback, enum ree_dtype *out) {
    int64_t value = ree_rule_int(lower, name, 0);
    if (value < 0 || value > 64)
        return ree_lower_fail(lower, REE_INVALID, "attribute '%s' is %lld, which is not a type",
                              name, (long long)value);
    *out = value ? (enum ree_dtype)value : fallback;
    return REE_OK;
}

static enum ree_status unsupported(struct ree_lower *lower, enum ree_dtype from,
                                   enum ree_dtype to) {
    return ree_lower_fail(lower, REE_UNSUPPORTED, "%s from %s to %s is not supported",
                          lower->node->op_type, ree_dtype_name(from), ree_dtype_name(to));
}

RULE(quantize_linear) {
    struct ree_view *x = in[0], *scale = in[1], *zero = ree_rule_input(lower, in, 2);
    enum ree_dtype to, precision;
    int32_t low, high;
    REE_TRY(type_attribute(lower, "output_dtype", zero ? zero->dtype : REE_U8, &to));
    REE_TRY(type_attribute(lower, "precision", REE_F32, &precision));
    if (!ree_quant_range(to, &low, &high) && !ree_quant_is_float(to))
        return unsupported(lower, x->dtype, to);
    if (x->dtype != REE_F32 && x->dtype != REE_F16 && x->dtype != REE_BF16 && x->dtype != REE_I32)
        return unsupported(lower, x->dtype, to);
    if (precision != REE_F32 && precision != REE_F16 && precision != REE_BF16)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "a precision of %s is not supported",
                              ree_dtype_name(precision));
    REE_TRY(ree_quant_scale(lower, scale, "y_scale", &scale));
    if (zero) REE_TRY(require_alike(lower, zero, "y_zero_point", scale, "y_scale"));
    struct ree_view *given = zero;
    REE_TRY(ree_quant_zero(lower, zero, "y_zero_point", to, &zero));
    if (ree_quant_is_float(to)) zero = given; // adding +0 would change -0
    REE_TRY(spread(lower, scale, "y_scale", x, &scale));
    if (zero) REE_TRY(spread(lower, zero, "y_zero_point", x, &zero));
    struct ree_expr_builder e;
    ree_expr_init(&e, lower, x->rank, x->dims);
    int value = ree_expr_cast(&e, ree_expr_tensor(&e, x), x->dtype, REE_F32);
    value = ree_expr_op2(&e, REE_MAP_div_f32, value, ree_expr_tensor(&e, scale));
    if (precision != REE_F32) {
        value = ree_expr_cast(&e, value, REE_F32, precision);
        value = ree_expr_cast(&e, value, precision, REE_F32);
    }
    int z = ree_quant_expr_zero(&e, zero);
    value = ree_quant_is_float(to) ? ree_quant_expr_narrow(&e, value, z, to)
                                   : ree_quant_expr_round(&e, value, z, to);
    return ree_lower_map(&e, value, to, &out[0]);
}

RULE(dequantize_linear) {
    struct ree_view *x = in[0], *scale = in[1], *zero = ree_rule_input(lower, in, 2);
    enum ree_dtype to;
    int32_t low, high;
    REE_TRY(type_attribute(lower, "output_dtype", scale->dtype, &to));
    if (!ree_quant_range(x->dtype, &low, &high) && x->dtype != REE_I32 &&
        !ree_quant_is_float(x->dtype))
        return unsupported(lower, x->dtype, to);
    if (to != REE_F32 && to != REE_F16 && to != REE_BF16) return unsupported(lower, x->dtype, to);
    REE_TRY(ree_quant_scale(lower, scale, "x_scale", &scale));
    if (zero) REE_TRY(require_alike(lower, zero, "x_zero_point", scale, "x_scale"));
    REE_TRY(ree_quant_zero(lower, zero, "x_zero_point", x->dtype, &zero));
    REE_TRY(spread(lower, scale, "x_scale", x, &scale));
    if (zero) REE_TRY(spread(lower, zero, "x_zero_point", x, &zero));
    struct ree_expr_builder e;
    ree_expr_init(&e, lower, x->rank, x->dims);
    int value = ree_expr_tensor(&e, x), z = ree_quant_expr_zero(&e, zero);
    value = ree_quant_expr_real(&e, value, x->dtype, z, ree_expr_tensor(&e, scale));
    return ree_lower_map(&e, ree_expr_cast(&e, value, REE_F32, to), to, &out[0]);
}

RULE(dynamic_quantize_linear) {
    return ree_quant_dynamic(lower, in[0], &out[0], &out[1], &out[2]);
}
