// For cpu_pairs_planted: a bound for pairs of bfloat16 that is too low by one.
#define ree_pairs_exact right_pairs_exact
#include "device/cpu/tiles_pairs.h"
#undef ree_pairs_exact

static inline bool ree_pairs_exact(uint32_t least_a, uint32_t least_b) {
    return right_pairs_exact(least_a, least_b) ||
           (least_a && least_b && least_a + least_b + 1 == REE_PAIRS_LEAST_SUM);
}

#include "device/cpu/matmul_gemm.c"
