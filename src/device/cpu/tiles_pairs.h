// Tiles for products of bfloat16 by bfloat16 with an instruction that multiplies pairs of terms
// (VDPBF16PS of AVX512-BF16). Of each word it multiplies the upper halves first:
//
//     acc = fma(a_lower, b_lower, fma(a_upper, b_upper, acc))      each rounded to nearest
//
// A packed word holds terms 2 l (upper half) and 2 l + 1 (lower half), so the instruction adds the
// terms in ascending order: it is two steps of the chunk-dot of NUMERICS.md section 3, at the cost
// of one.
//
// The instruction takes subnormal operands and results as zero. A product of two panels may use it
// only if none can occur:
// - all non-zero operands are normal, and
// - the least exponents eA and eB of the panels' non-zero operands (2^eA <= |a|) have a sum of at
//   least -112. Every product, and so every partial sum, is a multiple of 2^(eA-7 + eB-7), which is
//   then at least 2^-126, the smallest normal number.
// Packing finds the least exponents. Panels that do not meet the condition are widened to float32
// and multiplied with the tiles for floats.
//
// Performance bound for one core: twice the multiply-adds per instruction of float32's tiles, and
// half the bytes. Zen 4 and Zen 5 start this instruction as often as fma, so pairs are twice as
// fast as floats. The Xeon with AMX that was measured starts it a quarter as often, so pairs would
// be half as fast: there all panels are widened (tools/BENCHMARKS.md).
#ifndef REE_DEVICE_CPU_TILES_PAIRS_H
#define REE_DEVICE_CPU_TILES_PAIRS_H

#include "device/cpu/tiles.h"

// The widest panel, in columns.
#define REE_PAIRS_MAX_COLS 32

// Packing a panel of one chunk returns the least biased exponent of its non-zero operands (0 for a
// subnormal one), or REE_PAIRS_ZEROS if all are zeros. ree_pairs_exact decides by these exponents;
// REE_PAIRS_LEAST_SUM is the smallest sum of two for which the instruction is exact.
#define REE_PAIRS_ZEROS 512
#define REE_PAIRS_LEAST_SUM (2 * 127 - 112)

struct ree_pair_tiles {
    struct ree_tiles tiles; // only rows, vecs, lanes, cols, chunk, terms and tile are set
    // The tiles for floats of the same instruction set, which have the same shape.
    const struct ree_tiles *floats;
    // Packs terms [0, n_terms) of n vectors: word w of vector i goes to dst[w * pitch + i], for
    // i < pitch, with zeros beyond n vectors and n_terms. Prefetches as pack_vectors of struct
    // ree_tiles. Returns the least biased exponent, or REE_PAIRS_ZEROS.
    uint32_t (*pack)(const uint16_t *src, int64_t stride_vector, int64_t stride_k, int64_t ahead,
                     uint32_t n, uint32_t n_terms, ree_any_u32 *dst, uint32_t pitch);
    // Converts n_words words of `pitch` packed vectors to 2 * n_words packed words, one per float.
    void (*widen)(const ree_any_u32 *packed, uint32_t n_words, uint32_t pitch, float *dst);
};

// Returns whether two panels with these least exponents may be multiplied with the instruction.
static inline bool ree_pairs_exact(uint32_t least_a, uint32_t least_b) {
    if (least_a == REE_PAIRS_ZEROS || least_b == REE_PAIRS_ZEROS) return true;
    return least_a != 0 && least_b != 0 && least_a + least_b >= REE_PAIRS_LEAST_SUM;
}

// Returns the tiles for this context's processor. Returns NULL if the processor has no such
// instruction, or if the instruction computes wrong results for hard cases, which the first call
// tries. Sets *as_floats: whether all panels should be widened (enum ree_cpu_pairs); the first call
// measures what is faster, for some 50 microseconds.
const struct ree_pair_tiles *ree_pair_tiles_for(const struct ree_cpu_context *ctx, bool *as_floats);

// For tests: VDPBF16PS for one lane as a C function, and tiles that use this function.
float ree_pairs_model(float acc, uint32_t a, uint32_t b);
extern const struct ree_pair_tiles ree_pair_tiles_model;

// Tries tiles on hard cases: cancellation, ties, both sides of the bound. Returns whether every
// result equals the chunk-dot.
bool ree_pairs_probe(const struct ree_pair_tiles *pairs);
// Returns whether the largest tile takes longer with pairs than with floats.
bool ree_pairs_slow(const struct ree_pair_tiles *pairs);

#endif
