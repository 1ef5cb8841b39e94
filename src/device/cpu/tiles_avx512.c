// The tile kernels of tiles.h for AVX-512: 12 rows of 2 vectors. 24 accumulators, 2 vectors of b
// and one broadcast of a use 27 of the 32 registers. Each step along K has 14 loads (2 of b, 12
// broadcasts of a) for 24 multiply-adds. A processor that does two loads and two multiply-adds per
// cycle is then bound by the multiply-adds.
#include "device/cpu/tiles.h"

#include <immintrin.h>

#define TILES ree_tiles_avx512
#define ROWS 12
#define VECS 2
#define LANES 16
#define PANEL_ROWS 4
#define BLOCK_TABLES 1

typedef __m512 vec;

static inline __mmask16 first_lanes(uint32_t n) {
    return (__mmask16)((1u << n) - 1);
}
REE_TILES_INLINE vec vec_zero(void) {
    return _mm512_setzero_ps();
}
REE_TILES_INLINE vec vec_set1(float x) {
    return _mm512_set1_ps(x);
}
REE_TILES_INLINE vec vec_load(const float *p) {
    return _mm512_loadu_ps(p);
}
// Loads LANES words of 32 bits (or the first n, and zeros). The words need not hold floats.
static inline vec vec_load_words(const void *p) {
    return _mm512_loadu_ps(p);
}
static inline vec vec_load_words_n(const void *p, uint32_t n) {
    return _mm512_maskz_loadu_ps(first_lanes(n), p);
}
static inline void vec_store(float *p, vec x) {
    _mm512_storeu_ps(p, x);
}
static inline vec vec_load_n(const float *p, uint32_t n) {
    return _mm512_maskz_loadu_ps(first_lanes(n), p);
}
static inline void vec_store_n(float *p, vec x, uint32_t n) {
    _mm512_mask_storeu_ps(p, first_lanes(n), x);
}
REE_TILES_INLINE vec vec_add(vec a, vec b) {
    return _mm512_add_ps(a, b);
}
REE_TILES_INLINE vec vec_fma(vec a, vec b, vec c) {
    return _mm512_fmadd_ps(a, b, c);
}
static inline vec vec_canonical_nan(vec x) {
    __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_mask_mov_ps(x, is_nan, _mm512_castsi512_ps(_mm512_set1_epi32(0x7FC00000)));
}

static inline vec vec_even(vec a, vec b) {
    __m512i lanes = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(a, lanes, b);
}
static inline vec vec_odd(vec a, vec b) {
    __m512i lanes = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(a, lanes, b);
}
static inline vec vec_to_i32(vec x) {
    return _mm512_castsi512_ps(_mm512_cvttps_epi32(x));
}
static inline vec load_f16(const uint16_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
static inline vec load_bf16(const uint16_t *p) {
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
// Returns the bfloat16 in the low (high) half of each word as a float.
static inline vec vec_bf16_low(vec words) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(words), 16));
}
static inline vec vec_bf16_high(vec words) {
    __m512i mask = _mm512_set1_epi32((int)0xFFFF0000);
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(words), mask));
}
static inline vec load_i8(const int8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
static inline vec load_u8(const uint8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
// A number of 4 bits is the index of its result in a table of 16 floats. The look-up ignores the
// higher bits of the index, so they need no mask.
static inline vec vec_digits(vec words, int i, int bits, float base) {
    __m512i shifted = _mm512_srli_epi32(_mm512_castps_si512(words), (unsigned)(i * bits));
    if (bits == 4) {
        vec table = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        return _mm512_permutexvar_ps(shifted, _mm512_sub_ps(table, _mm512_set1_ps(base)));
    }
    vec digits = _mm512_cvtepi32_ps(_mm512_and_si512(shifted, _mm512_set1_epi32(255)));
    return base != 0 ? _mm512_sub_ps(digits, _mm512_set1_ps(base)) : digits;
}
static inline vec vec_shift_right(vec words, int n) {
    return _mm512_castsi512_ps(_mm512_srli_epi32(_mm512_castps_si512(words), (unsigned)n));
}
static inline vec vec_splice(vec words, uint32_t mask, uint32_t bits) {
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(
        _mm512_castps_si512(words), _mm512_set1_epi32((int)mask), _mm512_set1_epi32((int)bits),
        0xEA)); // (a & b) | c
}
// Returns q - 8 as a float for the 4-bit number q at bits 0 to 3 (vec_table_high: 16 to 19) of each
// word. The floats of the table have zeros in their low 16 bits, so vec_table_high looks up only
// their upper halves, as 16-bit elements. That look-up uses 5 bits of each index; the table is
// stored twice, so that the fifth bit has no effect.
static inline vec vec_table_low(vec words) {
    vec table = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    return _mm512_permutexvar_ps(_mm512_castps_si512(words), table);
}
static inline vec vec_table_high(vec words) {
    vec table = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    __m256i halves = _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(table), 16));
    __m512i twice = _mm512_broadcast_i64x4(halves);
    return _mm512_castsi512_ps(
        _mm512_maskz_permutexvar_epi16(0xAAAAAAAA, _mm512_castps_si512(words), twice));
}
static inline vec vec_sub(vec a, vec b) {
    return _mm512_sub_ps(a, b);
}
static inline vec vec_mul(vec a, vec b) {
    return _mm512_mul_ps(a, b);
}

// Four steps combine rows at distances of 1, 2, 4 and 8. The first two interleave 32-bit and 64-bit
// elements within 128-bit lanes, the last two move whole 128-bit lanes.
static inline void vec_transpose(vec *r) {
    vec t[16];
    for (int i = 0; i < 16; i += 4) {
        vec p0 = _mm512_unpacklo_ps(r[i], r[i + 1]), p1 = _mm512_unpackhi_ps(r[i], r[i + 1]);
        vec p2 = _mm512_unpacklo_ps(r[i + 2], r[i + 3]);
        vec p3 = _mm512_unpackhi_ps(r[i + 2], r[i + 3]);
        t[i] = _mm512_shuffle_ps(p0, p2, 0x44);
        t[i + 1] = _mm512_shuffle_ps(p0, p2, 0xEE);
        t[i + 2] = _mm512_shuffle_ps(p1, p3, 0x44);
        t[i + 3] = _mm512_shuffle_ps(p1, p3, 0xEE);
    }
    for (int i = 0; i < 4; i++) {
        vec q0 = _mm512_shuffle_f32x4(t[i], t[i + 4], 0x88);
        vec q1 = _mm512_shuffle_f32x4(t[i], t[i + 4], 0xDD);
        vec q2 = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0x88);
        vec q3 = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0xDD);
        r[i] = _mm512_shuffle_f32x4(q0, q2, 0x88);
        r[i + 4] = _mm512_shuffle_f32x4(q1, q3, 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(q0, q2, 0xDD);
        r[i + 12] = _mm512_shuffle_f32x4(q1, q3, 0xDD);
    }
}

#define FOR_EACH_TILE_ROWS(X, vecs)                                                                \
    X(1, vecs)                                                                                     \
    X(2, vecs)                                                                                     \
    X(3, vecs)                                                                                     \
    X(4, vecs)                                                                                     \
    X(5, vecs) X(6, vecs) X(7, vecs) X(8, vecs) X(9, vecs) X(10, vecs) X(11, vecs) X(12, vecs)

#include "device/cpu/tiles.inc"
