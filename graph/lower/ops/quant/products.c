// Matrix products of 8-bit integers: exact sums, then one factor.
#include "graph/lower/ops/quant/quant.h"

// The operands of a matrix product, as matrices.
struct operands {
    struct ree_view *a, *b;
    bool row, column; // a, or b, was a vector
};

static enum ree_status matrices(struct ree_lower *lower, struct ree_view *a, struct ree_view *b,
                                struct operands *out) {
    REE_TRY(ree_quant_require_byte(lower, a, "A"));
    REE_TRY(ree_quant_require_byte(lower, b, "B"));
    REE_TRY(ree_rule_require_rank(lower, a, "A", 1, REE_MAX_RANK));
    REE_TRY(ree_rule_require_rank(lower, b, "B", 1, REE_MAX_RANK));
    *out = (struct operands){.a = a, .b = b, .row = a->rank == 1, .column = b->rank == 1};
    if (out->row) REE_TRY(ree_lower_reshape(lower, a, 2, (int64_t[]){1, a->dims[0]}, &out->a));
    if (out->column) REE_TRY(ree_lower_reshape(lower, b, 2, (int64_t[]){b->dims[0], 1}, &out->b));
    return REE_OK;
}

// Checks and views a value per row (axis 0) or per column (axis 1) of x: one element, a vector, or
// (..., m, 1) or (..., 1, n). If t is NULL, so is *out.
static enum ree_status along(struct ree_lower *lower, struct ree_view *t, const char *name,
                             const struct ree_view *x, uint32_t axis, struct ree_view **out) {
    *out = t;
    if (!t) return REE_OK;
    int64_t size = x->dims[x->rank - 2 + axis];
    if (t->rank <= 1) return ree_quant_along(lower, t, name, 2, axis, size, out);
    int64_t along_axis = t->dims[t->rank - 2 + axis], across = t->dims[t->rank - 1 - axis];
    if (across == 1 && (along_axis == 1 || along_axis == size)) return REE_OK;
    char text[128];
    return ree_lower_fail(lower, REE_INVALID,
                          "input %s is %s, expected one element, %lld elements or (...,%lld,%lld)",
                          name, ree_view_text(t, text, sizeof text), (long long)size,
                          (long long)(axis ? 1 : size), (long long)(axis ? size : 1));
}

static enum ree_status of_rows(struct ree_lower *lower, struct ree_view *t, const char *name,
                               const struct operands *o, struct ree_view **out) {
    return along(lower, t, name, o->a, 0, out);
}

static enum ree_status of_columns(struct ree_lower *lower, struct ree_view *t, const char *name,
                                  const struct operands *o, struct ree_view **out) {
    return along(lower, t, name, o->b, 1, out);
}

// Removes from the product the dimensions that were added to vectors.
static enum ree_status as_given(struct ree_lower *lower, const struct operands *o,
                                struct ree_view *product, struct ree_view **out) {
    int64_t dims[REE_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < product->rank; i++) {
        bool added = (o->row && i == product->rank - 2) || (o->column && i == product->rank - 1);
        if (!added) dims[rank++] = product->dims[i];
    }
    if (rank == product->rank) {
        *out = product;
        return REE_OK;
    }
    return ree_lower_reshape(lower, product, rank, dims, out);
}

// Computes the int32 product of a - a_zero and b - b_zero.
static enum ree_status sums(struct ree_lower *lower, const struct operands *o,
                            struct ree_view *a_zero, const char *a_name, struct ree_view *b_zero,
                            const char *b_name, struct ree_view **out) {
    REE_TRY(of_rows(lower, a_zero, a_name, o, &a_zero));
    REE_TRY(of_columns(lower, b_zero, b_name, o, &b_zero));
    REE_TRY(ree_quant_zero(lower, a_zero, a_name, o->a->dtype, &a_zero));
    REE_TRY(ree_quant_zero(lower, b_zero, b_name, o->b->dtype, &b_zero));
    return ree_quant_product(lower, o->a, a_zero, o->b, b_zero, out);
}

RULE(matmul_integer) {
    struct operands o;
    struct ree_view *product;
    REE_TRY(matrices(lower, in[0], in[1], &o));
    REE_TRY(sums(lower, &o, ree_rule_input(lower, in, 2), "a_zero_point",
                 ree_rule_input(lower, in, 3), "b_zero_point", &product));
    return as_given(lower, &o, product, &out[0]);
}

RULE(qlinear_matmul) {
    struct operands o;
    struct ree_view *a_scale, *b_scale, *y_scale, *y_zero, *factor, *product;
    enum ree_dtype to = in[7]->dtype;
    REE_TRY(ree_quant_require(lower, in[7], "y_zero_point"));
    REE_TRY(matrices(lower, in[0], in[3], &o));
    REE_TRY(ree_quant_scale(lower, in[1], "a_scale", &a_scale));
    REE_TRY(ree_quant_scale(lower, in[4], "b_scale", &b_scale));
    REE_TRY(ree_quant_scale(lower, in[6], "y_scale", &y_scale));
    REE_TRY(of_rows(lower, a_scale, "a_scale", &o, &a_scale));
    REE_TRY(of_columns(lower, b_scale, "b_scale", &o, &b_scale));
    REE_TRY(of_rows(lower, y_scale, "y_scale", &o, &y_scale));
    REE_TRY(of_rows(lower, in[7], "y_zero_point", &o, &y_zero));
    REE_TRY(ree_quant_zero(lower, y_zero, "y_zero_point", to, &y_zero));
    REE_TRY(sums(lower, &o, in[2], "a_zero_point", in[5], "b_zero_point", &product));
    REE_TRY(ree_quant_operand(lower, a_scale, b_scale, y_scale, &factor));
    REE_TRY(ree_quant_finish(lower, product, factor, NULL, y_zero, to, &product));
    return as_given(lower, &o, product, &out[0]);
}

// Computes float(sums) * (a_scale * b_scale) + bias.
static enum ree_status to_float(struct ree_lower *lower, const struct operands *o,
                                struct ree_view *a_scale, struct ree_view *a_zero,
                                struct ree_view *b_scale, struct ree_view *b_zero,
                                struct ree_view *bias, struct ree_view **out) {
    struct ree_view *factor, *product;
    REE_TRY(ree_quant_scale(lower, a_scale, "a_scale", &a_scale));
    REE_TRY(ree_quant_scale(lower, b_scale, "b_scale", &b_scale));
    REE_TRY(of_rows(lower, a_scale, "a_scale", o, &a_scale));
    REE_TRY(of_columns(lower, b_scale, "b_scale", o, &b_scale));
    if (bias) {
        REE_TRY(ree_quant_require_f32(lower, bias, "bias"));
        REE_TRY(ree_rule_require_vector(lower, bias, "bias", o->b->dims[o->b->rank - 1]));
    }
    REE_TRY(sums(lower, o, a_zero, "a_zero_point", b_zero, "b_zero_point", &product));
    REE_TRY(ree_quant_operand(lower, a_scale, b_scale, NULL, &factor));
    REE_TRY(ree_quant_finish(lower, product, factor, bias, NULL, REE_F32, &product));
    return as_given(lower, o, product, out);
}

// Inputs: A, B, a_scale, b_scale, a_zero_point, b_zero_point, bias.
RULE(matmul_integer_to_float) {
    struct operands o;
    REE_TRY(matrices(lower, in[0], in[1], &o));
    return to_float(lower, &o, in[2], ree_rule_input(lower, in, 4), in[3],
                    ree_rule_input(lower, in, 5), ree_rule_input(lower, in, 6), &out[0]);
}

// Inputs: A (float32), B, b_scale, b_zero_point, bias.
RULE(dynamic_quantize_matmul) {
    struct operands o;
    struct ree_view *q, *scale, *zero;
    REE_TRY(ree_quant_dynamic(lower, in[0], &q, &scale, &zero));
    REE_TRY(matrices(lower, q, in[1], &o));
    return to_float(lower, &o, scale, zero, in[2], ree_rule_input(lower, in, 3),
                    ree_rule_input(lower, in, 4), &out[0]);
}

// Inputs: A, a_scale, a_zero_point, B, b_scale, b_zero_point, C (int32), y_scale, y_zero_point.
// Computes alpha * a_scale * b_scale * (sums + C), quantised if y_scale is given.
RULE(qgemm) {
    struct operands o;
    struct ree_view *a = in[0], *b = in[3], *c = ree_rule_input(lower, in, 6);
    struct ree_view *y_scale = ree_rule_input(lower, in, 7), *a_scale, *b_scale, *factor, *product;
    struct ree_view *y_zero = ree_rule_input(lower, in, 8);
    float alpha = ree_rule_float(lower, "alpha", 1);
    enum ree_dtype to = !y_scale ? REE_F32 : y_zero ? y_zero->dtype : a->dtype;
    REE_TRY(ree_rule_require_rank(lower, a, "A", 2, 2));
    REE_TRY(ree_rule_require_rank(lower, b, "B", 2, 2));
    const uint32_t turned[] = {1, 0};
    if (ree_rule_int(lower, "transA", 0)) REE_TRY(ree_lower_transpose(lower, a, turned, &a));
    if (ree_rule_int(lower, "transB", 0)) REE_TRY(ree_lower_transpose(lower, b, turned, &b));
    REE_TRY(matrices(lower, a, b, &o));
    REE_TRY(ree_quant_scale(lower, in[1], "a_scale", &a_scale));
    REE_TRY(ree_quant_scale(lower, in[4], "b_scale", &b_scale));
    REE_TRY(of_rows(lower, a_scale, "a_scale", &o, &a_scale));
    REE_TRY(of_columns(lower, b_scale, "b_scale", &o, &b_scale));
    REE_TRY(sums(lower, &o, in[2], "a_zero_point", in[5], "b_zero_point", &product));
    if (c) {
        char text[128];
        struct ree_view *broadcast;
        bool fits = c->dtype == REE_I32 && ree_lower_broadcast(lower, c, product->rank,
                                                               product->dims, &broadcast) == REE_OK;
        if (!fits)
            return ree_lower_fail(lower, REE_INVALID,
                                  "input C is %s, expected int32 that broadcasts to [%lld,%lld]",
                                  ree_view_text(c, text, sizeof text), (long long)product->dims[0],
                                  (long long)product->dims[1]);
        struct ree_expr_builder e;
        ree_expr_init(&e, lower, product->rank, product->dims);
        int value =
            ree_expr_op2(&e, REE_MAP_add_i32, ree_expr_tensor(&e, product), ree_expr_tensor(&e, c));
        REE_TRY(ree_lower_map(&e, value, REE_I32, &product));
    }
    REE_TRY(ree_quant_operand(lower, a_scale, b_scale, NULL, &factor));
    if (alpha != 1) {
        struct ree_view *alphas;
        REE_TRY(ree_rule_fill(lower, 0, NULL, alpha, &alphas));
        REE_TRY(ree_rule_step2(lower, REE_MAP_mul_f32, factor, alphas, &factor));
    }
    if (y_scale) {
        if (y_zero) REE_TRY(ree_quant_require(lower, y_zero, "y_zero_point"));
        REE_TRY(ree_quant_scale(lower, y_scale, "y_scale", &y_scale));
        REE_TRY(ree_quant_single(lower, y_scale, "y_scale", &y_scale));
        if (y_zero) REE_TRY(ree_quant_single(lower, y_zero, "y_zero_point", &y_zero));
        REE_TRY(ree_quant_zero(lower, y_zero, "y_zero_point", to, &y_zero));
        REE_TRY(ree_rule_step2(lower, REE_MAP_div_f32, factor, y_scale, &factor));
    }
    return ree_quant_finish(lower, product, factor, NULL, y_zero, to, &out[0]);
}
