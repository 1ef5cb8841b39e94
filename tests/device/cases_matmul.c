#include "cases.h"

bool case_matmul(struct rng *rng, struct test_case *c) {
    static const uint32_t dtypes[] = {REE_F32, REE_F32, REE_F32, REE_F32,
                                      REE_I32, REE_U32, REE_I64, REE_U64};
    case_begin(c, REE_REPOP_MATMUL);
    struct ree_matmul_params *p = &c->dispatch.params.matmul;
    p->dtype = rng_of(rng, sizeof dtypes / sizeof *dtypes, dtypes);
    p->batch_rank = rng_below(rng, 3);
    p->n_batch = 1;
    // (batch..., rows, columns) of A, B and the output
    uint32_t a_dims[REE_MAX_RANK], b_dims[REE_MAX_RANK], dims[REE_MAX_RANK], r = p->batch_rank;
    for (uint32_t d = 0; d < r; d++) {
        a_dims[d] = b_dims[d] = dims[d] = p->batch_dims[d] = 1 + rng_below(rng, 4);
        p->n_batch *= p->batch_dims[d];
    }
    p->k = case_length(rng);
    p->m = 1 + rng_below(rng, rng_one_in(rng, 3) ? 70 : 8);
    p->n = 1 + rng_below(rng, rng_one_in(rng, 3) ? 100 : 12);
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
    uint64_t n_b = case_view(rng, flags, r + 2, b_dims, strides, &p->b_offset);
    for (uint32_t d = 0; d < r; d++)
        p->b_batch_strides[d] = strides[d];
    p->b_stride_k = strides[r];
    p->b_stride_n = strides[r + 1];
    enum ree_dtype dtype = (enum ree_dtype)p->dtype;
    case_input(c, rng, dtype, n_a);
    case_input(c, rng, dtype, n_b);
    p->has_epilogue = dtype == REE_F32 && rng_one_in(rng, 2);
    if (p->has_epilogue) {
        case_expr(c, rng, &p->epilogue, r + 2, dims, true);
        dtype = (enum ree_dtype)p->epilogue.out_dtype;
    }
    case_output(c, rng, dtype, case_count(r + 2, dims));
    return true;
}
