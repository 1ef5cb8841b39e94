// Shared by the product kernels (matmul, conv): where the matrices of a batch begin, and how a
// finished sum is stored.
#ifndef REE_CUDA_PRODUCT_H
#define REE_CUDA_PRODUCT_H

#include "expr.h"

// Returns the number of operands of a matmul before the tensors of the epilogue: A, B, and the
// scales and zero points of blockwise weights if present.
REE_DEVICE u32 matmul_n_factors(const struct ree_matmul_params &p) {
    return p.b_block ? 3u + (p.has_zero_points != 0) + (p.a_block != 0) : 2u;
}

// Computes where the matrices of batch number `batch` begin: *a and *b are the indices of their
// first elements in the operands A and B.
REE_DEVICE void matmul_batch(const struct ree_matmul_params &p, u32 batch, u32 *a, u32 *b) {
    *a = (u32)p.a_offset;
    *b = (u32)p.b_offset;
    u32 rest = batch;
    REE_NO_UNROLL
    for (u32 d = p.batch_rank; d-- > 0;) {
        u32 c = rest % p.batch_dims[d];
        rest /= p.batch_dims[d];
        *a += c * (u32)p.a_batch_strides[d];
        *b += c * (u32)p.b_batch_strides[d];
    }
}

// Applies the epilogue `e` to n (at most 4) neighbouring results, the first n of `sum`, and stores
// them as elements first ... first + n - 1 of the output. Not inlined: it is long, and many kernels
// end with it. slots: e.n_slots * 4 * n_threads words of shared memory. thread: index of the
// calling thread among the n_threads threads that share `slots`.
REE_DEVICE_CALL void product_epilogue(const struct ree_cuda_header &h,
                                      const struct ree_cuda_expr &e, u32 n_factors, u32 first,
                                      u32 n, float4 sum, ree_shared_t<u32> slots, u32 thread,
                                      u32 n_threads) {
    u32 value[4] = {__float_as_uint(sum.x), __float_as_uint(sum.y), __float_as_uint(sum.z),
                    __float_as_uint(sum.w)};
    u32 out[4];
    ree_expr_run<REE_EXPR_ARITHMETIC, 4>(h, e, n_factors, first, n, true, value, slots, thread,
                                         n_threads, out);
    u32 size = ree_size_of(e.out_dtype), operand = n_factors + e.n_tensors;
    REE_UNROLL
    for (int j = 0; j < 4; j++)
        if ((u32)j < n) ree_store_size(h, operand, size, first + (u32)j, out[j]);
}

// Stores the first n of the four words of x to out[first], out[first + 1], ...
template <class Memory> REE_DEVICE void product_store(Memory out, u32 first, u32 n, float4 x) {
    if (n == 4 && ree_aligned(out, first, 16)) {
        ree_store(out, first, x);
        return;
    }
    if (n > 0) out[first] = x.x;
    if (n > 1) out[first + 1u] = x.y;
    if (n > 2) out[first + 2u] = x.z;
    if (n > 3) out[first + 3u] = x.w;
}

// Finishes four neighbouring float32 totals, of which the first n are elements first ... first + n
// - 1 of the output.
// - to_scratch: stores the totals unchanged in scratch memory, from element scratch_at + first on.
// - Otherwise: performs step 4 of NUMERICS.md section 3 and the epilogue, and stores the results.
//
// slots, thread and n_threads: as for product_epilogue.
template <class Params>
REE_DEVICE void product_finish(const struct ree_cuda_header &h, const Params &p, u32 n_factors,
                               bool to_scratch, u32 scratch_at, u32 first, u32 n, float4 sum,
                               ree_shared_t<u32> slots, u32 thread, u32 n_threads) {
    if (to_scratch) {
        product_store(ree_scratch<float>(h), scratch_at + first, n, sum);
        return;
    }
    sum = make_float4(ree_canon(ree_plus_zero(sum.x)), ree_canon(ree_plus_zero(sum.y)),
                      ree_canon(ree_plus_zero(sum.z)), ree_canon(ree_plus_zero(sum.w)));
    if (p.p.has_epilogue)
        product_epilogue(h, p.epilogue, n_factors, first, n, sum, slots, thread, n_threads);
    else
        product_store(ree_out<float>(h, n_factors), first, n, sum);
}

#endif
