// Vectors of 8 32-bit integers, for the integer tiles of AVX2 and AVX-VNNI (tiles_integer.inc).
#ifndef REE_CPU_VEC_U32_AVX2_H
#define REE_CPU_VEC_U32_AVX2_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "base/any.h"

typedef __m256i vec;

static inline __m256i first_lanes(uint32_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vec vec_zero(void) {
    return _mm256_setzero_si256();
}
static inline vec vec_set1(uint32_t x) {
    return _mm256_set1_epi32((int)x);
}
static inline vec vec_load(const ree_any_u32 *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}
static inline void vec_store(ree_any_u32 *p, vec x) {
    _mm256_storeu_si256((__m256i *)p, x);
}
static inline vec vec_load_n(const ree_any_u32 *p, uint32_t n) {
    return _mm256_maskload_epi32((const int *)p, first_lanes(n));
}
// Stores the first n lanes of x. Avoids a masked store, which some processors run in microcode.
static inline void vec_store_n(ree_any_u32 *p, vec x, uint32_t n) {
    uint32_t lanes[8];
    vec_store(lanes, x);
    memcpy(p, lanes, n * sizeof *p);
}
static inline vec vec_add(vec a, vec b) {
    return _mm256_add_epi32(a, b);
}

#endif
