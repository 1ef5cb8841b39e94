// MatMulNBits: a matrix product with weights in blocks of 4 or 8 bits, which the product itself
// reads. The form of the domain `ree` also quantises A, in blocks of int8.
#include <string.h>

#include "graph/lower/ops/quant/quant.h"

struct nbits {
    int64_t n, k, block, bits, n_blocks;
};

static enum ree_status read_attributes(struct ree_lower *lower, struct nbits *out) {
    struct nbits a = {.n = ree_rule_int(lower, "N", 0),
                      .k = ree_rule_int(lower, "K", 0),
                      .block = ree_rule_int(lower, "block_size", 0),
                      .bits = ree_rule_int(lower, "bits", 4)};
    if (a.n < 1 || a.k < 1 || a.n > INT32_MAX || a.k > INT32_MAX)
        return ree_lower_fail(lower, REE_INVALID, "N is %lld and K %lld, expected 1 or more",
                              (long long)a.n, (long long)a.k);
    if (a.bits != 4 && a.bits != 8)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "bits is %lld, expected 4 or 8",
                              (long long)a.bits);
    if (a.block < 16 || a.block > REE_CHUNK || (a.block & (a.block - 1)))
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "block_size is %lld, expected a power of two from 16 to %d",
                              (long long)a.block, REE_CHUNK);
    a.n_blocks = (a.k + a.block - 1) / a.block;
    // No tensor may have 2^31 elements or more. So the products below fit their types.
    if (a.n_blocks * a.block > INT32_MAX / a.n)
        return ree_lower_fail(lower, REE_INVALID,
                              "N is %lld and K %lld, expected a product below 2^31", (long long)a.n,
                              (long long)a.k);
    *out = a;
    return REE_OK;
}

static enum ree_status require_count(struct ree_lower *lower, const struct ree_view *t,
                                     const char *name, enum ree_dtype dtype, int64_t count) {
    char text[128];
    if (t->dtype == dtype && ree_view_count(t) == count) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "input %s is %s, expected %lld elements of %s", name,
                          ree_view_text(t, text, sizeof text), (long long)count,
                          ree_dtype_name(dtype));
}

// Unpacks zero points of 4 bits to one byte each. They are packed two per byte; each row begins at
// a new byte.
static enum ree_status unpack_zeros(struct ree_lower *lower, struct ree_view *packed,
                                    const struct nbits *a, struct ree_view **out) {
    int64_t pairs = (a->n_blocks + 1) / 2, dims[3] = {a->n, pairs, 1};
    REE_TRY(require_count(lower, packed, "zero_points", REE_U8, a->n * pairs));
    REE_TRY(ree_lower_reshape(lower, packed, 3, dims, &packed));
    dims[2] = 2;
    struct ree_expr_builder e;
    ree_expr_init(&e, lower, 3, dims);
    int shift = ree_expr_iota(&e, REE_I32, 0, (int64_t[]){0, 0, 4});
    int digit = ree_expr_op2(&e, REE_MAP_shr_b32, ree_expr_tensor(&e, packed), shift);
    digit = ree_expr_op2(&e, REE_MAP_and_b32, digit, ree_expr_i32(&e, 15));
    REE_TRY(ree_lower_map(&e, digit, REE_U8, out));
    REE_TRY(ree_lower_reshape(lower, *out, 2, (int64_t[]){a->n, 2 * pairs}, out));
    return ree_lower_slice(lower, *out, 1, 0, 1, a->n_blocks, out);
}

// A and its weights, checked and ready for the RepOp.
struct operands {
    struct nbits w;
    struct ree_view *a;            // as given
    struct ree_view *b, *scales;   // dense
    struct ree_view *zeros, *bias; // NULL: none
};

// Inputs: A (..., K), B, scales, zero_points, g_idx, bias.
static enum ree_status read_operands(struct ree_lower *lower, struct ree_view *const *in,
                                     struct operands *out) {
    struct operands o = {.a = in[0],
                         .b = in[1],
                         .scales = in[2],
                         .zeros = ree_rule_input(lower, in, 3),
                         .bias = ree_rule_input(lower, in, 5)};
    REE_TRY(read_attributes(lower, &o.w));
    const struct nbits *w = &o.w;
    char text[128];
    if (o.a->dtype != REE_F32 && o.a->dtype != REE_F16 && o.a->dtype != REE_BF16)
        return ree_lower_fail(lower, REE_INVALID,
                              "input A is %s, expected float32, float16 or bfloat16",
                              ree_view_text(o.a, text, sizeof text));
    if (o.a->rank == 0 || o.a->dims[o.a->rank - 1] != w->k)
        return ree_lower_fail(lower, REE_INVALID, "input A is %s, expected rows of K = %lld",
                              ree_view_text(o.a, text, sizeof text), (long long)w->k);
    if (ree_rule_input(lower, in, 4))
        return ree_lower_fail(lower, REE_UNSUPPORTED, "input g_idx is not supported");
    REE_TRY(require_count(lower, o.b, "B", REE_U8, w->n * w->n_blocks * w->block * w->bits / 8));
    REE_TRY(require_count(lower, o.scales, "scales", o.scales->dtype, w->n * w->n_blocks));
    REE_TRY(ree_quant_scale(lower, o.scales, "scales", &o.scales));
    if (o.zeros && o.zeros->dtype != REE_U8)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "zero_points of %s are not supported",
                              ree_dtype_name(o.zeros->dtype));
    if (o.zeros && w->bits == 4) REE_TRY(unpack_zeros(lower, o.zeros, w, &o.zeros));
    if (o.zeros) REE_TRY(require_count(lower, o.zeros, "zero_points", REE_U8, w->n * w->n_blocks));
    REE_TRY(ree_lower_dense(lower, o.b, &o.b));
    REE_TRY(ree_lower_dense(lower, o.scales, &o.scales));
    if (o.zeros) REE_TRY(ree_lower_dense(lower, o.zeros, &o.zeros));
    // The weights must begin at the start of their storage (lower.h, ree_lower_emit).
    if (o.b->offset != 0) {
        struct ree_view *own;
        REE_TRY(ree_lower_new(lower, REE_U8, o.b->rank, o.b->dims, &own));
        REE_TRY(ree_lower_copy_into(lower, o.b, own));
        o.b = own;
    }
    *out = o;
    return REE_OK;
}

// Multiplies `rows` (m, K) by the weights. a_scales: the scales of rows of int8, NULL for floats.
static enum ree_status multiply(struct ree_lower *lower, const struct operands *o,
                                struct ree_view *rows, struct ree_view *a_scales, int64_t a_block,
                                struct ree_view **out) {
    const struct nbits *w = &o->w;
    REE_TRY(ree_lower_new(lower, REE_F32, 2, (int64_t[]){rows->dims[0], w->n}, out));
    union ree_params params;
    struct ree_matmul_params *p = &params.matmul;
    memset(p, 0, sizeof *p);
    p->dtype = REE_F32;
    p->a_dtype = (uint32_t)rows->dtype;
    p->b_dtype = REE_U8;
    p->m = (uint32_t)rows->dims[0];
    p->n = (uint32_t)w->n;
    p->k = (uint32_t)w->k;
    p->a_offset = (int32_t)rows->offset;
    p->a_stride_m = (int32_t)rows->strides[0];
    p->a_stride_k = (int32_t)rows->strides[1];
    p->n_batch = 1;
    p->b_block = (uint32_t)w->block;
    p->b_bits = (uint32_t)w->bits;
    p->has_zero_points = o->zeros != NULL;
    p->a_block = (uint32_t)a_block;
    struct ree_view *operands[6] = {rows, o->b, o->scales};
    uint32_t n = 3;
    if (o->zeros) operands[n++] = o->zeros;
    if (a_scales) operands[n++] = a_scales;
    operands[n++] = *out;
    return ree_lower_emit(lower, REE_REPOP_MATMUL, &params, operands, n, 1);
}

// Adds the bias, rounds to A's type and restores A's leading dimensions.
static enum ree_status finish(struct ree_lower *lower, const struct operands *o,
                              struct ree_view *product, struct ree_view **out) {
    struct ree_view *a = o->a;
    struct ree_expr_builder e;
    ree_expr_init(&e, lower, 2, product->dims);
    int value = ree_expr_tensor(&e, product);
    if (o->bias) {
        REE_TRY(ree_rule_same_type(lower, o->bias, "bias", a, "A"));
        REE_TRY(ree_rule_require_vector(lower, o->bias, "bias", o->w.n));
        int addend = ree_expr_cast(&e, ree_expr_tensor(&e, o->bias), a->dtype, REE_F32);
        value = ree_expr_op2(&e, REE_MAP_add_f32, value, addend);
    }
    if (o->bias || a->dtype != REE_F32)
        REE_TRY(ree_lower_map(&e, ree_expr_cast(&e, value, REE_F32, a->dtype), a->dtype, &product));
    int64_t dims[REE_MAX_RANK];
    for (uint32_t i = 0; i < a->rank; i++)
        dims[i] = i + 1 == a->rank ? o->w.n : a->dims[i];
    return ree_lower_reshape(lower, product, a->rank, dims, out);
}

// Returns A as a matrix: (m, K).
static enum ree_status as_rows(struct ree_lower *lower, const struct operands *o,
                               struct ree_view **out) {
    int64_t m = 1;
    for (uint32_t i = 0; i + 1 < o->a->rank; i++)
        m *= o->a->dims[i];
    return ree_lower_reshape(lower, o->a, 2, (int64_t[]){m, o->w.k}, out);
}

RULE(matmul_nbits) {
    struct operands o;
    struct ree_view *rows, *product;
    REE_TRY(read_operands(lower, in, &o));
    REE_TRY(as_rows(lower, &o, &rows));
    REE_TRY(multiply(lower, &o, rows, NULL, 0, &product));
    return finish(lower, &o, product, &out[0]);
}

// Blocks of int8 (NUMERICS.md section 10, "Quantisation")

// Views rows (m, K) as blocks (m, n, block). If the last block is not whole, zeros complete a copy.
static enum ree_status as_blocks(struct ree_lower *lower, struct ree_view *rows, int64_t block,
                                 struct ree_view **out) {
    int64_t m = rows->dims[0], k = rows->dims[1], n = (k + block - 1) / block;
    if (k % block != 0) {
        struct ree_view *padded, *part;
        struct ree_expr_builder e;
        REE_TRY(ree_lower_new(lower, rows->dtype, 2, (int64_t[]){m, n * block}, &padded));
        REE_TRY(ree_lower_slice(lower, padded, 1, 0, 1, k, &part));
        REE_TRY(ree_lower_copy_into(lower, rows, part));
        int64_t rest = n * block - k;
        ree_expr_init(&e, lower, 2, (int64_t[]){m, rest});
        struct ree_view *zeros;
        int zero = ree_expr_cast(&e, ree_expr_f32(&e, 0), REE_F32, rows->dtype);
        REE_TRY(ree_lower_map(&e, zero, rows->dtype, &zeros));
        REE_TRY(ree_lower_slice(lower, padded, 1, k, 1, rest, &part));
        REE_TRY(ree_lower_copy_into(lower, zeros, part));
        rows = padded;
    }
    return ree_lower_reshape(lower, rows, 3, (int64_t[]){m, n, block}, out);
}

// Quantises rows (m, K) of floats: numbers (m, n * block) of int8 and scales (m, n).
static enum ree_status quantise_rows(struct ree_lower *lower, struct ree_view *rows, int64_t block,
                                     struct ree_view **out_numbers, struct ree_view **out_scales) {
    struct ree_view *blocks, *sizes, *scales, *numbers;
    REE_TRY(as_blocks(lower, rows, block, &blocks));
    struct ree_expr_builder e;
    ree_expr_init(&e, lower, 3, blocks->dims);
    int x = ree_expr_cast(&e, ree_expr_tensor(&e, blocks), rows->dtype, REE_F32);
    REE_TRY(ree_lower_map(&e, ree_expr_op1(&e, REE_MAP_abs_f32, x), REE_F32, &sizes));
    REE_TRY(ree_lower_reduce(lower, sizes, REE_REDUCE_MAX, 1u << 2, true, false, &sizes));
    ree_expr_init(&e, lower, 3, sizes->dims);
    int scale =
        ree_expr_op2(&e, REE_MAP_div_f32, ree_expr_tensor(&e, sizes), ree_expr_f32(&e, 127));
    REE_TRY(ree_lower_map(&e, scale, REE_F32, &scales));
    ree_expr_init(&e, lower, 3, blocks->dims);
    x = ree_expr_cast(&e, ree_expr_tensor(&e, blocks), rows->dtype, REE_F32);
    x = ree_expr_op2(&e, REE_MAP_div_f32, x, ree_expr_tensor(&e, scales));
    int number = ree_quant_expr_round(&e, x, REE_QUANT_NO_ZERO, REE_I8);
    REE_TRY(ree_lower_map(&e, number, REE_I8, &numbers));
    int64_t n = blocks->dims[1];
    REE_TRY(ree_lower_reshape(lower, scales, 2, (int64_t[]){rows->dims[0], n}, out_scales));
    return ree_lower_reshape(lower, numbers, 2, (int64_t[]){rows->dims[0], n * block}, out_numbers);
}

RULE(matmul_nbits_int8) {
    struct operands o;
    struct ree_view *rows, *product;
    REE_TRY(read_operands(lower, in, &o));
    int64_t block = ree_rule_int(lower, "activation_block_size", 32);
    if (block < 16 || block > REE_CHUNK || (block & (block - 1)))
        return ree_lower_fail(
            lower, REE_UNSUPPORTED,
            "activation_block_size is %lld, expected a power of two from 16 to %d",
            (long long)block, REE_CHUNK);
    while (block > 16 && block / 2 >= o.w.k) // a row is one block either way
        block /= 2;
    REE_TRY(as_rows(lower, &o, &rows));
    struct ree_quantised_rows *last = &lower->quantised_rows;
    if (last->rows != o.a || last->block != block) {
        REE_TRY(quantise_rows(lower, rows, block, &last->numbers, &last->scales));
        last->rows = o.a;
        last->block = block;
    }
    struct ree_view *numbers;
    REE_TRY(ree_lower_slice(lower, last->numbers, 1, 0, 1, o.w.k, &numbers));
    REE_TRY(multiply(lower, &o, numbers, last->scales, block, &product));
    return finish(lower, &o, product, &out[0]);
}
