// Tiles for blockwise activations with AMX: one instruction for a tile of 16 x 16 results and up to
// 64 terms of each.
//
// Performance bounds for one core: a tile's run of 32 terms is 8,192 multiply-adds. Its instruction
// takes 16 cycles, since it takes a cycle for each row. Three vector instructions for each of the
// 16 rows add the result to the sums, 24 cycles, and hide it. So the scales bound the time, at 341
// multiply-adds a cycle, and VNNI's 12 instructions for each row would be 85.
//
// The weights of a chunk are unpacked to signed bytes once for all rows:
//
//     bits  without zero points   with zero points
//     4     q - 8                 q - z
//     8     q - 128               q - 128; the corrections account for z
#include <immintrin.h>

#include "device/cpu/tiles_int8.h"
#include "device/cpu/unroll.h"

#define LANES 16
#define COLS (REE_PANEL_VECS * LANES)
#define ROWS 16
#define TILE_BYTES 64 // terms of one instruction
#define MIN_RUN 16    // terms
#define MAX_RUNS (REE_CHUNK / MIN_RUN)

// Tiles: 0 and 1 are results, 4 and 5 rows of A, 6 and 7 weights.
struct config {
    uint8_t palette, first_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

static void configure(uint32_t rows, uint32_t terms) {
    _Alignas(64) struct config config = {.palette = 1};
    for (int i = 0; i < 2; i++) {
        config.rows[i] = (uint8_t)rows;
        config.row_bytes[i] = 4 * LANES;
    }
    for (int i = 4; i < 6; i++) {
        config.rows[i] = (uint8_t)rows;
        config.row_bytes[i] = (uint16_t)terms;
    }
    for (int i = 6; i < 8; i++) {
        config.rows[i] = (uint8_t)(terms / 4);
        config.row_bytes[i] = 4 * LANES;
    }
    _tile_loadconfig(&config);
}

// Four copies of each column's number that is subtracted in run r.
static void load_zeros(const struct ree_int8_chunk *t, uint32_t r, __m512i out[REE_PANEL_VECS]) {
    const size_t at = (size_t)(r * t->run / t->b_block) * COLS;
    for (int j = 0; j < REE_PANEL_VECS; j++) {
        out[j] = _mm512_set1_epi8(8);
        if (!t->b_zeros) continue;
        const uint8_t *z = t->b_zeros + at + j * LANES;
        out[j] = _mm512_mullo_epi32(
            _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)z)),
            _mm512_set1_epi32(0x01010101));
    }
}

// Unpacks a chunk of numbers of 4 bits. out: (terms / 4, COLS) words of 4 signed terms, in the
// order of A's words.
static void unpack_4(const struct ree_int8_chunk *t, ree_any_u32 *out) {
    const __m512i nibbles = _mm512_set1_epi8(15);
    const ree_any_u32 *b = t->b;
    for (uint32_t r = 0; r < t->n_runs; r++) {
        __m512i zeros[REE_PANEL_VECS];
        load_zeros(t, r, zeros);
        for (uint32_t w = 0; w < t->run / 8; w++, out += 2 * COLS)
            for (int j = 0; j < REE_PANEL_VECS; j++, b += LANES) {
                __m512i word = _mm512_loadu_si512(b);
                __m512i low = _mm512_and_si512(word, nibbles);
                __m512i high = _mm512_and_si512(_mm512_srli_epi32(word, 4), nibbles);
                _mm512_storeu_si512(out + j * LANES, _mm512_sub_epi8(low, zeros[j]));
                _mm512_storeu_si512(out + COLS + j * LANES, _mm512_sub_epi8(high, zeros[j]));
            }
    }
}

// As unpack_4, of numbers of 8 bits.
static void unpack_8(const struct ree_int8_chunk *t, ree_any_u32 *out) {
    const __m512i center = _mm512_set1_epi8(-128);
    for (uint32_t i = 0; i < t->n_runs * t->run / 4 * COLS; i += LANES)
        _mm512_storeu_si512(out + i, _mm512_xor_si512(_mm512_loadu_si512(t->b + i), center));
}

// A group of rows with one chunk.
struct group {
    const struct ree_int8_chunk *chunk;
    const ree_any_u32 *a; // its packed rows, from the chunk's first run on
    uint32_t n_rows, run_words;
    uint32_t runs_shift;  // a block of B has 2^runs_shift runs
    const ree_any_u32 *b; // unpacked
};

// Where a group's results go: its first row, the distance of rows, and REE_TILE_ flags.
struct results {
    float *c;
    size_t pitch;
    uint32_t flags;
};

static inline const ree_any_u32 *words_of(const struct group *g, uint32_t r) {
    return g->a + (size_t)(r * g->run_words) * g->n_rows;
}

// Sums of the products of a chunk's runs and one vector of columns.
typedef int32_t run_sums[MAX_RUNS][ROWS][LANES];

#define MULTIPLY(c, a_tile, b_tile)                                                                \
    do {                                                                                           \
        _tile_zero(c);                                                                             \
        for (uint32_t l = 0; l < run; l += TILE_BYTES) {                                           \
            _tile_loadd(a_tile, a + l / 4, run);                                                   \
            _tile_loadd(b_tile, b + (size_t)(l / 4) * COLS, 4 * COLS);                             \
            _tile_dpbssd(c, a_tile, b_tile);                                                       \
        }                                                                                          \
        _tile_stored(c, sums[r], 4 * LANES);                                                       \
    } while (0)

// Sets sums[r]. Runs take turns at the tiles, so that one need not wait for the other.
static inline void multiply(const struct group *g, int j, uint32_t r, run_sums sums) {
    const uint32_t run = g->chunk->run;
    const ree_any_u32 *a = words_of(g, r), *b = g->b + (size_t)r * (run / 4) * COLS + j * LANES;
    if (r & 1)
        MULTIPLY(1, 5, 7);
    else
        MULTIPLY(0, 4, 6);
}

static inline __m512 finish(__m512 x) {
    x = _mm512_add_ps(x, _mm512_setzero_ps());
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_mask_mov_ps(x, nan, _mm512_castsi512_ps(_mm512_set1_epi32(0x7FC00000)));
}

// Adds run r of one vector of columns to n results.
INLINE void add(const struct group *g, int j, uint32_t r, uint32_t n, run_sums sums, bool corrected,
                __m512 acc[ROWS]) {
    const struct ree_int8_chunk *t = g->chunk;
    const size_t at = (size_t)(r >> g->runs_shift) * COLS + (size_t)j * LANES;
    const ree_any_u32 *corrections = words_of(g, r) + t->run / 4 * g->n_rows;
    const ree_any_f32 *scales = (const ree_any_f32 *)(corrections + g->n_rows);
    const __m512 b_scales = _mm512_loadu_ps(t->b_scales + at);
    const int32_t(*from)[LANES] = sums[r];
    __m512i zeros = _mm512_setzero_si512();
    if (corrected)
        zeros = _mm512_sub_epi32(
            _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(t->b_zeros + at))),
            _mm512_set1_epi32(128));
    UNROLL
    for (uint32_t i = 0; i < ROWS; i++) {
        if (i >= n) continue;
        __m512i sum = _mm512_load_si512(from[i]);
        if (corrected)
            sum = _mm512_add_epi32(
                sum, _mm512_mullo_epi32(zeros, _mm512_set1_epi32((int)corrections[i])));
        acc[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum),
                                 _mm512_mul_ps(_mm512_set1_ps(scales[i]), b_scales), acc[i]);
    }
}

// Computes a group of n rows.
INLINE void run_group(const struct group *g, uint32_t n, const struct results *to, bool corrected) {
    _Alignas(64) run_sums sums;
    for (int j = 0; j < REE_PANEL_VECS; j++) {
        __m512 acc[ROWS];
        UNROLL
        for (uint32_t i = 0; i < ROWS; i++)
            acc[i] = _mm512_setzero_ps();
        // In turns, not run by run: tile stores among vector instructions take three times as long.
        for (uint32_t r = 0; r < g->chunk->n_runs; r++)
            multiply(g, j, r, sums);
        for (uint32_t r = 0; r < g->chunk->n_runs; r++)
            add(g, j, r, n, sums, corrected, acc);
        UNROLL
        for (uint32_t i = 0; i < ROWS; i++) {
            if (i >= n) continue;
            float *c = to->c + i * to->pitch + j * LANES;
            if (!(to->flags & REE_TILE_FIRST)) acc[i] = _mm512_add_ps(_mm512_loadu_ps(c), acc[i]);
            _mm512_storeu_ps(c, to->flags & REE_TILE_LAST ? finish(acc[i]) : acc[i]);
        }
    }
}

static void run(uint32_t n_rows, const struct ree_int8_chunk *t, float *c, size_t ldc,
                uint32_t flags) {
    _Alignas(64) ree_any_u32 b[REE_CHUNK / 4 * COLS];
    struct group g = {.chunk = t,
                      .run_words = t->run / 4 + 2,
                      .runs_shift = (uint32_t)__builtin_ctz(t->b_block / t->run),
                      .b = b};
    const uint32_t terms = t->run < TILE_BYTES ? t->run : TILE_BYTES;
    if (t->bits == 4)
        unpack_4(t, b);
    else
        unpack_8(t, b);
    for (uint32_t row = 0; row < n_rows; row += ROWS) {
        uint32_t before = g.n_rows;
        g.n_rows = n_rows - row < ROWS ? n_rows - row : ROWS;
        if (g.n_rows != before) configure(g.n_rows, terms);
        g.a = t->a + row * t->a_pitch + (size_t)(t->first_run * g.run_words) * g.n_rows;
        const struct results to = {c + row * ldc, ldc, flags};
        const bool corrected = t->bits == 8 && t->b_zeros;
        if (g.n_rows == ROWS && corrected)
            run_group(&g, ROWS, &to, true);
        else if (g.n_rows == ROWS)
            run_group(&g, ROWS, &to, false);
        else
            run_group(&g, g.n_rows, &to, corrected);
    }
    _tile_release();
}

const struct ree_int8_tiles ree_int8_tiles_amxint8 = {.lanes = LANES,
                                                      .terms = {[4] = 4, [8] = 4},
                                                      .rows = ROWS,
                                                      .min_rows = ROWS,
                                                      .by_rows = true,
                                                      .b_center = {[4] = 8, [8] = 128},
                                                      .run = run};
