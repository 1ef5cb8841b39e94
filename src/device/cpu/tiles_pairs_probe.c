// Tries an instruction that multiplies pairs of terms (tiles_pairs.h) on hard cases: chunk-dots
// whose partial sums cancel, lie between two floats, overflow, or come as close to the subnormal
// numbers as the bound allows.
#include "device/cpu/tiles_pairs.h"

#include "repops/scalar/ops.h"

#include <math.h>

#define WORDS 16
#define MAX_COLS 64
#define TRIALS 24

static uint32_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

// Returns a bfloat16 with a biased exponent in [low, low + range).
static uint32_t number(uint64_t *state, uint32_t low, uint32_t range) {
    uint32_t r = next(state);
    return (r & 0x8000u) | (low + (r >> 16) % range) << 7 | (r & 0x7F);
}

static float wide(uint32_t number) {
    return ree_float(number << 16);
}

// Chooses term l of every column, so that the running sums `acc` of the definition meet a hard
// case.
static void choose_terms(uint64_t *state, uint32_t style, uint32_t cols, const float *acc,
                         uint32_t *a, uint32_t *b) {
    // The least exponents have the sum REE_PAIRS_LEAST_SUM in style 3.
    uint32_t low = style == 3 ? REE_PAIRS_LEAST_SUM / 2 : 110, range = style == 3 ? 3 : 24;
    *a = number(state, low, range);
    for (uint32_t j = 0; j < cols; j++)
        b[j] = number(state, style == 2 ? 200 : low, range);
    if (style == 0 || next(state) % 3 != 0) return;
    // Subtract the sum's leading bits, or all of it: a is a power of two.
    *a = (low + 2) << 7;
    for (uint32_t j = 0; j < cols; j++) {
        float quotient = -acc[j] / wide(*a);
        uint32_t bits = ree_bits(quotient) >> 16, exponent = bits >> 7 & 0xFF;
        if (exponent >= low && exponent < 254) b[j] = bits;
    }
}

bool ree_pairs_probe(const struct ree_pair_tiles *pairs) {
    uint32_t cols = pairs->tiles.cols;
    float a[WORDS], b[WORDS * MAX_COLS], c[MAX_COLS]; // a and b hold words
    ree_any_u32 *words_a = (ree_any_u32 *)a;
    uint64_t state = 1;
    for (uint32_t trial = 0; trial < TRIALS; trial++) {
        float acc[MAX_COLS] = {0};
        for (uint32_t l = 0; l < 2 * WORDS; l++) {
            uint32_t term_a, term_b[MAX_COLS];
            choose_terms(&state, trial % 4, cols, acc, &term_a, term_b);
            uint32_t shift = l % 2 ? 0 : 16;
            ree_any_u32 *word_b = (ree_any_u32 *)b + (size_t)(l / 2) * cols;
            words_a[l / 2] = (l % 2 ? words_a[l / 2] : 0) | term_a << shift;
            for (uint32_t j = 0; j < cols; j++) {
                word_b[j] = (l % 2 ? word_b[j] : 0) | term_b[j] << shift;
                acc[j] = fmaf(wide(term_a), wide(term_b[j]), acc[j]);
            }
        }
        pairs->tiles.tile[0][pairs->tiles.vecs - 1](WORDS, a, b, c, cols, cols,
                                                    REE_TILE_FIRST | REE_TILE_LAST);
        for (uint32_t j = 0; j < cols; j++)
            if (ree_bits(c[j]) != ree_bits(ree_cpu_canonical_nan(acc[j] + 0.0f))) return false;
    }
    return true;
}
