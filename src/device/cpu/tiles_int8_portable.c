// Tiles for blockwise activations in plain C, and the choice of the tiles for a processor.
#include "device/cpu/tiles_int8.h"

#include <math.h>

#define TILES ree_int8_tiles_portable
#define LANES 1
#define TERMS 2
#define ROWS_4VECS 1
#define ROWS_2VECS 2

typedef uint32_t vec;
typedef float fvec;

static inline vec vec_set1(uint32_t x) {
    return x;
}
static inline vec vec_load(const ree_any_u32 *p) {
    return *p;
}
// The terms of b are unsigned and below 2^8. gcc 16.2 vectorises the same sum wrongly if both
// operands are cast to int16_t, so b's terms are not.
static inline vec vec_dot(vec acc, vec a, vec b) {
    uint32_t low = (uint32_t)((int16_t)a * (int32_t)(b & 0xFFFF));
    uint32_t high = (uint32_t)((int16_t)(a >> 16) * (int32_t)(b >> 16));
    return acc + low + high;
}
static inline vec vec_and(vec a, vec b) {
    return a & b;
}
static inline vec vec_shr(vec x, int n) {
    return x >> n;
}
static inline vec vec_mul(vec a, vec b) {
    return a * b;
}
static inline vec vec_load_u8(const uint8_t *p) {
    return *p;
}
static inline fvec fvec_load(const float *p) {
    return *p;
}
static inline void fvec_store(float *p, fvec x) {
    *p = x;
}
static inline fvec fvec_set1(float x) {
    return x;
}
static inline fvec fvec_mul(fvec a, fvec b) {
    return a * b;
}
static inline fvec fvec_add(fvec a, fvec b) {
    return a + b;
}
static inline fvec fvec_fma(fvec a, fvec b, fvec c) {
    return fmaf(a, b, c);
}
static inline fvec fvec_from(vec x) {
    return (float)(int32_t)x;
}
static inline fvec fvec_finish(fvec x) {
    return ree_cpu_canonical_nan(x + 0.0f);
}

#include "device/cpu/tiles_int8.inc"

// Best first. Of the entries for the context's instruction set, the first one is used whose feature
// the processor has and for which the product has enough rows.
extern const struct ree_int8_tiles ree_int8_tiles_amxint8, ree_int8_tiles_avx512vnni,
    ree_int8_tiles_avx512, ree_int8_tiles_avxvnni, ree_int8_tiles_avx2, ree_int8_tiles_neondot,
    ree_int8_tiles_neon;

static const struct {
    enum ree_cpu_isa isa;
    enum ree_cpu_feature feature;
    const struct ree_int8_tiles *tiles;
} choices[] = {
#ifdef REE_CPU_HAVE_AMXINT8
    {REE_CPU_AVX512, REE_CPU_FEATURE_AMXINT8, &ree_int8_tiles_amxint8},
#endif
#ifdef REE_CPU_HAVE_AVX512VNNI
    {REE_CPU_AVX512, REE_CPU_FEATURE_AVX512VNNI, &ree_int8_tiles_avx512vnni},
#endif
#ifdef REE_CPU_HAVE_AVX512
    {REE_CPU_AVX512, REE_CPU_FEATURE_NONE, &ree_int8_tiles_avx512},
#endif
#ifdef REE_CPU_HAVE_AVXVNNI
    {REE_CPU_AVX2, REE_CPU_FEATURE_AVXVNNI, &ree_int8_tiles_avxvnni},
#endif
#ifdef REE_CPU_HAVE_AVX2
    {REE_CPU_AVX2, REE_CPU_FEATURE_NONE, &ree_int8_tiles_avx2},
#endif
#ifdef REE_CPU_HAVE_NEONDOT
    {REE_CPU_NEON, REE_CPU_FEATURE_DOTPROD, &ree_int8_tiles_neondot},
#endif
#ifdef REE_CPU_HAVE_NEON
    {REE_CPU_NEON, REE_CPU_FEATURE_NONE, &ree_int8_tiles_neon},
#endif
    {REE_CPU_PORTABLE, REE_CPU_FEATURE_NONE, &ree_int8_tiles_portable},
};

const struct ree_int8_tiles *ree_int8_tiles_for(const struct ree_cpu_context *ctx, uint32_t m) {
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        if (choices[i].isa != ctx->isa || m < choices[i].tiles->min_rows) continue;
        if (choices[i].feature != REE_CPU_FEATURE_NONE &&
            (ctx->no_dot || !ree_cpu_feature_available(choices[i].feature)))
            continue;
        return choices[i].tiles;
    }
    return &ree_int8_tiles_portable;
}
