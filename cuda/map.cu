// map: out[i] = expr(i), NUMERICS.md sections 1 and 4. A thread computes four neighbouring
// elements, so that words are read and written four at a time and bytes are packed. These kernels
// interpret expressions, for drivers that cannot compile the JIT-generated kernels of
// src/device/cuda/ptx.c.
//
// Memory traffic: the size of the tensors. The interpreter also accesses at most four values in
// shared memory per instruction and element: three arguments and the result.
#include "expr.h"

#define WIDTH 4

REE_KERNEL(map_words, struct ree_cuda_map_params, 128) {
    REE_SHARED_DYNAMIC(u32, slots);
    const struct ree_cuda_expr &e = p.expr;
    u32 first = ree_thread() * WIDTH;
    if (first >= e.n_elements) return;
    u32 n = e.n_elements - first < WIDTH ? e.n_elements - first : WIDTH;
    u32 value[WIDTH];
    ree_expr_run<REE_EXPR_ARITHMETIC, WIDTH>(h, e, 0, first, n, false, value, slots, threadIdx.x,
                                             blockDim.x, value);
    u32 size = ree_size_of(e.out_dtype);
    if (n == WIDTH && size == 4 && ree_aligned(ree_out<u32>(h, e.n_tensors), first, 16)) {
        ree_store(ree_out<u32>(h, e.n_tensors), first,
                  make_uint4(value[0], value[1], value[2], value[3]));
    } else if (n == WIDTH && size == 1) {
        u32 word =
            (value[0] & 255u) | (value[1] & 255u) << 8 | (value[2] & 255u) << 16 | value[3] << 24;
        ree_out<u32>(h, e.n_tensors)[first / 4u] = word;
    } else {
        REE_UNROLL
        for (int j = 0; j < WIDTH; j++)
            if ((u32)j < n) ree_store_size(h, e.n_tensors, size, first + (u32)j, value[j]);
    }
}

// For expressions with 64-bit values or REE_CUDA_LONG_OPS: one element per thread.
REE_KERNEL(map_any, struct ree_cuda_map_params, 128) {
    REE_SHARED_DYNAMIC(u64, slots);
    const struct ree_cuda_expr &e = p.expr;
    u32 i = ree_thread();
    if (i >= e.n_elements) return;
    u64 value[1] = {0};
    ree_expr_run<REE_EXPR_ALL, 1>(h, e, 0, i, 1, false, value, slots, threadIdx.x, blockDim.x,
                                  value);
    ree_store_size(h, e.n_tensors, ree_size_of(e.out_dtype), i, value[0]);
}
