#include "cases.h"

#include <math.h>
#include <string.h>

enum scales {
    SCALES_ANY,
    SCALES_TAME, // as in models: no NaN, nothing huge
    // The last block of each vector has an infinite scale: kernels that read zeros past the end of
    // the vectors must not multiply them by it.
    SCALES_INFINITE_AT_END,
};

static void append_scales(struct rng *rng, struct test_case *c, enum scales kind, uint64_t vectors,
                          uint64_t n_blocks) {
    float *scales = case_input(c, rng, REE_F32, vectors * n_blocks);
    for (uint64_t i = 0; i < vectors * n_blocks && kind != SCALES_ANY; i++) {
        scales[i] = ((float)rng_below(rng, 1u << 24) / (1u << 24) - 0.5f) * 0.01f;
        if (kind == SCALES_INFINITE_AT_END && i % n_blocks == n_blocks - 1) scales[i] = INFINITY;
    }
}

// Blockwise activations and weights, for kernels that take them in vectors and tiles. Some have the
// largest sums of a run: all numbers at an end of their range.
bool case_matmul_int8(struct rng *rng, struct test_case *c) {
    static const uint32_t blocks[] = {16, 32, 32, 64, 128, 256};
    static const uint8_t ends[2] = {0, 255};
    case_begin(c, REE_REPOP_MATMUL);
    struct ree_matmul_params *p = &c->dispatch.params.matmul;
    const uint32_t m = 1 + rng_below(rng, rng_one_in(rng, 2) ? 8 : 140);
    const uint32_t n = 1 + rng_below(rng, rng_one_in(rng, 2) ? 40 : 140);
    uint32_t k = 1 + rng_below(rng, rng_one_in(rng, 3) ? 2600 : 600);
    const bool is_extreme = rng_one_in(rng, 4);
    const enum scales a_kind = is_extreme ? SCALES_TAME : rng_below(rng, 3);
    const enum scales b_kind = is_extreme ? SCALES_TAME : rng_below(rng, 3);
    // Most of a tile's last slice of 64 terms is then past the end.
    if (a_kind == SCALES_INFINITE_AT_END || b_kind == SCALES_INFINITE_AT_END)
        k = k / 64 * 64 + 1 + rng_below(rng, 20);
    if ((uint64_t)m * n * k > 2000000) return false;
    *p = dense_products(m, n, k);
    p->a_dtype = REE_I8;
    p->b_dtype = REE_U8;
    p->a_block = rng_of(rng, 6, blocks);
    p->b_block = rng_of(rng, 6, blocks);
    p->b_bits = is_extreme || rng_one_in(rng, 2) ? 8 : 4;
    p->has_zero_points = rng_one_in(rng, 2);
    p->b_stride_k = p->b_stride_n = 0;
    if (is_extreme) p->a_block = p->b_block = rng_one_in(rng, 2) ? 128 : 256;
    if (rng_one_in(rng, 3)) // columns of A are contiguous
        p->a_stride_m = 1, p->a_stride_k = (int32_t)m;
    else if (rng_one_in(rng, 3)) // rows that are aligned to 16 bytes
        p->a_stride_m = (int32_t)((k + 15) / 16 * 16);
    p->a_offset = rng_one_in(rng, 3) ? (int32_t)rng_below(rng, 20) : 0;
    const uint64_t n_a = (uint64_t)p->a_offset + (uint64_t)(m - 1) * (uint32_t)p->a_stride_m +
                         (uint64_t)(k - 1) * (uint32_t)p->a_stride_k + 1;
    const uint64_t a_blocks = (k + p->a_block - 1) / p->a_block;
    const uint64_t b_blocks = (k + p->b_block - 1) / p->b_block;
    const uint64_t n_bytes = n * b_blocks * p->b_block * p->b_bits / 8;

    uint8_t *a = case_input(c, rng, REE_I8, n_a), *b = case_input(c, rng, REE_U8, n_bytes);
    for (uint64_t i = 0; i < n_bytes; i++)
        b[i] = (uint8_t)rng_next(rng);
    if (is_extreme) {
        memset(a, rng_one_in(rng, 2) ? 128 : 127, n_a);
        memset(b, ends[rng_below(rng, 2)], n_bytes);
    }
    append_scales(rng, c, b_kind, n, b_blocks);
    if (p->has_zero_points) {
        uint8_t *zeros = case_input(c, rng, REE_U8, n * b_blocks);
        const uint32_t end = (1u << p->b_bits) - 1;
        for (uint64_t i = 0; i < n * b_blocks; i++)
            zeros[i] = (uint8_t)(is_extreme ? rng_below(rng, 2) * end : rng_below(rng, end + 1));
    }
    append_scales(rng, c, a_kind, m, a_blocks);
    enum ree_dtype dtype = REE_F32;
    if (!is_extreme && rng_one_in(rng, 3)) {
        const uint32_t dims[] = {m, n};
        p->has_epilogue = 1;
        case_expr(c, rng, &p->epilogue, 2, dims, true);
        if (c->dispatch.n_operands == REE_MAX_OPERANDS) return false;
        dtype = (enum ree_dtype)p->epilogue.out_dtype;
    }
    case_output(c, rng, dtype, (uint64_t)m * n);
    return true;
}
