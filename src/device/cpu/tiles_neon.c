// The tile kernels of tiles.h for NEON (AArch64): 8 rows of 3 vectors use 24 of the 32 registers as
// accumulators.
#include "device/cpu/tiles.h"

#include <arm_neon.h>

#define TILES ree_tiles_neon
#define ROWS 8
#define VECS 3
#define LANES 4
#define PANEL_ROWS 4

typedef float32x4_t vec;

REE_TILES_INLINE vec vec_zero(void) {
    return vdupq_n_f32(0.0f);
}
REE_TILES_INLINE vec vec_set1(float x) {
    return vdupq_n_f32(x);
}
REE_TILES_INLINE vec vec_load(const float *p) {
    return vld1q_f32(p);
}
// Loads LANES words of 32 bits (or the first n, and zeros). The words need not hold floats.
static inline vec vec_load_words(const void *p) {
    return vreinterpretq_f32_u8(vld1q_u8(p));
}
static inline vec vec_load_words_n(const void *p, uint32_t n) {
    uint8_t bytes[16] = {0};
    memcpy(bytes, p, n * 4);
    return vec_load_words(bytes);
}
static inline void vec_store(float *p, vec x) {
    vst1q_f32(p, x);
}
static inline vec vec_load_n(const float *p, uint32_t n) {
    vec x = vdupq_n_f32(0.0f);
    switch (n) {
    case 0: return x;
    case 1: return vld1q_lane_f32(p, x, 0);
    case 2: return vcombine_f32(vld1_f32(p), vget_low_f32(x));
    case 3: return vld1q_lane_f32(p + 2, vcombine_f32(vld1_f32(p), vget_low_f32(x)), 2);
    default: return vld1q_f32(p);
    }
}
static inline void vec_store_n(float *p, vec x, uint32_t n) {
    if (n >= 4) {
        vst1q_f32(p, x);
        return;
    }
    if (n >= 2) vst1_f32(p, vget_low_f32(x));
    if (n == 1) vst1q_lane_f32(p, x, 0);
    if (n == 3) vst1q_lane_f32(p + 2, x, 2);
}
REE_TILES_INLINE vec vec_add(vec a, vec b) {
    return vaddq_f32(a, b);
}
REE_TILES_INLINE vec vec_fma(vec a, vec b, vec c) {
    return vfmaq_f32(c, a, b);
}
static inline vec vec_canonical_nan(vec x) {
    return vbslq_f32(vceqq_f32(x, x), x, vreinterpretq_f32_u32(vdupq_n_u32(0x7FC00000u)));
}
static inline vec vec_even(vec a, vec b) {
    return vuzp1q_f32(a, b);
}
static inline vec vec_odd(vec a, vec b) {
    return vuzp2q_f32(a, b);
}
static inline vec vec_to_i32(vec x) {
    return vreinterpretq_f32_s32(vcvtq_s32_f32(x));
}
static inline vec load_f16(const uint16_t *p) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}
static inline vec load_bf16(const uint16_t *p) {
    return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
}
// Returns the bfloat16 in the low (high) half of each word as a float.
static inline vec vec_bf16_low(vec words) {
    return vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(words), 16));
}
static inline vec vec_bf16_high(vec words) {
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(words), vdupq_n_u32(0xFFFF0000u)));
}
static inline vec load_i8(const int8_t *p) {
    int32_t word;
    memcpy(&word, p, sizeof word);
    int16x8_t wide = vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(word)));
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide)));
}
static inline vec load_u8(const uint8_t *p) {
    uint32_t word;
    memcpy(&word, p, sizeof word);
    uint16x8_t wide = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(word)));
    return vcvtq_f32_u32(vmovl_u16(vget_low_u16(wide)));
}
static inline vec vec_digits(vec words, int i, int bits, float base) {
    uint32x4_t shifted = vshlq_u32(vreinterpretq_u32_f32(words), vdupq_n_s32(-i * bits));
    vec digits = vcvtq_f32_u32(vandq_u32(shifted, vdupq_n_u32(bits == 4 ? 15 : 255)));
    return base != 0 ? vsubq_f32(digits, vdupq_n_f32(base)) : digits;
}
static inline vec vec_shift_right(vec words, int n) {
    return vreinterpretq_f32_u32(vshlq_u32(vreinterpretq_u32_f32(words), vdupq_n_s32(-n)));
}
static inline vec vec_splice(vec words, uint32_t mask, uint32_t bits) {
    return vbslq_f32(vdupq_n_u32(mask), words, vreinterpretq_f32_u32(vdupq_n_u32(bits)));
}
static inline vec vec_sub(vec a, vec b) {
    return vsubq_f32(a, b);
}
static inline vec vec_mul(vec a, vec b) {
    return vmulq_f32(a, b);
}
static inline void vec_transpose(vec *r) {
    float32x4x2_t p = vtrnq_f32(r[0], r[1]), q = vtrnq_f32(r[2], r[3]);
    r[0] = vcombine_f32(vget_low_f32(p.val[0]), vget_low_f32(q.val[0]));
    r[1] = vcombine_f32(vget_low_f32(p.val[1]), vget_low_f32(q.val[1]));
    r[2] = vcombine_f32(vget_high_f32(p.val[0]), vget_high_f32(q.val[0]));
    r[3] = vcombine_f32(vget_high_f32(p.val[1]), vget_high_f32(q.val[1]));
}

#define FOR_EACH_TILE_ROWS(X, vecs)                                                                \
    X(1, vecs) X(2, vecs) X(3, vecs) X(4, vecs) X(5, vecs) X(6, vecs) X(7, vecs) X(8, vecs)

#include "device/cpu/tiles.inc"
