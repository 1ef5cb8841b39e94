// Vectors of 4 32-bit integers, for the integer tiles of NEON with and without dotprod
// (tiles_integer.inc).
#ifndef REE_CPU_VEC_U32_NEON_H
#define REE_CPU_VEC_U32_NEON_H

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#include "base/any.h"

typedef uint32x4_t vec;

static inline vec vec_zero(void) {
    return vdupq_n_u32(0);
}
static inline vec vec_set1(uint32_t x) {
    return vdupq_n_u32(x);
}
static inline vec vec_load(const ree_any_u32 *p) {
    return vld1q_u32(p);
}
static inline void vec_store(ree_any_u32 *p, vec x) {
    vst1q_u32(p, x);
}
static inline vec vec_load_n(const ree_any_u32 *p, uint32_t n) {
    uint32_t lanes[4] = {0};
    memcpy(lanes, p, n * sizeof *p);
    return vld1q_u32(lanes);
}
static inline void vec_store_n(ree_any_u32 *p, vec x, uint32_t n) {
    uint32_t lanes[4];
    vst1q_u32(lanes, x);
    memcpy(p, lanes, n * sizeof *p);
}
static inline vec vec_add(vec a, vec b) {
    return vaddq_u32(a, b);
}

#endif
