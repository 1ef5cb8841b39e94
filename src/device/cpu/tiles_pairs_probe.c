// Tries all tiles of an instruction that multiplies pairs of terms (tiles_pairs.h) on hard cases:
// chunk-dots whose partial sums cancel, are inexact, overflow, or come as close to the subnormal
// numbers as the bound allows. And measures whether it is faster than multiplying floats.
#include "device/cpu/tiles_pairs.h"

#include "base/clock.h"
#include "repops/scalar/ops.h"

#include <math.h>

#define WORDS 8
#define MAX_COLS REE_PAIRS_MAX_COLS

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

struct trial {
    uint64_t state;
    enum { PLAIN, CANCELLING, LARGE, SMALL, N_STYLES } style;
    uint32_t rows, cols;
    float acc[REE_TILE_MAX_ROWS][MAX_COLS]; // running sums by the definition
};

// Chooses the next term of every row and column, so that the running sums meet a hard case.
static void choose_terms(struct trial *t, uint32_t *a, uint32_t *b) {
    // With SMALL the sum of the least exponents is REE_PAIRS_LEAST_SUM; with LARGE sums overflow.
    uint32_t low = t->style == SMALL ? REE_PAIRS_LEAST_SUM / 2 : t->style == LARGE ? 180 : 110;
    uint32_t range = t->style == SMALL ? 3 : t->style == LARGE ? 12 : 24;
    for (uint32_t i = 0; i < t->rows; i++)
        a[i] = number(&t->state, low, range);
    for (uint32_t j = 0; j < t->cols; j++)
        b[j] = number(&t->state, low, range);
    if (t->style == PLAIN || next(&t->state) % 3 != 0) return;
    // In row 0, cancel the leading 8 bits of each sum: a[0] is a power of two, so a[0] * b[j] is
    // minus the sum truncated to a bfloat16.
    a[0] = (low + 2) << 7;
    for (uint32_t j = 0; j < t->cols; j++) {
        uint32_t bits = ree_bits(-t->acc[0][j] / wide(a[0])) >> 16, exponent = bits >> 7 & 0xFF;
        if (exponent >= low && exponent < 254) b[j] = bits;
    }
}

// Returns whether one tile gives the sums of the definition. Chooses the operands term by term,
// because each choice depends on the sums of the terms before it.
static bool try_tile(const struct ree_pair_tiles *pairs, struct trial *t, ree_tile_fn tile) {
    float a[WORDS * REE_TILE_MAX_ROWS], b[WORDS * MAX_COLS]; // packed words
    float c[REE_TILE_MAX_ROWS * MAX_COLS];
    ree_any_u32 *words_a = (ree_any_u32 *)a, *words_b = (ree_any_u32 *)b;
    const uint32_t pitch = pairs->tiles.cols;
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    memset(t->acc, 0, sizeof t->acc);
    for (uint32_t l = 0; l < 2 * WORDS; l++) {
        uint32_t term_a[REE_TILE_MAX_ROWS], term_b[MAX_COLS], shift = l % 2 ? 0 : 16;
        choose_terms(t, term_a, term_b);
        for (uint32_t i = 0; i < t->rows; i++)
            words_a[l / 2 * t->rows + i] |= term_a[i] << shift;
        for (uint32_t j = 0; j < t->cols; j++) {
            words_b[l / 2 * pitch + j] |= term_b[j] << shift;
            for (uint32_t i = 0; i < t->rows; i++)
                t->acc[i][j] = fmaf(wide(term_a[i]), wide(term_b[j]), t->acc[i][j]);
        }
    }
    tile(WORDS, a, b, c, MAX_COLS, t->cols, REE_TILE_FIRST | REE_TILE_LAST);
    for (uint32_t i = 0; i < t->rows; i++)
        for (uint32_t j = 0; j < t->cols; j++)
            if (ree_bits(c[i * MAX_COLS + j]) !=
                ree_bits(ree_cpu_canonical_nan(t->acc[i][j] + 0.0f)))
                return false;
    return true;
}

// Returns the number of trials of a tile. One with few columns meets fewer cases in each trial.
static uint32_t tries(uint32_t cols) {
    return N_STYLES * (cols < 16 ? 32 / cols : 1);
}

bool ree_pairs_probe(const struct ree_pair_tiles *pairs) {
    const struct ree_tiles *tiles = &pairs->tiles;
    struct trial t = {.state = 1};
    for (t.rows = 1; t.rows <= tiles->rows; t.rows++)
        for (uint32_t vecs = 1; vecs <= tiles->vecs; vecs++)
            for (uint32_t i = 0; i < tries(vecs * tiles->lanes); i++) {
                // Tiles with an odd number of rows omit their last column, to test partial vectors.
                t.style = i % N_STYLES;
                t.cols = vecs * tiles->lanes - (tiles->lanes > 1 && t.rows % 2);
                if (!try_tile(pairs, &t, tiles->tile[t.rows - 1][vecs - 1])) return false;
            }
    return true;
}

#define MEASURED_WORDS 64
#define MEASURED_CALLS 4
#define MEASUREMENTS 10

// Returns the seconds of some calls of the largest tile with k words of these panels.
static double seconds(const struct ree_tiles *tiles, uint32_t k, const float *a, const float *b) {
    float c[REE_TILE_MAX_ROWS * MAX_COLS];
    double start = ree_clock();
    for (int i = 0; i < MEASURED_CALLS; i++)
        tiles->tile[tiles->rows - 1][tiles->vecs - 1](k, a, b, c, MAX_COLS, tiles->cols,
                                                      REE_TILE_FIRST | REE_TILE_LAST);
    return ree_clock() - start;
}

bool ree_pairs_slow(const struct ree_pair_tiles *pairs) {
    float a[2 * MEASURED_WORDS * REE_TILE_MAX_ROWS], b[2 * MEASURED_WORDS * MAX_COLS];
    // Each word is a pair of ones, and a float near 1.
    for (size_t i = 0; i < sizeof a / sizeof *a; i++)
        a[i] = ree_float(0x3F803F80);
    for (size_t i = 0; i < sizeof b / sizeof *b; i++)
        b[i] = ree_float(0x3F803F80);
    // The shortest of several, by turns, is one that nothing interrupted.
    double with_pairs = 1, with_floats = 1;
    for (int i = 0; i < MEASUREMENTS; i++) {
        with_pairs = fmin(with_pairs, seconds(&pairs->tiles, MEASURED_WORDS, a, b));
        with_floats = fmin(with_floats, seconds(pairs->floats, 2 * MEASURED_WORDS, a, b));
    }
    return with_pairs > with_floats;
}
