// matmul of blockwise activations (int8) and blockwise weights, the block-dot of NUMERICS.md
// section 3:
//
//     acc = fma(I, da * db, acc), I = the sum of a * (q - z) over a run of terms, exact
//
// with the scales da and db of a block of a and of b, and the number q and zero point z of a
// weight.
//
// The rows are packed once per product; the weights come as panels (matmul_panels.c), prepacked, or
// packed by the thread that multiplies with them. Threads process panels of columns with groups of
// rows: one chunk of a group's rows, one chunk of the panel and the group's results stay in the
// second-level cache.
#include "device/cpu/matmul.h"
#include "device/cpu/tiles_int8.h"

#define GROUP_ROWS 192 // a multiple of the rows of every tile
#define MAX_COLS (REE_PANEL_VECS * 16)

static uint32_t min_u32(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}
static uint32_t ceil_div(uint32_t a, uint32_t b) {
    return a / b + (a % b != 0);
}

struct job {
    const struct ree_matmul_params *p;
    const struct ree_int8_tiles *tiles;
    const struct ree_tiles *float_tiles; // with the same number of lanes; used to pack B
    const struct ree_matmul_output *output;
    uint32_t run, n_runs; // terms of a run; runs of a row
    const int8_t *a_numbers;
    const float *a_scales;
    ree_any_u32 *a;        // packed rows (tiles_int8.h)
    size_t row_words;      // words of a packed row, with its corrections and scales
    uint32_t n_b;          // operands of B: numbers, scales, perhaps zero points
    const void *b[3];      // these operands as they are in memory
    const void *packed[3]; // the same, packed in advance; NULL: threads pack panels themselves
    uint32_t n_groups;     // groups of GROUP_ROWS rows per panel; 1: a unit has all rows
    uint32_t cols;
};

// Rows

// Packs row `row`, number i of a group of n rows. For each word of B there are `distance` words
// (tiles_int8.h): word `first` of them holds the terms first, first + distance, and so on of those
// in the word of B. `to` begins the group.
static void pack_row(const struct job *s, uint32_t row, uint32_t i, uint32_t n, ree_any_u32 *to) {
    const struct ree_matmul_params *p = s->p;
    uint32_t terms = s->tiles->terms[p->b_bits], per_b = 32 / p->b_bits, distance = per_b / terms;
    // Words of a run, and from a word of a row to its next one.
    uint32_t n_words = s->run / terms, next = s->tiles->by_rows ? 1 : n;
    const int8_t *a = s->a_numbers + p->a_offset + (int64_t)row * p->a_stride_m;
    const float *scales = s->a_scales + (size_t)row * ceil_div(p->k, p->a_block);
    int8_t dense[REE_CHUNK];
    for (uint32_t r = 0; r < s->n_runs; r++) {
        uint32_t k0 = r * s->run, length = min_u32(p->k - k0, s->run);
        const int8_t *from = a + (int64_t)k0 * p->a_stride_k;
        int32_t sum = 0;
        if (p->a_stride_k == 1)
            memcpy(dense, from, length);
        else
            for (uint32_t l = 0; l < length; l++)
                dense[l] = from[(int64_t)l * p->a_stride_k];
        memset(dense + length, 0, s->run - length);
        for (uint32_t l = 0; l < s->run; l++)
            sum += dense[l];
        ree_any_u32 *word = to + (s->tiles->by_rows ? i * n_words : i);
        for (uint32_t l = 0; l < s->run; l += per_b)
            for (uint32_t first = 0; first < distance; first++, word += next) {
                const int8_t *t = dense + l + first;
                if (terms == 4)
                    *word = (uint32_t)(uint8_t)t[0] | (uint32_t)(uint8_t)t[distance] << 8 |
                            (uint32_t)(uint8_t)t[2 * distance] << 16 |
                            (uint32_t)(uint8_t)t[3 * distance] << 24;
                else
                    *word = (uint32_t)(uint16_t)t[0] | (uint32_t)(uint16_t)t[distance] << 16;
            }
        int32_t default_zero = (1 << (p->b_bits - 1)) - s->tiles->b_center[p->b_bits];
        to += (size_t)n_words * n;
        to[i] = (uint32_t)(p->has_zero_points ? -sum : -sum * default_zero);
        memcpy(to + n + i, &scales[k0 / p->a_block], sizeof *scales);
        to += 2 * n;
    }
}

// Packs groups of rows.
static void pack_rows(const void *user, const struct ree_cpu_range *range) {
    const struct job *s = user;
    for (uint64_t group = range->begin; group < range->end; group++) {
        uint32_t row = (uint32_t)group * s->tiles->rows;
        uint32_t n = min_u32(s->p->m - row, s->tiles->rows);
        for (uint32_t i = 0; i < n; i++)
            pack_row(s, row + i, i, n, s->a + row * s->row_words);
    }
}

// Products

// Computes and writes the results of rows [row, row + n_rows) for one panel, whose first column is
// j.
static void run_group(const struct job *s, const void *const *panel, uint32_t j, uint32_t row,
                      uint32_t n_rows) {
    const struct ree_matmul_params *p = s->p;
    _Alignas(64) float totals[GROUP_ROWS * MAX_COLS];
    uint32_t cols = s->cols;
    for (uint32_t k0 = 0; k0 < p->k; k0 += REE_CHUNK) {
        uint32_t end = min_u32(p->k, k0 + REE_CHUNK), r = k0 / s->run;
        struct ree_int8_chunk chunk = {
            .n_runs = ceil_div(end, s->run) - r,
            .run = s->run,
            .b_block = p->b_block,
            .bits = p->b_bits,
            .a = s->a + row * s->row_words,
            .first_run = r,
            .a_pitch = s->row_words,
            .b = (const ree_any_u32 *)panel[0] + (size_t)k0 * p->b_bits / 32 * cols,
            .b_scales = (const float *)panel[1] + (size_t)(k0 / p->b_block) * cols,
        };
        if (s->n_b == 3)
            chunk.b_zeros = (const uint8_t *)panel[2] + (size_t)(k0 / p->b_block) * cols;
        uint32_t flags = (k0 == 0 ? REE_TILE_FIRST : 0) | (end == p->k ? REE_TILE_LAST : 0);
        s->tiles->run(n_rows, &chunk, totals, cols, flags);
    }
    for (uint32_t i = 0; i < n_rows; i++)
        ree_matmul_write(s->output, totals + i * cols, (row + i) * p->n + j,
                         min_u32(p->n - j, cols));
}

enum scratch_slot { SLOT_ROWS, SLOT_PANEL };

// Rounds the size of a packed operand up, so that the next operand of the panel is aligned.
static size_t aligned(size_t size) {
    return (size + 63) / 64 * 64;
}

static void run_units(const void *user, const struct ree_cpu_range *range) {
    const struct job *s = user;
    const struct ree_matmul_params *p = s->p;
    for (uint64_t unit = range->begin; unit < range->end; unit++) {
        uint32_t at = (uint32_t)(unit / s->n_groups), group = (uint32_t)(unit % s->n_groups);
        const void *panel[3] = {0};
        char *own = range->scratch[SLOT_PANEL];
        for (uint32_t i = 0; i < s->n_b; i++) {
            size_t size = ree_panel_size(s->float_tiles, p, i + 1);
            if (s->packed[i]) {
                panel[i] = (const char *)s->packed[i] + at * size;
                continue;
            }
            ree_panel_pack(s->float_tiles, p, i + 1, at, s->b[i], own);
            panel[i] = own;
            own += aligned(size);
        }
        uint32_t begin = s->n_groups == 1 ? 0 : group * GROUP_ROWS;
        uint32_t end = s->n_groups == 1 ? p->m : min_u32(p->m, begin + GROUP_ROWS);
        for (uint32_t row = begin; row < end; row += GROUP_ROWS)
            run_group(s, panel, at * s->cols, row, min_u32(end - row, GROUP_ROWS));
    }
}

enum ree_status ree_matmul_int8(const struct ree_cpu_context *ctx,
                                const struct ree_matmul_params *p, void *const *operands,
                                const struct ree_matmul_output *output, struct ree_error *err) {
    const struct ree_int8_tiles *tiles = ree_int8_tiles_for(ctx, p->m);
    struct job s = {
        .p = p,
        .tiles = tiles,
        .float_tiles = ree_tiles_for(ctx->isa),
        .output = output,
        .run = min_u32(p->a_block, p->b_block),
        .a_numbers = operands[0],
        .a_scales = operands[ree_matmul_n_operands(p) - 1],
        .n_b = p->has_zero_points ? 3 : 2,
        .n_groups = 1,
        .cols = REE_PANEL_VECS * tiles->lanes,
    };
    s.n_runs = ceil_div(p->k, s.run);
    s.row_words = (size_t)s.n_runs * ree_int8_run_words(tiles, s.run, p->b_bits);
    size_t panel_size = 0;
    bool packed = true;
    for (uint32_t i = 0; i < s.n_b; i++) {
        s.b[i] = operands[i + 1];
        s.packed[i] = ctx->packed[i + 1];
        packed = packed && s.packed[i];
        panel_size += aligned(ree_panel_size(s.float_tiles, p, i + 1));
    }
    if (packed) s.n_groups = ceil_div(p->m, GROUP_ROWS);
    size_t rows_size = p->m * s.row_words * sizeof(uint32_t);
    s.a = ree_cpu_scratch_get(ctx, 0, SLOT_ROWS, rows_size);
    if (!s.a) return ree_cpu_no_memory(err, rows_size);

    const struct ree_cpu_loop rows = {
        .n = ceil_div(p->m, tiles->rows),
        .grain = 1,
        .n_threads = ree_cpu_threads_for(ctx, (uint64_t)p->m * p->k),
        .body = pack_rows,
        .job = &s,
    };
    ree_cpu_run_loop(ctx, &rows);
    // Estimates nanoseconds. With many rows, a thread does 160 multiply-adds per nanosecond; with
    // few rows, it reads 20 weights per nanosecond.
    uint64_t weights = (uint64_t)p->n * p->k;
    uint32_t n_threads = ree_cpu_threads_for(ctx, weights * (8 + p->m) / 160);
    if (!packed) REE_TRY(ree_cpu_scratch_reserve(ctx, n_threads, SLOT_PANEL, panel_size, err));
    const struct ree_cpu_loop products = {
        .n = (uint64_t)ceil_div(p->n, s.cols) * s.n_groups,
        .n_threads = n_threads,
        .body = run_units,
        .job = &s,
    };
    ree_cpu_run_loop(ctx, &products);
    return REE_OK;
}
