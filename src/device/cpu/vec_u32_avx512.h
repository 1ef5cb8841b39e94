// Vectors of 16 32-bit integers, for the integer tiles of AVX-512 with and without VNNI
// (tiles_integer.inc).
#ifndef REE_CPU_VEC_U32_AVX512_H
#define REE_CPU_VEC_U32_AVX512_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "base/any.h"

typedef __m512i vec;

static inline __mmask16 first_lanes(uint32_t n) {
    return (__mmask16)((1u << n) - 1);
}
static inline vec vec_zero(void) {
    return _mm512_setzero_si512();
}
static inline vec vec_set1(uint32_t x) {
    return _mm512_set1_epi32((int)x);
}
static inline vec vec_load(const ree_any_u32 *p) {
    return _mm512_loadu_si512(p);
}
static inline void vec_store(ree_any_u32 *p, vec x) {
    _mm512_storeu_si512(p, x);
}
static inline vec vec_load_n(const ree_any_u32 *p, uint32_t n) {
    return _mm512_maskz_loadu_epi32(first_lanes(n), p);
}
static inline void vec_store_n(ree_any_u32 *p, vec x, uint32_t n) {
    _mm512_mask_storeu_epi32(p, first_lanes(n), x);
}
static inline vec vec_add(vec a, vec b) {
    return _mm512_add_epi32(a, b);
}

#endif
