// The steps that the quantised operators share (quant.h).
#include "graph/lower/ops/quant/quant.h"

#include <string.h>

bool ree_quant_range(enum ree_dtype dtype, int32_t *out_low, int32_t *out_high) {
    switch (dtype) {
    case REE_U8: *out_low = 0, *out_high = 255; return true;
    case REE_I8: *out_low = -128, *out_high = 127; return true;
    case REE_U16: *out_low = 0, *out_high = 65535; return true;
    case REE_I16: *out_low = -32768, *out_high = 32767; return true;
    case REE_U4: *out_low = 0, *out_high = 15; return true;
    case REE_I4: *out_low = -8, *out_high = 7; return true;
    case REE_U2: *out_low = 0, *out_high = 3; return true;
    case REE_I2: *out_low = -2, *out_high = 1; return true;
    default: return false;
    }
}

bool ree_quant_is_float(enum ree_dtype dtype) {
    switch (dtype) {
    case REE_F8E4M3FN:
    case REE_F8E4M3FNUZ:
    case REE_F8E5M2:
    case REE_F8E5M2FNUZ:
    case REE_F4E2M1: return true;
    default: return false;
    }
}

enum ree_status ree_quant_require(struct ree_lower *lower, const struct ree_view *t,
                                  const char *name) {
    char text[128];
    int32_t low, high;
    if (ree_quant_range(t->dtype, &low, &high)) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID,
                          "input %s is %s, expected integers of 2, 4, 8 or 16 bits", name,
                          ree_view_text(t, text, sizeof text));
}

enum ree_status ree_quant_require_byte(struct ree_lower *lower, const struct ree_view *t,
                                       const char *name) {
    char text[128];
    if (t->dtype == REE_I8 || t->dtype == REE_U8) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "input %s is %s, expected int8 or uint8", name,
                          ree_view_text(t, text, sizeof text));
}

enum ree_status ree_quant_require_f32(struct ree_lower *lower, const struct ree_view *t,
                                      const char *name) {
    char text[128];
    if (t->dtype == REE_F32) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "input %s is %s, expected float32", name,
                          ree_view_text(t, text, sizeof text));
}

enum ree_status ree_quant_scale(struct ree_lower *lower, struct ree_view *t, const char *name,
                                struct ree_view **out) {
    char text[128];
    if (t->dtype != REE_F32 && t->dtype != REE_F16 && t->dtype != REE_BF16)
        return ree_lower_fail(lower, REE_INVALID,
                              "input %s is %s, expected float32, float16 or bfloat16", name,
                              ree_view_text(t, text, sizeof text));
    return ree_lower_cast(lower, t, REE_F32, out);
}

static bool is_known_zero(const struct ree_view *t) {
    if (!t->storage->host || ree_view_count(t) == 0) return false;
    const uint8_t *bytes = t->storage->host;
    for (uint64_t i = 0; i < t->storage->nbytes; i++)
        if (bytes[i]) return false;
    return true;
}

enum ree_status ree_quant_zero(struct ree_lower *lower, struct ree_view *t, const char *name,
                               enum ree_dtype dtype, struct ree_view **out) {
    *out = NULL;
    if (!t) return REE_OK;
    if (t->dtype != dtype)
        return ree_lower_fail(lower, REE_INVALID, "input %s is %s, expected %s", name,
                              ree_dtype_name(t->dtype), ree_dtype_name(dtype));
    if (!is_known_zero(t)) *out = t;
    return REE_OK;
}

enum ree_status ree_quant_along(struct ree_lower *lower, struct ree_view *t, const char *name,
                                uint32_t rank, uint32_t axis, int64_t size, struct ree_view **out) {
    char text[128];
    int64_t count = ree_view_count(t), dims[REE_MAX_RANK];
    if (t->rank > 1 || (count != 1 && count != size))
        return ree_lower_fail(lower, REE_INVALID,
                              "input %s is %s, expected a scalar or %lld elements", name,
                              ree_view_text(t, text, sizeof text), (long long)size);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == axis ? count : 1;
    return ree_lower_reshape(lower, t, rank, dims, out);
}

enum ree_status ree_quant_single(struct ree_lower *lower, struct ree_view *t, const char *name,
                                 struct ree_view **out) {
    char text[128];
    if (ree_view_count(t) != 1)
        return ree_lower_fail(lower, REE_INVALID, "input %s is %s, expected one element", name,
                              ree_view_text(t, text, sizeof text));
    return ree_lower_reshape(lower, t, 0, NULL, out);
}

// Expressions

int ree_quant_expr_zero(struct ree_expr_builder *e, struct ree_view *zero) {
    return zero ? ree_expr_tensor(e, zero) : REE_QUANT_NO_ZERO;
}

// Clamps before the addition, so that the addition cannot overflow.
int ree_quant_expr_round(struct ree_expr_builder *e, int x, int zero, enum ree_dtype dtype) {
    int32_t low = 0, high = 0;
    ree_quant_range(dtype, &low, &high);
    int q = ree_expr_op1(e, REE_MAP_f32_to_i32, ree_expr_op1(e, REE_MAP_round_f32, x));
    int min = ree_expr_i32(e, low), max = ree_expr_i32(e, high);
    if (zero != REE_QUANT_NO_ZERO) {
        min = ree_expr_op2(e, REE_MAP_sub_i32, min, zero);
        max = ree_expr_op2(e, REE_MAP_sub_i32, max, zero);
    }
    q = ree_expr_op2(e, REE_MAP_min_i32, ree_expr_op2(e, REE_MAP_max_i32, q, min), max);
    return zero != REE_QUANT_NO_ZERO ? ree_expr_op2(e, REE_MAP_add_i32, q, zero) : q;
}

int ree_quant_expr_real(struct ree_expr_builder *e, int q, enum ree_dtype dtype, int zero,
                        int scale) {
    if (ree_quant_is_float(dtype)) {
        q = ree_expr_cast(e, q, dtype, REE_F32);
        if (zero != REE_QUANT_NO_ZERO)
            q = ree_expr_op2(e, REE_MAP_sub_f32, q, ree_expr_cast(e, zero, dtype, REE_F32));
    } else {
        if (zero != REE_QUANT_NO_ZERO) q = ree_expr_op2(e, REE_MAP_sub_i32, q, zero);
        q = ree_expr_op1(e, REE_MAP_i32_to_f32, q);
    }
    return ree_expr_op2(e, REE_MAP_mul_f32, q, scale);
}

int ree_quant_expr_narrow(struct ree_expr_builder *e, int x, int zero, enum ree_dtype dtype) {
    if (zero != REE_QUANT_NO_ZERO)
        x = ree_expr_op2(e, REE_MAP_add_f32, x, ree_expr_cast(e, zero, dtype, REE_F32));
    bool saturate = ree_rule_int(e->lower, "saturate", 1) != 0;
    struct ree_cast_mode mode = {.no_saturate = !saturate};
    return ree_expr_cast_mode(e, x, REE_F32, dtype, mode);
}

enum ree_status ree_quant_dequantize(struct ree_lower *lower, struct ree_view *q,
                                     struct ree_view *scale, struct ree_view *zero,
                                     struct ree_view **out) {
    struct ree_expr_builder e;
    ree_expr_init(&e, lower, q->rank, q->dims);
    int value = ree_expr_tensor(&e, q), s = ree_expr_tensor(&e, scale);
    value = ree_quant_expr_real(&e, value, q->dtype, ree_quant_expr_zero(&e, zero), s);
    return ree_lower_map(&e, value, REE_F32, out);
}

enum ree_status ree_quant_quantize(struct ree_lower *lower, struct ree_view *x,
                                   struct ree_view *scale, struct ree_view *zero,
                                   enum ree_dtype dtype, struct ree_view **out) {
    struct ree_expr_builder e;
    ree_expr_init(&e, lower, x->rank, x->dims);
    int value = ree_expr_tensor(&e, x), s = ree_expr_tensor(&e, scale);
    value = ree_expr_op2(&e, REE_MAP_div_f32, value, s);
    value = ree_quant_expr_round(&e, value, ree_quant_expr_zero(&e, zero), dtype);
    return ree_lower_map(&e, value, dtype, out);
}

enum ree_status ree_quant_dynamic(struct ree_lower *lower, struct ree_view *x,
                                  struct ree_view **out_q, struct ree_view **out_scale,
                                  struct ree_view **out_zero) {
    struct ree_view *low, *high;
    uint32_t all = (1u << x->rank) - 1;
    REE_TRY(ree_quant_require_f32(lower, x, lower->node->n_inputs > 1 ? "A" : "x"));
    REE_TRY(ree_lower_reduce(lower, x, REE_REDUCE_MIN, all, false, false, &low));
    REE_TRY(ree_lower_reduce(lower, x, REE_REDUCE_MAX, all, false, false, &high));
    struct ree_expr_builder e;
    ree_expr_init(&e, lower, 0, NULL);
    int zero = ree_expr_f32(&e, 0);
    int min = ree_expr_op2(&e, REE_MAP_min_f32, ree_expr_tensor(&e, low), zero);
    int max = ree_expr_op2(&e, REE_MAP_max_f32, ree_expr_tensor(&e, high), zero);
    int step = ree_expr_op2(&e, REE_MAP_div_f32, ree_expr_op2(&e, REE_MAP_sub_f32, max, min),
                            ree_expr_f32(&e, 255));
    int flat = ree_expr_op2(&e, REE_MAP_eq_f32, max, min);
    step = ree_expr_op3(&e, REE_MAP_select_b32, flat, ree_expr_f32(&e, 1), step);
    REE_TRY(ree_lower_map(&e, step, REE_F32, out_scale));

    ree_expr_init(&e, lower, 0, NULL);
    min = ree_expr_op2(&e, REE_MAP_min_f32, ree_expr_tensor(&e, low), ree_expr_f32(&e, 0));
    int at = ree_expr_op2(&e, REE_MAP_div_f32, ree_expr_op1(&e, REE_MAP_neg_f32, min),
                          ree_expr_tensor(&e, *out_scale));
    REE_TRY(ree_lower_map(&e, ree_quant_expr_round(&e, at, REE_QUANT_NO_ZERO, REE_U8), REE_U8,
                          out_zero));
    return ree_quant_quantize(lower, x, *out_scale, *out_zero, REE_U8, out_q);
}

enum ree_status ree_quant_operand(struct ree_lower *lower, struct ree_view *a, struct ree_view *b,
                                  struct ree_view *c, struct ree_view **out) {
    REE_TRY(ree_rule_step2(lower, REE_MAP_mul_f32, a, b, out));
    return c ? ree_rule_step2(lower, REE_MAP_div_f32, *out, c, out) : REE_OK;
}

// Products

// Makes a single 1, broadcast to dims. The product with it gives the sums of a matrix's rows or
// columns.
static enum ree_status ones(struct ree_lower *lower, uint32_t rank, const int64_t *dims,
                            struct ree_view **out) {
    static const uint8_t one = 1;
    struct ree_view *t;
    REE_TRY(ree_lower_literal(lower, REE_U8, 0, NULL, &one, &t));
    return ree_lower_broadcast(lower, t, rank, dims, out);
}

enum ree_status ree_quant_product(struct ree_lower *lower, struct ree_view *a,
                                  struct ree_view *a_zero, struct ree_view *b,
                                  struct ree_view *b_zero, struct ree_view **out) {
    struct ree_view *sum, *rows = NULL, *columns = NULL, *unit;
    REE_TRY(ree_lower_matmul(lower, a, b, &sum));
    *out = sum;
    if (!a_zero && !b_zero) return REE_OK;
    int64_t k = a->dims[a->rank - 1];
    if (b_zero) {
        REE_TRY(ones(lower, 2, (int64_t[]){k, 1}, &unit));
        REE_TRY(ree_lower_matmul(lower, a, unit, &rows));
    }
    if (a_zero) {
        REE_TRY(ones(lower, 2, (int64_t[]){1, k}, &unit));
        REE_TRY(ree_lower_matmul(lower, unit, b, &columns));
    }
    // sum - a_zero * columns - b_zero * (rows - k * a_zero)
    struct ree_expr_builder e;
    ree_expr_init(&e, lower, sum->rank, sum->dims);
    int value = ree_expr_tensor(&e, sum), za = 0;
    if (a_zero) {
        za = ree_expr_tensor(&e, a_zero);
        value = ree_expr_op2(&e, REE_MAP_sub_i32, value,
                             ree_expr_op2(&e, REE_MAP_mul_i32, za, ree_expr_tensor(&e, columns)));
    }
    if (b_zero) {
        int r = ree_expr_tensor(&e, rows);
        if (a_zero)
            r = ree_expr_op2(&e, REE_MAP_sub_i32, r,
                             ree_expr_op2(&e, REE_MAP_mul_i32, za, ree_expr_i32(&e, (int32_t)k)));
        value = ree_expr_op2(&e, REE_MAP_sub_i32, value,
                             ree_expr_op2(&e, REE_MAP_mul_i32, ree_expr_tensor(&e, b_zero), r));
    }
    return ree_lower_map(&e, value, REE_I32, out);
}

enum ree_status ree_quant_finish(struct ree_lower *lower, struct ree_view *sum,
                                 struct ree_view *factor, struct ree_view *bias,
                                 struct ree_view *zero, enum ree_dtype dtype,
                                 struct ree_view **out) {
    struct ree_expr_builder e;
    ree_expr_init(&e, lower, sum->rank, sum->dims);
    int value = ree_expr_op1(&e, REE_MAP_i32_to_f32, ree_expr_tensor(&e, sum));
    value = ree_expr_op2(&e, REE_MAP_mul_f32, value, ree_expr_tensor(&e, factor));
    if (bias) value = ree_expr_op2(&e, REE_MAP_add_f32, value, ree_expr_tensor(&e, bias));
    if (dtype != REE_F32)
        value = ree_quant_expr_round(&e, value, ree_quant_expr_zero(&e, zero), dtype);
    return ree_lower_map(&e, value, dtype, out);
}
