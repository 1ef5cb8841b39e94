// Vectors of 8 integers and 8 floats, for tiles_int8.inc with AVX2 and AVX-VNNI.
#ifndef REE_CPU_VEC_INT8_AVX2_H
#define REE_CPU_VEC_INT8_AVX2_H

#include "device/cpu/vec_u32_avx2.h"

typedef __m256 fvec;

static inline vec vec_and(vec a, vec b) {
    return _mm256_and_si256(a, b);
}
#define vec_shr(x, n) _mm256_srli_epi32(x, n)
static inline vec vec_mul(vec a, vec b) {
    return _mm256_mullo_epi32(a, b);
}
static inline vec vec_load_u8(const uint8_t *p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
}
static inline fvec fvec_load(const float *p) {
    return _mm256_loadu_ps(p);
}
static inline void fvec_store(float *p, fvec x) {
    _mm256_storeu_ps(p, x);
}
static inline fvec fvec_set1(float x) {
    return _mm256_set1_ps(x);
}
static inline fvec fvec_mul(fvec a, fvec b) {
    return _mm256_mul_ps(a, b);
}
static inline fvec fvec_add(fvec a, fvec b) {
    return _mm256_add_ps(a, b);
}
static inline fvec fvec_fma(fvec a, fvec b, fvec c) {
    return _mm256_fmadd_ps(a, b, c);
}
static inline fvec fvec_from(vec x) {
    return _mm256_cvtepi32_ps(x);
}
static inline fvec fvec_finish(fvec x) {
    x = _mm256_add_ps(x, _mm256_setzero_ps());
    fvec nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    return _mm256_blendv_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(0x7FC00000)), nan);
}

#endif
