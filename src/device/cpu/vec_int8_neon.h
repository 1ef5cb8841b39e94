// Vectors of 4 integers and 4 floats, for tiles_int8.inc.
#ifndef REE_CPU_VEC_INT8_NEON_H
#define REE_CPU_VEC_INT8_NEON_H

#include "device/cpu/vec_u32_neon.h"

typedef float32x4_t fvec;

static inline vec vec_and(vec a, vec b) {
    return vandq_u32(a, b);
}
static inline vec vec_xor(vec a, vec b) {
    return veorq_u32(a, b);
}
#define vec_shr(x, n) vshrq_n_u32(x, n)
static inline vec vec_mul(vec a, vec b) {
    return vmulq_u32(a, b);
}
static inline vec vec_load_u8(const uint8_t *p) {
    return (vec){p[0], p[1], p[2], p[3]};
}
static inline fvec fvec_load(const float *p) {
    return vld1q_f32(p);
}
static inline void fvec_store(float *p, fvec x) {
    vst1q_f32(p, x);
}
static inline fvec fvec_set1(float x) {
    return vdupq_n_f32(x);
}
static inline fvec fvec_mul(fvec a, fvec b) {
    return vmulq_f32(a, b);
}
static inline fvec fvec_add(fvec a, fvec b) {
    return vaddq_f32(a, b);
}
static inline fvec fvec_fma(fvec a, fvec b, fvec c) {
    return vfmaq_f32(c, a, b);
}
static inline fvec fvec_from(vec x) {
    return vcvtq_f32_s32(vreinterpretq_s32_u32(x));
}
static inline fvec fvec_finish(fvec x) {
    x = vaddq_f32(x, vdupq_n_f32(0));
    return vbslq_f32(vceqq_f32(x, x), x, vreinterpretq_f32_u32(vdupq_n_u32(0x7FC00000)));
}

#endif
