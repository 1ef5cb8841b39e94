// Tiles that multiply pairs of bfloat16 with one instruction (tiles_pairs.h): the bound at which
// they are used, the instruction's model, and products around the bound.
//
// With $REE_TEST_PAIRS=N it also compares N chunk-dots of the processor's instruction with the
// tiles for floats. 1e9 take about a minute and a half.
#include "base/clock.h"
#include "device/cpu/tiles_pairs.h"
#include "repops/scalar/ops.h"
#include "run_pairs.h"
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// Returns the word of terms first, second.
static uint32_t word_of(float first, float second) {
    return (ree_bits(first) & 0xFFFF0000u) | ree_bits(second) >> 16;
}

static float dot(float a0, float b0, float a1, float b1) {
    return fmaf(a1, b1, fmaf(a0, b0, 0.0f));
}

// The smallest difference of two products is 2^-14 times 2^(eA + eB).
static void bound(void) {
    for (int sum = -113; sum <= -112; sum++) {
        float scale_a = ldexpf(1, -56), scale_b = ldexpf(1, sum + 56);
        float a0 = 0x1.02p0f * scale_a, b0 = 0x1.02p0f * scale_b;
        float a1 = 0x1.04p0f * scale_a, b1 = -scale_b;
        float right = dot(a0, b0, a1, b1);
        float model = ree_pairs_model(0.0f, word_of(a0, a1), word_of(b0, b1));
        CHECK(right == ldexpf(1, sum - 14));
        CHECK(model == (sum == -112 ? right : 0.0f));
    }
    CHECK(ree_pairs_exact(127 - 56, 127 - 56));
    CHECK(!ree_pairs_exact(127 - 56, 127 - 57));
    // A subnormal operand counts as zero, whatever it is multiplied with.
    CHECK(ree_pairs_model(0.0f, word_of(0x1p-127f, 0), word_of(0x1p20f, 0)) == 0.0f);
    CHECK(!ree_pairs_exact(0, 254));
    CHECK(!ree_pairs_exact(254, 0));
    CHECK(ree_pairs_exact(1, 141) && !ree_pairs_exact(1, 140));
    CHECK(ree_pairs_exact(REE_PAIRS_ZEROS, 0) && ree_pairs_exact(0, REE_PAIRS_ZEROS));
    // The upper half of a word is added first.
    CHECK(ree_pairs_model(0.0f, word_of(0x1p30f, 1), word_of(1, 1)) == 0x1p30f);
    CHECK(ree_pairs_model(-0x1p30f, word_of(0x1p30f, 1), word_of(1, 1)) == 1.0f);
    CHECK(ree_pairs_model(-0x1p30f, word_of(1, 0x1p30f), word_of(1, 1)) == 0.0f);
}

// Least exponents, for every position of the smallest operand and every layout.
static void packing(const struct ree_pair_tiles *pairs) {
    enum { MAX_N = 9, K = 70 };
    const uint32_t pitch = pairs->tiles.cols, n = pitch < MAX_N ? pitch - 1 : MAX_N;
    uint16_t terms[MAX_N * K];
    ree_any_u32 *words = malloc((K + 1) / 2 * pitch * sizeof *words);
    REQUIRE(words);
    for (uint32_t layout = 0; layout < 3; layout++)
        for (uint32_t smallest = 0; smallest < n * K; smallest++) {
            // Vectors are rows, columns, or every other column of a matrix.
            static uint16_t memory[2 * MAX_N * K];
            int64_t stride_vector = layout == 0 ? K : layout,
                    stride_k = layout == 0 ? 1 : layout * n;
            for (uint32_t i = 0; i < n * K; i++)
                terms[i] = (uint16_t)(i % 7 == 0 ? 0x8000 : 0x3F80 + (i & 0x7F));
            terms[smallest] = (uint16_t)(smallest % 5 == 0 ? 1 : 0x80u * (smallest % 100));
            for (uint32_t i = 0; i < n; i++)
                for (uint32_t l = 0; l < K; l++)
                    memory[i * stride_vector + l * stride_k] = terms[i * K + l];
            uint32_t least = pairs->pack(memory, stride_vector, stride_k, 0, n, K, words, pitch);
            CHECK_MSG(least == (uint32_t)terms[smallest] >> 7, "layout %u, term %u: %u", layout,
                      smallest, least);
            for (uint32_t l = 0; l < K; l++)
                for (uint32_t i = 0; i < pitch; i++) {
                    uint32_t got = words[l / 2 * pitch + i] >> (l % 2 ? 0 : 16) & 0xFFFF;
                    if (got != (i < n ? terms[i * K + l] : 0u)) {
                        CHECK_MSG(false, "layout %u: term %u of vector %u", layout, l, i);
                        free(words);
                        return;
                    }
                }
        }
    static const uint16_t zeros[MAX_N * K];
    CHECK(pairs->pack(zeros, K, 1, 0, n, K, words, pitch) == REE_PAIRS_ZEROS);
    free(words);
}

// Tiles of one lane with a fault: a wrong order of the two terms, or sums that are
// rounded only once; kind 2 has none. Only one of the tiles has it.
static uint32_t wrong_kind, wrong_rows;
static void wrong_tile(uint32_t k, const float *a, const float *b, float *c, size_t ldc,
                       uint32_t n_cols, uint32_t flags) {
    (void)flags;
    for (uint32_t i = 0; i < wrong_rows; i++)
        for (uint32_t j = 0; j < n_cols; j++) {
            float acc = 0;
            for (uint32_t l = 0; l < k; l++) {
                uint32_t x = ree_bits(a[l * wrong_rows + i]), y = ree_bits(b[l * 4 + j]);
                float a_upper = ree_float(x & 0xFFFF0000u), a_lower = ree_float(x << 16);
                float b_upper = ree_float(y & 0xFFFF0000u), b_lower = ree_float(y << 16);
                if (wrong_kind == 0)
                    acc = fmaf(a_upper, b_upper, fmaf(a_lower, b_lower, acc));
                else if (wrong_kind == 1)
                    acc = (float)((double)a_upper * b_upper + (double)a_lower * b_lower +
                                  (double)acc);
                else
                    acc = ree_pairs_model(acc, x, y);
            }
            c[i * ldc + j] = ree_cpu_canonical_nan(acc + 0.0f);
        }
}

static void probe(void) {
    CHECK(ree_pairs_probe(&ree_pair_tiles_model));
    CHECK(ree_pair_tiles_model.tiles.cols == 4 && ree_pair_tiles_model.tiles.lanes == 1);
    for (wrong_rows = 1; wrong_rows <= ree_pair_tiles_model.tiles.rows; wrong_rows++)
        for (uint32_t vecs = 1; vecs <= 4; vecs++)
            for (wrong_kind = 0; wrong_kind < 3; wrong_kind++) {
                struct ree_pair_tiles wrong = ree_pair_tiles_model;
                wrong.tiles.tile[wrong_rows - 1][vecs - 1] = wrong_tile;
                CHECK_MSG(ree_pairs_probe(&wrong) == (wrong_kind == 2), "%u x %u, kind %u",
                          wrong_rows, vecs, wrong_kind);
            }
}

// Tiles that take no time, and tiles that take a millisecond.
static void no_tile(uint32_t k, const float *a, const float *b, float *c, size_t ldc,
                    uint32_t n_cols, uint32_t flags) {
    (void)k, (void)a, (void)b, (void)c, (void)ldc, (void)n_cols, (void)flags;
}

static void slow_tile(uint32_t k, const float *a, const float *b, float *c, size_t ldc,
                      uint32_t n_cols, uint32_t flags) {
    double end = ree_clock() + 1e-3;
    while (ree_clock() < end)
        no_tile(k, a, b, c, ldc, n_cols, flags);
}

static void speed(void) {
    struct ree_pair_tiles tiles = ree_pair_tiles_model;
    tiles.tiles.tile[tiles.tiles.rows - 1][tiles.tiles.vecs - 1] = no_tile;
    CHECK(!ree_pairs_slow(&tiles));
    tiles.tiles.tile[tiles.tiles.rows - 1][tiles.tiles.vecs - 1] = slow_tile;
    CHECK(ree_pairs_slow(&tiles));
    struct ree_cpu_context ctx = {.isa = ree_cpu_isa_best()};
    bool as_floats = true;
    ree_pair_tiles_for(&ctx, &as_floats);
    CHECK(!as_floats);
    ctx.pairs = REE_CPU_PAIRS_AS_FLOATS;
    ree_pair_tiles_for(&ctx, &as_floats);
    CHECK(as_floats);
}

// Compares the processor's instruction with the tiles for floats, and counts chunk-dots.
static void many(double n_dots) {
    static uint16_t a[PAIRS_M * PAIRS_K], b[PAIRS_N * PAIRS_K];
    static float expected[PAIRS_M * PAIRS_N], out[PAIRS_M * PAIRS_N];
    struct random_source random = {.state = 99};
    struct ree_cpu_scratch scratch = {0};
    struct ree_cpu_context ctx = {.isa = ree_cpu_isa_best(), .n_threads = 1, .scratch = &scratch};
    double done = 0;
    long n_differ = 0;
    bool as_floats;
    for (; done < n_dots; done += PAIRS_M * PAIRS_N * PAIRS_CHUNKS) {
        run_pairs_fill(&random, a, b);
        ctx.no_dot = true;
        run_pairs_multiply(&ctx, a, b, expected);
        ctx.no_dot = false;
        run_pairs_multiply(&ctx, a, b, out);
        for (uint32_t e = 0; e < PAIRS_M * PAIRS_N; e++)
            n_differ += memcmp(&out[e], &expected[e], sizeof *out) != 0;
    }
    ctx.no_dot = false;
    printf("%.0f chunk-dots, %s: %ld outputs differ\n", done,
           ree_pair_tiles_for(&ctx, &as_floats) ? "the processor multiplies pairs"
                                                : "no instruction for pairs",
           n_differ);
    CHECK(n_differ == 0);
    ree_cpu_scratch_finish(&scratch);
}

int main(void) {
    struct ree_cpu_context best = {.isa = ree_cpu_isa_best()};
    best.pairs = REE_CPU_PAIRS_IF_FASTER;
    bool as_floats;
    const struct ree_pair_tiles *pairs = ree_pair_tiles_for(&best, &as_floats);
    printf("pairs: %s\n", !pairs      ? "the model only"
                          : as_floats ? "this processor, slower than floats"
                                      : "this processor");
    bound();
    packing(&ree_pair_tiles_model);
    if (pairs) packing(pairs);
    probe();
    speed();
    CHECK(run_pairs(7, 12) == 0);
    const char *n_dots = getenv("REE_TEST_PAIRS");
    if (n_dots) many(strtod(n_dots, NULL));
    return test_finish();
}
