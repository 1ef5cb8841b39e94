// VDPBF16PS, the instruction of tiles_pairs.h, as a C function; tiles that use this function, for
// tests; and the choice of the tiles for a processor.
#include "device/cpu/tiles_pairs.h"

#include "repops/scalar/ops.h"

#include <math.h>
#include <stdatomic.h>

static float flush(float x) {
    uint32_t bits = ree_bits(x);
    return bits & 0x7F800000u ? x : ree_float(bits & 0x80000000u);
}

static float step(float acc, uint32_t a, uint32_t b) {
    return flush(fmaf(flush(ree_float(a)), flush(ree_float(b)), flush(acc)));
}

float ree_pairs_model(float acc, uint32_t a, uint32_t b) {
    return step(step(acc, a & 0xFFFF0000u, b & 0xFFFF0000u), a << 16, b << 16);
}

static uint32_t pack_model(const uint16_t *src, int64_t stride_vector, int64_t stride_k,
                           int64_t ahead, uint32_t n, uint32_t n_terms, ree_any_u32 *dst,
                           uint32_t pitch) {
    (void)ahead;
    uint32_t least = REE_PAIRS_ZEROS;
    for (uint32_t l = 0; l < n_terms; l += 2, dst += pitch)
        for (uint32_t i = 0; i < pitch; i++) {
            uint32_t word = 0;
            for (uint32_t t = 0; t < 2 && i < n && l + t < n_terms; t++) {
                uint32_t x = src[i * stride_vector + (l + t) * stride_k];
                if ((x & 0x7FFF) && (x >> 7 & 0xFF) < least) least = x >> 7 & 0xFF;
                word |= x << (t ? 0 : 16);
            }
            dst[i] = word;
        }
    return least;
}

static void widen_model(const ree_any_u32 *packed, uint32_t n_words, uint32_t pitch, float *dst) {
    ree_any_u32 *out = (ree_any_u32 *)dst;
    for (uint32_t w = 0; w < n_words; w++, packed += pitch, out += 2 * (size_t)pitch)
        for (uint32_t i = 0; i < pitch; i++) {
            out[i] = packed[i] & 0xFFFF0000u;
            out[pitch + i] = packed[i] << 16;
        }
}

#define TILES ree_pair_tiles_model
#define FLOATS ree_tiles_portable
#define PACK pack_model
#define WIDEN widen_model
#define ROWS 4
#define VECS 4
#define LANES 1

typedef float vec;
typedef uint32_t words;

static inline vec vec_zero(void) {
    return 0.0f;
}
static inline vec vec_load(const float *p) {
    return *p;
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
static inline vec vec_add(vec a, vec b) {
    return a + b;
}
static inline vec vec_canonical_nan(vec x) {
    return ree_cpu_canonical_nan(x);
}
static inline words words_load(const ree_any_u32 *p) {
    return *p;
}
static inline words words_set1(uint32_t x) {
    return x;
}
static inline vec vec_pairs(vec acc, words a, words b) {
    return ree_pairs_model(acc, a, b);
}

#define FOR_EACH_TILE_ROWS(X, vecs) X(1, vecs) X(2, vecs) X(3, vecs) X(4, vecs)

#include "device/cpu/tiles_pairs.inc"

// Choosing

extern const struct ree_pair_tiles ree_pair_tiles_avx512bf16;

static const struct {
    enum ree_cpu_isa isa;
    enum ree_cpu_feature feature;
    const struct ree_pair_tiles *tiles;
} choices[] = {
#ifdef REE_CPU_HAVE_AVX512BF16
    {REE_CPU_AVX512, REE_CPU_FEATURE_AVX512BF16, &ree_pair_tiles_avx512bf16},
#endif
    {REE_N_CPU_ISAS, REE_CPU_FEATURE_NONE, NULL},
};

const struct ree_pair_tiles *ree_pair_tiles_for(const struct ree_cpu_context *ctx,
                                                bool *as_floats) {
    enum { UNTRIED, WRONG, SLOW, FAST };
    static atomic_uchar known[sizeof choices / sizeof *choices];
    *as_floats = ctx->pairs == REE_CPU_PAIRS_AS_FLOATS;
    if (ctx->no_dot) return NULL;
    if (ctx->pairs == REE_CPU_PAIRS_MODEL)
        return ctx->isa == REE_CPU_PORTABLE ? &ree_pair_tiles_model : NULL;
    for (size_t i = 0; choices[i].tiles; i++) {
        if (choices[i].isa != ctx->isa || !ree_cpu_feature_available(choices[i].feature)) continue;
        unsigned char is = atomic_load_explicit(&known[i], memory_order_relaxed);
        if (is == UNTRIED) {
            is = !ree_pairs_probe(choices[i].tiles) ? WRONG
                 : ree_pairs_slow(choices[i].tiles) ? SLOW
                                                    : FAST;
            atomic_store_explicit(&known[i], is, memory_order_relaxed);
        }
        if (is == WRONG) continue;
        *as_floats |= is == SLOW && ctx->pairs == REE_CPU_PAIRS_IF_FASTER;
        return choices[i].tiles;
    }
    return NULL;
}
