// MatMulNBits: a matrix product with weights in blocks of 4 or 8 bits, which the product itself
// reads.
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
    // No tensor has more elements. The products below then fit their types.
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

// Inputs: A (..., K), B, scales, zero_points, g_idx, bias.
RULE(matmul_nbits) {
    struct ree_view *a = in[0], *b = in[1], *scales = in[2], *product;
    struct ree_view *zeros = ree_rule_input(lower, in, 3), *bias = ree_rule_input(lower, in, 5);
    struct nbits w;
    REE_TRY(read_attributes(lower, &w));
    char text[128];
    if (a->dtype != REE_F32 && a->dtype != REE_F16 && a->dtype != REE_BF16)
        return ree_lower_fail(lower, REE_INVALID,
                              "input A is %s, expected float32, float16 or bfloat16",
                              ree_view_text(a, text, sizeof text));
    if (a->rank == 0 || a->dims[a->rank - 1] != w.k)
        return ree_lower_fail(lower, REE_INVALID, "input A is %s, expected rows of K = %lld",
                              ree_view_text(a, text, sizeof text), (long long)w.k);
    if (ree_rule_input(lower, in, 4))
        return ree_lower_fail(lower, REE_UNSUPPORTED, "input g_idx is not supported");
    REE_TRY(require_count(lower, b, "B", REE_U8, w.n * w.n_blocks * w.block * w.bits / 8));
    REE_TRY(require_count(lower, scales, "scales", scales->dtype, w.n * w.n_blocks));
    REE_TRY(ree_quant_scale(lower, scales, "scales", &scales));
    if (zeros && zeros->dtype != REE_U8)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "zero_points of %s are not supported",
                              ree_dtype_name(zeros->dtype));
    if (zeros && w.bits == 4) REE_TRY(unpack_zeros(lower, zeros, &w, &zeros));
    if (zeros) REE_TRY(require_count(lower, zeros, "zero_points", REE_U8, w.n * w.n_blocks));
    REE_TRY(ree_lower_dense(lower, b, &b));
    REE_TRY(ree_lower_dense(lower, scales, &scales));
    if (zeros) REE_TRY(ree_lower_dense(lower, zeros, &zeros));

    int64_t dims[REE_MAX_RANK], m = 1;
    for (uint32_t i = 0; i < a->rank; i++) {
        dims[i] = i + 1 == a->rank ? w.n : a->dims[i];
        if (i + 1 < a->rank) m *= a->dims[i];
    }
    struct ree_view *rows;
    REE_TRY(ree_lower_reshape(lower, a, 2, (int64_t[]){m, w.k}, &rows));
    REE_TRY(ree_lower_new(lower, REE_F32, 2, (int64_t[]){m, w.n}, &product));
    union ree_params params;
    struct ree_matmul_params *p = &params.matmul;
    memset(p, 0, sizeof *p);
    p->dtype = REE_F32;
    p->a_dtype = (uint32_t)a->dtype;
    p->b_dtype = REE_U8;
    p->m = (uint32_t)m;
    p->n = (uint32_t)w.n;
    p->k = (uint32_t)w.k;
    p->a_offset = (int32_t)rows->offset;
    p->a_stride_m = (int32_t)rows->strides[0];
    p->a_stride_k = (int32_t)rows->strides[1];
    p->n_batch = 1;
    p->b_block = (uint32_t)w.block;
    p->b_bits = (uint32_t)w.bits;
    p->has_zero_points = zeros != NULL;
    // The weights must begin at the start of their storage (lower.h, ree_lower_emit).
    if (b->offset != 0) {
        struct ree_view *own;
        REE_TRY(ree_lower_new(lower, REE_U8, b->rank, b->dims, &own));
        REE_TRY(ree_lower_copy_into(lower, b, own));
        b = own;
    }
    struct ree_view *operands[5] = {rows, b, scales};
    uint32_t n = 3;
    if (zeros) operands[n++] = zeros;
    operands[n++] = product;
    REE_TRY(ree_lower_emit(lower, REE_REPOP_MATMUL, &params, operands, n, 1));

    struct ree_expr_builder e;
    ree_expr_init(&e, lower, 2, product->dims);
    int value = ree_expr_tensor(&e, product);
    if (bias) {
        REE_TRY(ree_rule_same_type(lower, bias, "bias", a, "A"));
        REE_TRY(ree_rule_require_vector(lower, bias, "bias", w.n));
        int addend = ree_expr_cast(&e, ree_expr_tensor(&e, bias), a->dtype, REE_F32);
        value = ree_expr_op2(&e, REE_MAP_add_f32, value, addend);
    }
    if (bias || a->dtype != REE_F32)
        REE_TRY(ree_lower_map(&e, ree_expr_cast(&e, value, REE_F32, a->dtype), a->dtype, &product));
    return ree_lower_reshape(lower, product, a->rank, dims, &out[0]);
}
