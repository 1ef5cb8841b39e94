// Tiles for products of bfloat16 with AVX512-BF16: one instruction for 32 multiply-adds. The tile
// has the shape of the tile for floats: 24 accumulators, and 14 loads per 24 instructions.
#include "device/cpu/tiles_pairs.h"

#include <immintrin.h>

#define TILES ree_pair_tiles_avx512bf16
#define FLOATS ree_tiles_avx512
#define PACK pack
#define WIDEN widen
#define ROWS 12
#define VECS 2
#define LANES 16

typedef __m512 vec;
typedef __m512i words;

static inline __mmask16 first_lanes(uint32_t n) {
    return (__mmask16)((1u << n) - 1);
}
static inline vec vec_zero(void) {
    return _mm512_setzero_ps();
}
static inline vec vec_load(const float *p) {
    return _mm512_loadu_ps(p);
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
static inline vec vec_add(vec a, vec b) {
    return _mm512_add_ps(a, b);
}
static inline vec vec_canonical_nan(vec x) {
    __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_mask_mov_ps(x, is_nan, _mm512_castsi512_ps(_mm512_set1_epi32(0x7FC00000)));
}
static inline words words_load(const ree_any_u32 *p) {
    return _mm512_loadu_si512(p);
}
static inline words words_set1(uint32_t x) {
    return _mm512_set1_epi32((int)x);
}
static inline vec vec_pairs(vec acc, words a, words b) {
    return _mm512_dpbf16_ps(acc, (__m512bh)a, (__m512bh)b);
}

// Packing

// Lowers `least` to the least magnitude of the non-zero operands. Both are stored as magnitude - 1,
// so that a zero becomes 0xFFFF, the largest value.
static inline words least_of(words least, words pairs) {
    words magnitudes = _mm512_and_si512(pairs, _mm512_set1_epi16(0x7FFF));
    return _mm512_min_epu16(least, _mm512_sub_epi16(magnitudes, _mm512_set1_epi16(1)));
}

static uint32_t least_exponent(words least) {
    uint16_t lanes[32], magnitude = 0xFFFF;
    _mm512_storeu_si512(lanes, least);
    for (int i = 0; i < 32; i++)
        if (lanes[i] < magnitude) magnitude = lanes[i];
    return magnitude == 0xFFFF ? REE_PAIRS_ZEROS : (magnitude + 1u) >> 7;
}

static inline void transpose(words *r) {
    words t[16];
    for (int i = 0; i < 16; i += 4) {
        words p0 = _mm512_unpacklo_epi32(r[i], r[i + 1]),
              p1 = _mm512_unpackhi_epi32(r[i], r[i + 1]);
        words p2 = _mm512_unpacklo_epi32(r[i + 2], r[i + 3]);
        words p3 = _mm512_unpackhi_epi32(r[i + 2], r[i + 3]);
        t[i] = _mm512_unpacklo_epi64(p0, p2);
        t[i + 1] = _mm512_unpackhi_epi64(p0, p2);
        t[i + 2] = _mm512_unpacklo_epi64(p1, p3);
        t[i + 3] = _mm512_unpackhi_epi64(p1, p3);
    }
    for (int i = 0; i < 4; i++) {
        words q0 = _mm512_shuffle_i32x4(t[i], t[i + 4], 0x88);
        words q1 = _mm512_shuffle_i32x4(t[i], t[i + 4], 0xDD);
        words q2 = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0x88);
        words q3 = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0xDD);
        r[i] = _mm512_shuffle_i32x4(q0, q2, 0x88);
        r[i + 4] = _mm512_shuffle_i32x4(q1, q3, 0x88);
        r[i + 8] = _mm512_shuffle_i32x4(q0, q2, 0xDD);
        r[i + 12] = _mm512_shuffle_i32x4(q1, q3, 0xDD);
    }
}

// Packs vectors whose terms are adjacent in memory: transposes blocks of 16 vectors by 32 terms in
// registers.
static words pack_terms(const uint16_t *src, int64_t stride_vector, int64_t ahead, uint32_t n,
                        uint32_t n_terms, ree_any_u32 *dst, uint32_t pitch) {
    words least = _mm512_set1_epi16(-1);
    for (uint32_t i0 = 0; i0 < pitch; i0 += LANES) {
        uint32_t n_live = i0 < n ? (n - i0 < LANES ? n - i0 : LANES) : 0;
        uint32_t n_dst = pitch - i0 < LANES ? pitch - i0 : LANES;
        for (uint32_t l = 0; l < n_terms; l += 2 * LANES) {
            uint32_t rest = n_terms - l;
            __mmask32 some = rest >= 2 * LANES ? 0xFFFFFFFFu : (1u << rest) - 1;
            words block[LANES];
#pragma GCC unroll 16
            for (uint32_t i = 0; i < LANES; i++) {
                block[i] = _mm512_setzero_si512();
                if (i >= n_live) continue;
                const uint16_t *row = src + (int64_t)(i0 + i) * stride_vector + l;
                block[i] = rest >= 2 * LANES ? _mm512_loadu_si512(row)
                                             : _mm512_maskz_loadu_epi16(some, row);
                least = least_of(least, block[i]);
                block[i] = _mm512_rol_epi32(block[i], 16);
                __builtin_prefetch(row + ahead, 0, 2);
            }
            transpose(block);
            uint32_t n_words = rest >= 2 * LANES ? LANES : (rest + 1) / 2;
            ree_any_u32 *out = dst + (size_t)(l / 2) * pitch + i0;
            if (n_dst == LANES && n_words == LANES) {
#pragma GCC unroll 16
                for (uint32_t w = 0; w < LANES; w++)
                    _mm512_storeu_si512(out + w * pitch, block[w]);
            } else {
                for (uint32_t w = 0; w < n_words; w++)
                    _mm512_mask_storeu_epi32(out + w * pitch, first_lanes(n_dst), block[w]);
            }
        }
    }
    return least;
}

// Packs vectors that are adjacent in memory, so that term l of all vectors is one contiguous run.
static words pack_vectors(const uint16_t *src, int64_t stride_k, uint32_t n, uint32_t n_terms,
                          ree_any_u32 *dst, uint32_t pitch) {
    words least = _mm512_set1_epi16(-1);
    for (uint32_t l = 0; l < n_terms; l += 2, dst += pitch) {
        const uint16_t *first = src + l * stride_k;
        for (uint32_t i = 0; i < pitch; i += LANES) {
            uint32_t n_live = i < n ? (n - i < LANES ? n - i : LANES) : 0;
            uint32_t n_dst = pitch - i < LANES ? pitch - i : LANES;
            __m256i upper = _mm256_maskz_loadu_epi16(first_lanes(n_live), first + i);
            __m256i lower = _mm256_setzero_si256();
            if (l + 1 < n_terms)
                lower = _mm256_maskz_loadu_epi16(first_lanes(n_live), first + stride_k + i);
            words pairs = _mm512_or_si512(_mm512_slli_epi32(_mm512_cvtepu16_epi32(upper), 16),
                                          _mm512_cvtepu16_epi32(lower));
            least = least_of(least, pairs);
            _mm512_mask_storeu_epi32(dst + i, first_lanes(n_dst), pairs);
        }
    }
    return least;
}

static words pack_any(const uint16_t *src, int64_t stride_vector, int64_t stride_k, uint32_t n,
                      uint32_t n_terms, ree_any_u32 *dst, uint32_t pitch) {
    words least = _mm512_set1_epi16(-1);
    for (uint32_t l = 0; l < n_terms; l += 2, dst += pitch)
        for (uint32_t i = 0; i < pitch; i++) {
            uint32_t word = 0;
            if (i < n) {
                const uint16_t *first = src + i * stride_vector + l * stride_k;
                word = (uint32_t)*first << 16 | (l + 1 < n_terms ? first[stride_k] : 0);
            }
            least = least_of(least, words_set1(word));
            dst[i] = word;
        }
    return least;
}

static uint32_t pack(const uint16_t *src, int64_t stride_vector, int64_t stride_k, int64_t ahead,
                     uint32_t n, uint32_t n_terms, ree_any_u32 *dst, uint32_t pitch) {
    if (stride_k == 1)
        return least_exponent(pack_terms(src, stride_vector, ahead, n, n_terms, dst, pitch));
    if (stride_vector == 1)
        return least_exponent(pack_vectors(src, stride_k, n, n_terms, dst, pitch));
    return least_exponent(pack_any(src, stride_vector, stride_k, n, n_terms, dst, pitch));
}

static void widen(const ree_any_u32 *packed, uint32_t n_words, uint32_t pitch, float *dst) {
    const words upper = _mm512_set1_epi32((int)0xFFFF0000);
    for (uint32_t w = 0; w < n_words; w++, packed += pitch, dst += 2 * (size_t)pitch)
        for (uint32_t i = 0; i < pitch; i += LANES) {
            __mmask16 live = pitch - i < LANES ? first_lanes(pitch - i) : 0xFFFF;
            words pairs = _mm512_maskz_loadu_epi32(live, packed + i);
            _mm512_mask_storeu_epi32(dst + i, live, _mm512_and_si512(pairs, upper));
            _mm512_mask_storeu_epi32(dst + pitch + i, live, _mm512_slli_epi32(pairs, 16));
        }
}

#define FOR_EACH_TILE_ROWS(X, vecs)                                                                \
    X(1, vecs)                                                                                     \
    X(2, vecs)                                                                                     \
    X(3, vecs)                                                                                     \
    X(4, vecs)                                                                                     \
    X(5, vecs) X(6, vecs) X(7, vecs) X(8, vecs) X(9, vecs) X(10, vecs) X(11, vecs) X(12, vecs)

#include "device/cpu/tiles_pairs.inc"
