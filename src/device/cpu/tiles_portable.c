// The tile kernels of tiles.h in plain C: a "vector" is one float, a tile 4 by 4. fmaf always
// rounds once: if the processor has no fma, the C library computes it in software.
#include "device/cpu/tiles.h"

#include "repops/scalar/ops.h"

#include <math.h>

#define TILES ree_tiles_portable
#define ROWS 4
#define VECS 4
#define LANES 1
#define PANEL_ROWS 2

typedef float vec;

REE_TILES_INLINE vec vec_zero(void) {
    return 0.0f;
}
REE_TILES_INLINE vec vec_set1(float x) {
    return x;
}
REE_TILES_INLINE vec vec_load(const float *p) {
    return *p;
}
// Loads LANES words of 32 bits (or the first n, and zeros). The words need not hold floats.
static inline vec vec_load_words(const void *p) {
    vec x;
    memcpy(&x, p, sizeof x);
    return x;
}
static inline vec vec_load_words_n(const void *p, uint32_t n) {
    return n ? vec_load_words(p) : 0.0f;
}
static inline void vec_store(float *p, vec x) {
    *p = x;
}
static inline vec vec_load_n(const float *p, uint32_t n) {
    return n ? *p : 0.0f;
}
static inline void vec_store_n(float *p, vec x, uint32_t n) {
    if (n) *p = x;
}
REE_TILES_INLINE vec vec_add(vec a, vec b) {
    return a + b;
}
REE_TILES_INLINE vec vec_fma(vec a, vec b, vec c) {
    return fmaf(a, b, c);
}
static inline vec vec_canonical_nan(vec x) {
    return ree_cpu_canonical_nan(x);
}
static inline vec vec_even(vec a, vec b) {
    (void)b;
    return a;
}
static inline vec vec_odd(vec a, vec b) {
    (void)a;
    return b;
}
static inline vec vec_to_i32(vec x) {
    return ree_float((uint32_t)(int32_t)x);
}
static inline vec load_f16(const uint16_t *p) {
    return ree_float(ree_op_f16_to_f32(*p));
}
static inline vec load_bf16(const uint16_t *p) {
    return ree_float((uint32_t)*p << 16);
}
static inline vec load_i8(const int8_t *p) {
    return (float)*p;
}
static inline vec load_u8(const uint8_t *p) {
    return (float)*p;
}
static inline vec vec_digits(vec words, int i, int bits, float base) {
    uint32_t digit = ree_bits(words) >> (i * bits) & (bits == 4 ? 15u : 255u);
    return (float)digit - base;
}
static inline vec vec_shift_right(vec words, int n) {
    return ree_float(ree_bits(words) >> n);
}
static inline vec vec_splice(vec words, uint32_t mask, uint32_t bits) {
    return ree_float((ree_bits(words) & mask) | bits);
}
static inline vec vec_sub(vec a, vec b) {
    return a - b;
}
static inline vec vec_mul(vec a, vec b) {
    return a * b;
}
static inline void vec_transpose(vec *r) {
    (void)r;
}

#define FOR_EACH_TILE_ROWS(X, vecs) X(1, vecs) X(2, vecs) X(3, vecs) X(4, vecs)

#include "device/cpu/tiles.inc"

enum ree_tile_type ree_tile_type_of(enum ree_dtype dtype) {
    switch (dtype) {
    case REE_F32: return REE_TILE_F32;
    case REE_F16: return REE_TILE_F16;
    case REE_BF16: return REE_TILE_BF16;
    case REE_I8: return REE_TILE_I8;
    case REE_U8: return REE_TILE_U8;
    default: return REE_N_TILE_TYPES;
    }
}

const struct ree_tiles *ree_tiles_for(enum ree_cpu_isa isa) {
    switch (isa) {
#ifdef REE_CPU_HAVE_AVX512
    case REE_CPU_AVX512: return &ree_tiles_avx512;
#endif
#ifdef REE_CPU_HAVE_AVX2
    case REE_CPU_AVX2: return &ree_tiles_avx2;
#endif
#ifdef REE_CPU_HAVE_NEON
    case REE_CPU_NEON: return &ree_tiles_neon;
#endif
    default: return &ree_tiles_portable;
    }
}
