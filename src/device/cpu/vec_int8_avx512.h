// Vectors of 16 integers and 16 floats, for tiles_int8.inc with and without VNNI.
#ifndef REE_CPU_VEC_INT8_AVX512_H
#define REE_CPU_VEC_INT8_AVX512_H

#include "device/cpu/vec_u32_avx512.h"

typedef __m512 fvec;

static inline vec vec_and(vec a, vec b) {
    return _mm512_and_si512(a, b);
}
#define vec_shr(x, n) _mm512_srli_epi32(x, n)
static inline vec vec_mul(vec a, vec b) {
    return _mm512_mullo_epi32(a, b);
}
static inline vec vec_load_u8(const uint8_t *p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
static inline fvec fvec_load(const float *p) {
    return _mm512_loadu_ps(p);
}
static inline void fvec_store(float *p, fvec x) {
    _mm512_storeu_ps(p, x);
}
static inline fvec fvec_set1(float x) {
    return _mm512_set1_ps(x);
}
static inline fvec fvec_mul(fvec a, fvec b) {
    return _mm512_mul_ps(a, b);
}
static inline fvec fvec_add(fvec a, fvec b) {
    return _mm512_add_ps(a, b);
}
static inline fvec fvec_fma(fvec a, fvec b, fvec c) {
    return _mm512_fmadd_ps(a, b, c);
}
static inline fvec fvec_from(vec x) {
    return _mm512_cvtepi32_ps(x);
}
static inline fvec fvec_finish(fvec x) {
    x = _mm512_add_ps(x, _mm512_setzero_ps());
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_mask_mov_ps(x, nan, _mm512_castsi512_ps(_mm512_set1_epi32(0x7FC00000)));
}

#endif
