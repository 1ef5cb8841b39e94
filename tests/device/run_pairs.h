// Makes and checks matrix products of bfloat16 by bfloat16 whose terms come close to the subnormal
// numbers. They test for which operands the CPU uses the tiles of device/cpu/tiles_pairs.h, whose
// instruction flushes subnormals.
#ifndef REE_TESTS_DEVICE_RUN_PAIRS_H
#define REE_TESTS_DEVICE_RUN_PAIRS_H

#include "device/cpu/cpu_internal.h"
#include "reference_products.h"

// Shape of each product: PAIRS_M x PAIRS_N outputs. Each output is a dot product of PAIRS_K terms,
// in PAIRS_CHUNKS chunks of at most 256 terms.
#define PAIRS_M 40
#define PAIRS_N 72
#define PAIRS_K 600
#define PAIRS_CHUNKS 3

// Fills a (PAIRS_M, PAIRS_K) and b (PAIRS_N, PAIRS_K) with random bfloat16 bits. In each chunk,
// every 4 rows of a and every 8 rows of b have their own range of exponents. The least exponents of
// a and b mostly add up to REE_PAIRS_LEAST_SUM, the bound for the tiles, give or take 3, and
// sometimes to any other sum. In some chunks terms cancel except for their last bits.
void run_pairs_fill(struct random_source *random, uint16_t *a, uint16_t *b);

// Computes the product of a (PAIRS_M, PAIRS_K) and the transpose of b (PAIRS_N, PAIRS_K) with the
// CPU's matmul. out: (PAIRS_M, PAIRS_N). Exits if matmul fails.
void run_pairs_multiply(const struct ree_cpu_context *ctx, const uint16_t *a, const uint16_t *b,
                        float *out);
// Computes the product that run_pairs_multiply computes, term by term from the definition
// (NUMERICS.md section 3).
void run_pairs_define(const uint16_t *a, const uint16_t *b, float *out);

// Computes n_products random products on every instruction set of this machine; the portable one
// uses a C model of the instruction that multiplies pairs. Returns the number of outputs whose bits
// differ from run_pairs_define.
long run_pairs(uint64_t seed, uint32_t n_products);

#endif
