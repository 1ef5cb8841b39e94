// Products of bfloat16 by bfloat16 whose sums come close to the subnormal numbers, for the tiles
// of tiles_pairs.h.
#ifndef REE_TESTS_DEVICE_RUN_PAIRS_H
#define REE_TESTS_DEVICE_RUN_PAIRS_H

#include "device/cpu/cpu_internal.h"
#include "reference_products.h"

// Each product has PAIRS_M x PAIRS_N outputs of PAIRS_CHUNKS chunk-dots of at most 256 terms.
#define PAIRS_M 40
#define PAIRS_N 72
#define PAIRS_K 600
#define PAIRS_CHUNKS 3

// Fills a (PAIRS_M, PAIRS_K) and b (PAIRS_N, PAIRS_K). Each part of a chunk has its own range of
// exponents. The sums of the least exponents are around the bound, far from it, or beyond it, and
// terms cancel to their last bits.
void run_pairs_fill(struct random_source *random, uint16_t *a, uint16_t *b);

// Computes out (PAIRS_M, PAIRS_N).
void run_pairs_multiply(const struct ree_cpu_context *ctx, const uint16_t *a, const uint16_t *b,
                        float *out);
// The same by the definition.
void run_pairs_define(const uint16_t *a, const uint16_t *b, float *out);

// Runs n_products on every instruction set, with pairs and with the model of the instruction.
// Returns the number of outputs that differ from the definition.
long run_pairs(uint64_t seed, uint32_t n_products);

#endif
