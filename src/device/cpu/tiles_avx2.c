// The tile kernels of tiles.h for AVX2 and FMA: 6 rows of 2 vectors use 12 of the 16 registers as
// accumulators.
#include "device/cpu/tiles.h"

#include <immintrin.h>

#define TILES ree_tiles_avx2
#define ROWS 6
#define VECS 2
#define LANES 8
#define PANEL_ROWS 2

typedef __m256 vec;

static inline __m256i first_lanes(uint32_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
REE_TILES_INLINE vec vec_zero(void) {
    return _mm256_setzero_ps();
}
REE_TILES_INLINE vec vec_set1(float x) {
    return _mm256_set1_ps(x);
}
REE_TILES_INLINE vec vec_load(const float *p) {
    return _mm256_loadu_ps(p);
}
// Loads LANES words of 32 bits (or the first n, and zeros). The words need not hold floats.
static inline vec vec_load_words(const void *p) {
    return _mm256_loadu_ps(p);
}
static inline vec vec_load_words_n(const void *p, uint32_t n) {
    return _mm256_maskload_ps(p, first_lanes(n));
}
static inline void vec_store(float *p, vec x) {
    _mm256_storeu_ps(p, x);
}
static inline vec vec_load_n(const float *p, uint32_t n) {
    return _mm256_maskload_ps(p, first_lanes(n));
}
// Avoids a masked store, which some processors run in microcode.
static inline void vec_store_n(float *p, vec x, uint32_t n) {
    if (n >= 8) {
        _mm256_storeu_ps(p, x);
        return;
    }
    __m128 part = _mm256_castps256_ps128(x);
    if (n & 4) {
        _mm_storeu_ps(p, part);
        part = _mm256_extractf128_ps(x, 1);
        p += 4;
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)p, part);
        part = _mm_movehl_ps(part, part);
        p += 2;
    }
    if (n & 1) _mm_store_ss(p, part);
}
REE_TILES_INLINE vec vec_add(vec a, vec b) {
    return _mm256_add_ps(a, b);
}
REE_TILES_INLINE vec vec_fma(vec a, vec b, vec c) {
    return _mm256_fmadd_ps(a, b, c);
}
static inline vec vec_canonical_nan(vec x) {
    vec nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FC00000));
    return _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}
// Shuffles within halves, then exchanges the middle quarters.
static inline vec vec_even(vec a, vec b) {
    __m256d halves = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(halves, 0xD8));
}
static inline vec vec_odd(vec a, vec b) {
    __m256d halves = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xDD));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(halves, 0xD8));
}
static inline vec vec_to_i32(vec x) {
    return _mm256_castsi256_ps(_mm256_cvttps_epi32(x));
}
static inline vec load_f16(const uint16_t *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
static inline vec load_bf16(const uint16_t *p) {
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
// Returns the bfloat16 in the low (high) half of each word as a float.
static inline vec vec_bf16_low(vec words) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(words), 16));
}
static inline vec vec_bf16_high(vec words) {
    __m256i mask = _mm256_set1_epi32((int)0xFFFF0000);
    return _mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(words), mask));
}
static inline vec load_i8(const int8_t *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}
static inline vec load_u8(const uint8_t *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}
static inline vec vec_digits(vec words, int i, int bits, float base) {
    __m256i shifted = _mm256_srli_epi32(_mm256_castps_si256(words), i * bits);
    vec digits =
        _mm256_cvtepi32_ps(_mm256_and_si256(shifted, _mm256_set1_epi32(bits == 4 ? 15 : 255)));
    return base != 0 ? _mm256_sub_ps(digits, _mm256_set1_ps(base)) : digits;
}
static inline vec vec_shift_right(vec words, int n) {
    return _mm256_castsi256_ps(_mm256_srli_epi32(_mm256_castps_si256(words), n));
}
static inline vec vec_splice(vec words, uint32_t mask, uint32_t bits) {
    __m256i part = _mm256_and_si256(_mm256_castps_si256(words), _mm256_set1_epi32((int)mask));
    return _mm256_castsi256_ps(_mm256_or_si256(part, _mm256_set1_epi32((int)bits)));
}
static inline vec vec_sub(vec a, vec b) {
    return _mm256_sub_ps(a, b);
}
static inline vec vec_mul(vec a, vec b) {
    return _mm256_mul_ps(a, b);
}
static inline void vec_transpose(vec *r) {
    vec t[8];
    for (int i = 0; i < 8; i += 4) {
        vec p0 = _mm256_unpacklo_ps(r[i], r[i + 1]), p1 = _mm256_unpackhi_ps(r[i], r[i + 1]);
        vec p2 = _mm256_unpacklo_ps(r[i + 2], r[i + 3]);
        vec p3 = _mm256_unpackhi_ps(r[i + 2], r[i + 3]);
        t[i] = _mm256_shuffle_ps(p0, p2, 0x44);
        t[i + 1] = _mm256_shuffle_ps(p0, p2, 0xEE);
        t[i + 2] = _mm256_shuffle_ps(p1, p3, 0x44);
        t[i + 3] = _mm256_shuffle_ps(p1, p3, 0xEE);
    }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(t[i], t[i + 4], 0x31);
    }
}

#define FOR_EACH_TILE_ROWS(X, vecs)                                                                \
    X(1, vecs) X(2, vecs) X(3, vecs) X(4, vecs) X(5, vecs) X(6, vecs)

#include "device/cpu/tiles.inc"
