// Applies an operation to rows of floats and one number per row. Shared by softmax and norm.
#ifndef REE_DEVICE_CPU_SOFTMAX_H
#define REE_DEVICE_CPU_SOFTMAX_H

#include "device/cpu/reduce.h"
#include "repops/scalar/ops.h"

// Returns how many rows of n elements to process at once: enough for every lane of a sum, and few
// enough to stay in the second-level cache.
static inline uint32_t ree_cpu_rows_at_once(uint32_t n) {
    const uint32_t budget = 32768; // elements
    if (n * (uint64_t)REE_CPU_LANES <= budget) return REE_CPU_LANES;
    return n >= budget ? 1 : budget / n;
}

// Number of floats in `block`, the scratch memory of ree_cpu_rows_op.
#define REE_CPU_ROWS_BLOCK (REE_CPU_LANES * 128)

// out[r * n + i] = op(x[r * n + i], y[r]) for i < n, r < n_rows <= REE_CPU_LANES; out may be x.
// `block` is scratch memory of REE_CPU_ROWS_BLOCK floats.
static inline void ree_cpu_rows_op(const struct ree_cpu_expr_kernels *kernels, enum ree_map_op op,
                                   uint32_t n_rows, uint32_t n, const float *x, const float *y,
                                   float *out, float *block) {
    if (n * (uint64_t)n_rows <= REE_CPU_ROWS_BLOCK) { // short rows: all in one loop
        for (uint32_t r = 0; r < n_rows; r++)
            kernels->fill32(n, ree_bits(y[r]), block + r * n);
        kernels->ops[op](n_rows * n, x, block, NULL, out);
        return;
    }
    uint32_t width = n < REE_CPU_ROWS_BLOCK ? n : REE_CPU_ROWS_BLOCK;
    for (uint32_t r = 0; r < n_rows; r++, x += n, out += n) {
        kernels->fill32(width, ree_bits(y[r]), block);
        for (uint32_t i = 0; i < n; i += width)
            kernels->ops[op](n - i < width ? n - i : width, x + i, block, NULL, out + i);
    }
}

#endif
