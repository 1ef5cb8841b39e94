// Tiles for integer products in plain C, and the choice of the tiles for a processor and its
// operands' signs.
#include "device/cpu/tiles_integer.h"

#define TILES ree_integer_tiles_portable
#define ROWS 4
#define VECS 4
#define LANES 1
#define TERMS 2

typedef uint32_t vec;

static inline vec vec_zero(void) {
    return 0;
}
static inline vec vec_set1(uint32_t x) {
    return x;
}
static inline vec vec_load(const ree_any_u32 *p) {
    return *p;
}
static inline void vec_store(ree_any_u32 *p, vec x) {
    *p = x;
}
static inline vec vec_load_n(const ree_any_u32 *p, uint32_t n) {
    return n ? *p : 0;
}
static inline void vec_store_n(ree_any_u32 *p, vec x, uint32_t n) {
    if (n) *p = x;
}
static inline vec vec_add(vec a, vec b) {
    return a + b;
}
static inline vec vec_dot(vec acc, vec a, vec b) {
    uint32_t low = (uint32_t)((int16_t)a * (int16_t)b);
    uint32_t high = (uint32_t)((int16_t)(a >> 16) * (int16_t)(b >> 16));
    return acc + low + high;
}

#define FOR_EACH_TILE_ROWS(X, vecs) X(1, vecs) X(2, vecs) X(3, vecs) X(4, vecs)

#include "device/cpu/tiles_integer.inc"

// Best first. Of the entries for the context's instruction set, the first one is used whose feature
// the processor has and whose signs fit.
extern const struct ree_integer_tiles ree_integer_tiles_avx512vnni_us,
    ree_integer_tiles_avx512vnni_su, ree_integer_tiles_avx512, ree_integer_tiles_avxvnni_us,
    ree_integer_tiles_avxvnni_su, ree_integer_tiles_avx2, ree_integer_tiles_neondot_ss,
    ree_integer_tiles_neondot_uu, ree_integer_tiles_neon;

static const struct {
    enum ree_cpu_isa isa;
    enum ree_cpu_feature feature;
    const struct ree_integer_tiles *tiles;
} choices[] = {
#ifdef REE_CPU_HAVE_AVX512VNNI
    {REE_CPU_AVX512, REE_CPU_FEATURE_AVX512VNNI, &ree_integer_tiles_avx512vnni_us},
    {REE_CPU_AVX512, REE_CPU_FEATURE_AVX512VNNI, &ree_integer_tiles_avx512vnni_su},
#endif
#ifdef REE_CPU_HAVE_AVX512
    {REE_CPU_AVX512, REE_CPU_FEATURE_NONE, &ree_integer_tiles_avx512},
#endif
#ifdef REE_CPU_HAVE_AVXVNNI
    {REE_CPU_AVX2, REE_CPU_FEATURE_AVXVNNI, &ree_integer_tiles_avxvnni_us},
    {REE_CPU_AVX2, REE_CPU_FEATURE_AVXVNNI, &ree_integer_tiles_avxvnni_su},
#endif
#ifdef REE_CPU_HAVE_AVX2
    {REE_CPU_AVX2, REE_CPU_FEATURE_NONE, &ree_integer_tiles_avx2},
#endif
#ifdef REE_CPU_HAVE_NEONDOT
    {REE_CPU_NEON, REE_CPU_FEATURE_DOTPROD, &ree_integer_tiles_neondot_ss},
    {REE_CPU_NEON, REE_CPU_FEATURE_DOTPROD, &ree_integer_tiles_neondot_uu},
#endif
#ifdef REE_CPU_HAVE_NEON
    {REE_CPU_NEON, REE_CPU_FEATURE_NONE, &ree_integer_tiles_neon},
#endif
    {REE_CPU_PORTABLE, REE_CPU_FEATURE_NONE, &ree_integer_tiles_portable},
};

const struct ree_integer_tiles *ree_integer_tiles_for(const struct ree_cpu_context *ctx,
                                                      bool a_signed, bool b_signed,
                                                      bool b_natural) {
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        const struct ree_integer_tiles *t = choices[i].tiles;
        if (choices[i].isa != ctx->isa) continue;
        if (choices[i].feature != REE_CPU_FEATURE_NONE &&
            (ctx->no_dot || !ree_cpu_feature_available(choices[i].feature)))
            continue;
        if (t->any_sign || (b_natural ? t->b_signed == b_signed : t->a_signed == a_signed))
            return t;
    }
    return &ree_integer_tiles_portable;
}
