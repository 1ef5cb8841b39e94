#include "cases.h"

// Chooses the types of the sum, A and B; 4-bit and 8-bit blocks are chosen later.
static void choose_types(struct rng *rng, struct ree_matmul_params *p) {
    static const uint32_t wide[] = {REE_I32, REE_U32, REE_I64, REE_U64};
    static const uint32_t narrow[] = {REE_F32, REE_F16, REE_BF16, REE_I8, REE_U8};
    static const uint32_t bytes[] = {REE_I8, REE_U8};
    switch (rng_below(rng, 8)) {
    case 0: p->dtype = p->a_dtype = p->b_dtype = rng_of(rng, 4, wide); break;
    case 1:
    case 2:
    case 3:
        p->dtype = REE_I32;
        p->a_dtype = rng_of(rng, 2, bytes);
        p->b_dtype = rng_of(rng, 2, bytes);
        break;
    case 4:
    case 5:
        do {
            p->a_dtype = rng_of(rng, 5, narrow);
            p->b_dtype = rng_of(rng, 5, narrow);
        } while (ree_dtype_size((enum ree_dtype)p->a_dtype) == 1 &&
                 ree_dtype_size((enum ree_dtype)p->b_dtype) == 1);
        p->dtype = REE_F32;
        break;
    default: p->dtype = p->a_dtype = p->b_dtype = REE_F32;
    }
}

// Appends blockwise weights; the scales are usually free of NaN and infinity.
static void append_b(struct rng *rng, struct test_case *c, const struct ree_matmul_params *p) {
    uint64_t n_blocks = (uint64_t)p->n * ((p->k + p->b_block - 1) / p->b_block);
    uint64_t n_bytes = n_blocks * p->b_block * p->b_bits / 8;
    uint8_t *bytes = case_input(c, rng, REE_U8, n_bytes);
    for (uint64_t i = 0; i < n_bytes; i++)
        bytes[i] = (uint8_t)rng_next(rng);
    case_input(c, rng, REE_F32, n_blocks);
    if (!p->has_zero_points) return;
    uint8_t *zeros = case_input(c, rng, REE_U8, n_blocks);
    for (uint64_t i = 0; i < n_blocks; i++)
        zeros[i] = (uint8_t)rng_below(rng, 1u << p->b_bits);
}

// Replaces B by blockwise weights.
static void append_blocks(struct rng *rng, struct test_case *c, struct ree_matmul_params *p) {
    static const uint32_t blocks[] = {16, 32, 64, 128, 256};
    p->b_dtype = REE_U8;
    p->b_block = rng_of(rng, 5, blocks);
    p->b_bits = rng_one_in(rng, 3) ? 8 : 4;
    p->has_zero_points = rng_one_in(rng, 2);
    append_b(rng, c, p);
}

// Appends the scales of the blocks of A.
static void append_a_scales(struct rng *rng, struct test_case *c,
                            const struct ree_matmul_params *p) {
    case_input(c, rng, REE_F32, (uint64_t)p->m * ((p->k + p->a_block - 1) / p->a_block));
}

// Few rows times weights of at most 16 bits, with several vectors of columns.
static void choose_narrow_weights(struct rng *rng, struct ree_matmul_params *p) {
    static const uint32_t narrow[] = {REE_F16, REE_BF16, REE_I8, REE_U8};
    static const uint32_t floats[] = {REE_F32, REE_F32, REE_F16, REE_BF16};
    p->dtype = REE_F32;
    p->a_dtype = rng_of(rng, 4, floats);
    p->b_dtype = rng_of(rng, 4, narrow);
    p->m = 1 + rng_below(rng, rng_one_in(rng, 2) ? 2 : 8);
    p->n = 1 + rng_below(rng, 200);
}

bool case_matmul(struct rng *rng, struct test_case *c) {
    case_begin(c, REE_REPOP_MATMUL);
    struct ree_matmul_params *p = &c->dispatch.params.matmul;
    bool is_narrow = rng_one_in(rng, 3);
    choose_types(rng, p);
    if (rng_one_in(rng, 6)) p->dtype = p->a_dtype = p->b_dtype = REE_F64;
    p->k = case_length(rng);
    p->m = 1 + rng_below(rng, rng_one_in(rng, 3) ? 70 : 8);
    p->n = 1 + rng_below(rng, rng_one_in(rng, 3) ? 100 : 12);
    if (is_narrow) choose_narrow_weights(rng, p);
    bool is_blocks = p->dtype == REE_F32 && rng_one_in(rng, is_narrow ? 2 : 4);
    if (is_blocks && rng_one_in(rng, 2)) {
        static const uint32_t blocks[] = {16, 32, 64, 128, 256};
        p->a_dtype = REE_I8;
        p->a_block = rng_of(rng, 5, blocks);
    }
    p->batch_rank = p->a_block ? 0 : rng_below(rng, 3);
    p->n_batch = 1;
    // (batch..., rows, columns) of A, B and the output
    uint32_t a_dims[REE_MAX_RANK], b_dims[REE_MAX_RANK], dims[REE_MAX_RANK], r = p->batch_rank;
    for (uint32_t d = 0; d < r; d++) {
        a_dims[d] = b_dims[d] = dims[d] = p->batch_dims[d] = 1 + rng_below(rng, 4);
        p->n_batch *= p->batch_dims[d];
    }
    if (rng_one_in(rng, 40)) p->n = 0;
    if ((uint64_t)p->n_batch * p->m * p->n * p->k > 1500000) return false;
    a_dims[r] = dims[r] = p->m;
    a_dims[r + 1] = b_dims[r] = p->k;
    b_dims[r + 1] = dims[r + 1] = p->n;
    int32_t strides[REE_MAX_RANK];
    uint32_t flags = CASE_VIEW_REPEATS | CASE_VIEW_BACKWARDS;
    uint64_t n_a = case_view(rng, flags, r + 2, a_dims, strides, &p->a_offset);
    for (uint32_t d = 0; d < r; d++)
        p->a_batch_strides[d] = strides[d];
    p->a_stride_m = strides[r];
    p->a_stride_k = strides[r + 1];
    case_input(c, rng, (enum ree_dtype)p->a_dtype, n_a);
    if (is_blocks) {
        append_blocks(rng, c, p);
        if (p->a_block) append_a_scales(rng, c, p);
    } else {
        uint64_t n_b = case_view(rng, flags, r + 2, b_dims, strides, &p->b_offset);
        for (uint32_t d = 0; d < r; d++)
            p->b_batch_strides[d] = strides[d];
        p->b_stride_k = strides[r];
        p->b_stride_n = strides[r + 1];
        case_input(c, rng, (enum ree_dtype)p->b_dtype, n_b);
    }
    enum ree_dtype dtype = (enum ree_dtype)p->dtype;
    p->has_epilogue = (dtype == REE_F32 || dtype == REE_I32) && rng_one_in(rng, 2);
    if (p->has_epilogue) {
        case_expr(c, rng, &p->epilogue, r + 2, dims, true);
        dtype = (enum ree_dtype)p->epilogue.out_dtype;
        // With the operands of the weights, no operand may be left for the output.
        if (c->dispatch.n_operands == REE_MAX_OPERANDS) return false;
    }
    case_output(c, rng, dtype, case_count(r + 2, dims));
    return true;
}

bool case_matmul_blocks(struct rng *rng, struct test_case *c) {
    case_begin(c, REE_REPOP_MATMUL);
    struct ree_matmul_params *p = &c->dispatch.params.matmul;
    *p = dense_products(9 + rng_below(rng, 16), 20 + rng_below(rng, 150), 1 + rng_below(rng, 700));
    p->b_stride_k = p->b_stride_n = 0;
    case_input(c, rng, REE_F32, (uint64_t)p->m * p->k);
    append_blocks(rng, c, p);
    case_output(c, rng, REE_F32, (uint64_t)p->m * p->n);
    return true;
}

bool case_matmul_looked_up(struct rng *rng, struct test_case *c) {
    case_begin(c, REE_REPOP_MATMUL);
    struct ree_matmul_params *p = &c->dispatch.params.matmul;
    *p = dense_products(30 + rng_below(rng, 20), 6000 + rng_below(rng, 200), 3);
    case_input(c, rng, REE_F32, (uint64_t)p->m * p->k);
    case_input(c, rng, REE_F32, (uint64_t)p->k * p->n);
    p->has_epilogue = true;
    case_expr_looked_up(c, rng, &p->epilogue, p->m, p->n, true);
    case_output(c, rng, (enum ree_dtype)p->epilogue.out_dtype, p->epilogue.n_elements);
    return true;
}

void case_block_product(struct test_case *c, struct rng *rng, const struct ree_matmul_params *p) {
    struct ree_matmul_params *product = &c->dispatch.params.matmul;
    case_begin(c, REE_REPOP_MATMUL);
    *product = dense_products(p->m, p->n, p->k);
    product->a_dtype = REE_I8;
    product->b_dtype = REE_U8;
    product->b_stride_k = product->b_stride_n = 0;
    product->a_block = p->a_block;
    product->b_block = p->b_block;
    product->b_bits = p->b_bits;
    product->has_zero_points = p->has_zero_points;
    case_input(c, rng, REE_I8, (uint64_t)p->m * p->k);
    append_b(rng, c, product);
    append_a_scales(rng, c, product);
    case_output(c, rng, REE_F32, (uint64_t)p->m * p->n);
}
