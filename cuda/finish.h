// The final step of a product (matmul.cu, conv.cu) whose partial sums are in scratch memory,
// [n_parts][n_outputs]. Either each part is the result of one chunk, or the only part is the total
// of all chunks. The parts are added in ascending order; then step 4 of NUMERICS.md section 3 and
// the epilogue follow. Integer sums have one part and are used unchanged.
#ifndef REE_CUDA_FINISH_H
#define REE_CUDA_FINISH_H

#include "product.h"

// Finishes four outputs per thread, with no epilogue or one of REE_EXPR_ARITHMETIC operations.
// n_factors: number of operands before the epilogue's tensors. slots: as for product_epilogue.
template <class Params>
REE_DEVICE void finish_words(const struct ree_cuda_header &h, const Params &p, u32 n_factors,
                             u32 n_outputs, bool is_integer, ree_shared_t<u32> slots) {
    const u32 first = ree_thread() * 4u;
    if (first >= n_outputs) return;
    const u32 n = n_outputs - first < 4u ? n_outputs - first : 4u;
    const u32 n_parts = h.extra[REE_CUDA_PRODUCT_N_PARTS];
    auto parts = ree_scratch<float>(h);
    u32 at = h.extra[REE_CUDA_PRODUCT_PARTS_AT] + first;
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    if (is_integer) {
        REE_UNROLL
        for (int j = 0; j < 4; j++)
            if ((u32)j < n) sum[j] = parts[at + (u32)j];
        product_epilogue(h, p.epilogue, n_factors, first, n,
                         make_float4(sum[0], sum[1], sum[2], sum[3]), slots, threadIdx.x,
                         blockDim.x);
        return;
    }
    bool vectors = n == 4u && n_outputs % 4u == 0 && ree_aligned(parts, at, 16);
    for (u32 c = 0; c < n_parts; c++, at += n_outputs) {
        float x[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (vectors) {
            float4 v = ree_load<float4>(parts, at);
            x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
        } else {
            REE_UNROLL
            for (int j = 0; j < 4; j++)
                if ((u32)j < n) x[j] = parts[at + (u32)j];
        }
        REE_UNROLL
        for (int j = 0; j < 4; j++)
            sum[j] = __fadd_rn(sum[j], x[j]);
    }
    product_finish(h, p, n_factors, false, 0, first, n, make_float4(sum[0], sum[1], sum[2], sum[3]),
                   slots, threadIdx.x, blockDim.x);
}

// Finishes one output per thread, with any epilogue. n_factors: number of operands before the
// epilogue's tensors. slots: n_slots * blockDim.x values of 64 bits in shared memory.
template <class Params>
REE_DEVICE void finish_any(const struct ree_cuda_header &h, const Params &p, u32 n_factors,
                           u32 n_outputs, bool is_integer, ree_shared_t<u64> slots) {
    const u32 i = ree_thread();
    if (i >= n_outputs) return;
    auto parts = ree_scratch<u32>(h);
    u32 at = h.extra[REE_CUDA_PRODUCT_PARTS_AT] + i;
    u64 value[1] = {0};
    if (is_integer) {
        value[0] = parts[at];
    } else {
        float sum = 0.0f;
        for (u32 c = 0; c < h.extra[REE_CUDA_PRODUCT_N_PARTS]; c++, at += n_outputs)
            sum = __fadd_rn(sum, ree_float(parts[at]));
        value[0] = __float_as_uint(ree_canon(ree_plus_zero(sum)));
    }
    u64 out[1];
    ree_expr_run<REE_EXPR_ALL, 1>(h, p.epilogue, n_factors, i, 1, true, value, slots, threadIdx.x,
                                  blockDim.x, out);
    ree_store_size(h, n_factors + p.epilogue.n_tensors, ree_size_of(p.epilogue.out_dtype), i,
                   out[0]);
}

#endif
