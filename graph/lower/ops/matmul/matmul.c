// MatMul and Gemm.
#include "graph/lower/ops/rules.h"

static bool has_matmul(enum ree_dtype t) {
    return ree_product_dtype(t, t) != REE_DTYPE_NONE && t != REE_I8 && t != REE_U8;
}

// float16 and bfloat16 operands are not converted: the product widens them and sums in float32. The
// result is rounded to their type at the end.
static bool is_narrow(enum ree_dtype t) {
    return t == REE_F16 || t == REE_BF16;
}

// Multiplies A and B. A vector is treated as a row on the left and as a column on the right; the
// added dimension is dropped from the product. The result has A's type.
static enum ree_status multiply(struct ree_lower *lower, struct ree_view *a, struct ree_view *b,
                                struct ree_view **out) {
    struct ree_view *product;
    REE_TRY(ree_rule_require_rank(lower, a, "A", 1, REE_MAX_RANK));
    REE_TRY(ree_rule_require_rank(lower, b, "B", 1, REE_MAX_RANK));
    bool row = a->rank == 1, column = b->rank == 1;
    if (row) REE_TRY(ree_lower_reshape(lower, a, 2, (int64_t[]){1, a->dims[0]}, &a));
    if (column) REE_TRY(ree_lower_reshape(lower, b, 2, (int64_t[]){b->dims[0], 1}, &b));
    REE_TRY(ree_lower_matmul(lower, a, b, &product));
    REE_TRY(ree_lower_cast(lower, product, a->dtype, &product));
    *out = product;
    if (!row && !column) return REE_OK;
    int64_t dims[REE_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < product->rank; i++) {
        if ((row && i == product->rank - 2) || (column && i == product->rank - 1)) continue;
        dims[rank++] = product->dims[i];
    }
    return ree_lower_reshape(lower, product, rank, dims, out);
}

RULE(matmul) {
    if (!has_matmul(in[0]->dtype)) return ree_rule_unsupported(lower, in[0]->dtype);
    REE_TRY(ree_rule_same_type(lower, in[1], "B", in[0], "A"));
    return multiply(lower, in[0], in[1], &out[0]);
}

// MatMul of ree.internal, in which graph/passes/factors.c lets the product read B as it is stored.
// `widened`: B is float16 or bfloat16 and A is float32.
RULE(factor_matmul) {
    struct ree_view *a = in[0], *b = in[1];
    bool widened = ree_rule_int(lower, "widened", 0) != 0;
    char text[128];
    if (!has_matmul(a->dtype)) return ree_rule_unsupported(lower, a->dtype);
    if (!widened) REE_TRY(ree_rule_same_type(lower, b, "B", a, "A"));
    if (widened && (a->dtype != REE_F32 || !is_narrow(b->dtype)))
        return ree_lower_fail(lower, REE_INVALID,
                              "input A is %s, expected the type of B, float32, to which B was cast",
                              ree_view_text(a, text, sizeof text));
    REE_TRY(ree_rule_require_rank(lower, b, "B", 2, 2));
    if (ree_rule_int(lower, "transB", 0))
        REE_TRY(ree_lower_transpose(lower, b, (uint32_t[]){1, 0}, &b));
    return multiply(lower, a, b, &out[0]);
}

// Computes alpha * A B + beta * C. alpha or beta = 1 does not change any bit and is omitted.
RULE(gemm) {
    struct ree_view *a = in[0], *b = in[1], *c = ree_rule_input(lower, in, 2), *product;
    enum ree_dtype given = a->dtype, dtype = is_narrow(given) ? REE_F32 : given;
    float alpha = ree_rule_float(lower, "alpha", 1);
    float beta = ree_rule_float(lower, "beta", 1);
    if (!has_matmul(given)) return ree_rule_unsupported(lower, given);
    if (dtype != REE_F32 && dtype != REE_F64 && (alpha != 1 || (c && beta != 1)))
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "Gemm of %s with alpha or beta other than 1 is not supported",
                              ree_dtype_name(dtype));
    REE_TRY(ree_rule_same_type(lower, b, "B", a, "A"));
    REE_TRY(ree_rule_require_rank(lower, a, "A", 2, 2));
    REE_TRY(ree_rule_require_rank(lower, b, "B", 2, 2));
    if (ree_rule_int(lower, "transA", 0))
        REE_TRY(ree_lower_transpose(lower, a, (uint32_t[]){1, 0}, &a));
    if (ree_rule_int(lower, "transB", 0))
        REE_TRY(ree_lower_transpose(lower, b, (uint32_t[]){1, 0}, &b));
    REE_TRY(ree_lower_matmul(lower, a, b, &product));
    if (!c && alpha == 1) return ree_lower_cast(lower, product, given, &out[0]);

    if (c) REE_TRY(ree_rule_same_type(lower, c, "C", a, "A"));
    struct ree_expr_builder e;
    ree_expr_init(&e, lower, 2, product->dims);
    int value = ree_expr_tensor(&e, product);
    if (alpha != 1) value = ree_expr_op2(&e, REE_MAP_mul_f32, value, ree_expr_f32(&e, alpha));
    if (c) {
        static const struct ree_typed_op add = {REE_MAP_add_f32, REE_MAP_add_i32, REE_MAP_add_i32,
                                                REE_MAP_add_i64, REE_MAP_add_i64, REE_OP_NONE};
        int addend = ree_expr_cast(&e, ree_expr_tensor(&e, c), given, dtype);
        if (beta != 1) addend = ree_expr_op2(&e, REE_MAP_mul_f32, addend, ree_expr_f32(&e, beta));
        value = ree_expr_op2(&e, ree_typed_op_of(&add, dtype), value, addend);
    }
    return ree_lower_map(&e, ree_expr_cast(&e, value, dtype, given), given, &out[0]);
}
