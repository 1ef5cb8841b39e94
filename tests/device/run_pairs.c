#include "run_pairs.h"

#include "device/cpu/tiles_pairs.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 256

// How the terms of a part are chosen.
struct style {
    uint32_t low, range; // biased exponents
    bool negates;        // of b: odd terms nearly cancel the even ones
    uint32_t kind;       // 0: random; 1: odd terms nearly repeat even ones; 2: see below
    uint32_t mantissa;
};

// In kind 2 a pair of terms adds up to x x - (x + u) (x - u) = u u, where u is an ulp of x: the
// smallest possible difference.
static uint32_t term(struct random_source *random, const struct style *s, uint32_t l,
                     uint32_t before) {
    uint32_t exponent = s->low + random_below(random, s->range), sign = s->negates && l % 2;
    if (s->kind == 2 && l % 2) return sign << 15 | (s->low << 7) | (s->mantissa + (sign ? -1u : 1));
    if (s->kind == 2) return s->low << 7 | s->mantissa;
    if (s->kind == 1 && l % 2) return before ^ sign << 15 ^ random_below(random, 2);
    sign = random_below(random, 2);
    return sign << 15 | exponent << 7 | random_below(random, 128);
}

// Fills terms [0, n) of `count` vectors.
static void fill_part(struct random_source *random, const struct style *s, uint32_t count,
                      uint32_t n, uint16_t *out) {
    for (uint32_t i = 0; i < count; i++, out += PAIRS_K)
        for (uint32_t l = 0; l < n; l++) {
            out[l] = (uint16_t)term(random, s, l, l ? out[l - 1] : 0);
            if (random_below(random, 50) == 0 && s->kind != 2) out[l] &= 0x8000u;
        }
}

void run_pairs_fill(struct random_source *random, uint16_t *a, uint16_t *b) {
    for (uint32_t l = 0; l < PAIRS_K; l += CHUNK) {
        uint32_t n = PAIRS_K - l < CHUNK ? PAIRS_K - l : CHUNK;
        uint32_t low_a = 1 + random_below(random, 140);
        struct style s = {.kind = random_below(random, 3)};
        s.mantissa = 1 + random_below(random, 126);
        for (uint32_t i = 0; i < PAIRS_M; i += 4) {
            s.low = low_a;
            s.range = 1 + random_below(random, 4);
            if (random_below(random, 12) == 0) s.low = random_below(random, 100);
            fill_part(random, &s, 4, n, a + (size_t)i * PAIRS_K + l);
        }
        s.negates = true;
        for (uint32_t j = 0; j < PAIRS_N; j += 8) {
            // The sum of the least exponents is the bound, give or take 3, or anything.
            uint32_t sum = REE_PAIRS_LEAST_SUM - 3 + random_below(random, 7);
            s.low = sum > low_a ? sum - low_a : 0;
            s.range = 1 + random_below(random, 4);
            if (random_below(random, 12) == 0) s.low = random_below(random, 200);
            fill_part(random, &s, 8, n, b + (size_t)j * PAIRS_K + l);
        }
    }
}

void run_pairs_multiply(const struct ree_cpu_context *ctx, const uint16_t *a, const uint16_t *b,
                        float *out) {
    struct ree_matmul_params p;
    memset(&p, 0, sizeof p);
    p.dtype = REE_F32;
    p.a_dtype = p.b_dtype = REE_BF16;
    p.m = PAIRS_M;
    p.n = PAIRS_N;
    p.k = PAIRS_K;
    p.n_batch = 1;
    p.a_stride_m = p.b_stride_n = PAIRS_K;
    p.a_stride_k = p.b_stride_k = 1;
    void *operands[] = {(void *)(uintptr_t)a, (void *)(uintptr_t)b, out};
    struct ree_error err;
    REQUIRE(ree_cpu_matmul(ctx, &p, operands, &err) == REE_OK);
}

static float wide(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void run_pairs_define(const uint16_t *a, const uint16_t *b, float *out) {
    for (uint32_t i = 0; i < PAIRS_M; i++)
        for (uint32_t j = 0; j < PAIRS_N; j++) {
            float total = 0;
            for (uint32_t l = 0; l < PAIRS_K; l += CHUNK) {
                float acc = 0;
                for (uint32_t t = l; t < PAIRS_K && t < l + CHUNK; t++)
                    acc = fmaf(wide(a[i * PAIRS_K + t]), wide(b[j * PAIRS_K + t]), acc);
                total = l ? total + acc : acc;
            }
            out[i * PAIRS_N + j] = ree_cpu_canonical_nan(total + 0.0f);
        }
}

long run_pairs(uint64_t seed, uint32_t n_products) {
    static uint16_t a[PAIRS_M * PAIRS_K], b[PAIRS_N * PAIRS_K];
    static float expected[PAIRS_M * PAIRS_N], out[PAIRS_M * PAIRS_N];
    struct random_source random = {.state = seed};
    struct ree_cpu_scratch scratch[2] = {0};
    long n_differ = 0;
    for (uint32_t i = 0; i < n_products; i++) {
        run_pairs_fill(&random, a, b);
        run_pairs_define(a, b, expected);
        for (int isa = 0; isa < REE_N_CPU_ISAS; isa++) {
            if (!ree_cpu_isa_available((enum ree_cpu_isa)isa)) continue;
            struct ree_cpu_context ctx = {.isa = (enum ree_cpu_isa)isa,
                                          .n_threads = 1 + i % 2,
                                          .scratch = scratch,
                                          .thread_grain = 1};
            const enum ree_cpu_pairs all[] = {isa == REE_CPU_PORTABLE ? REE_CPU_PAIRS_MODEL
                                                                      : REE_CPU_PAIRS_WHERE_EXACT,
                                              REE_CPU_PAIRS_AS_FLOATS, REE_CPU_PAIRS_IF_FASTER};
            for (size_t v = 0; v < sizeof all / sizeof *all; v++) {
                ctx.pairs = all[v];
                run_pairs_multiply(&ctx, a, b, out);
                for (uint32_t e = 0; e < PAIRS_M * PAIRS_N; e++)
                    n_differ += memcmp(&out[e], &expected[e], sizeof *out) != 0;
            }
        }
    }
    for (int i = 0; i < 2; i++)
        ree_cpu_scratch_finish(&scratch[i]);
    return n_differ;
}
