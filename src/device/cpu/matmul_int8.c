// matmul of blockwise activations (int8) and blockwise weights, the block-dot of NUMERICS.md
// section 3:
//
//     acc = fma(I, da * db, acc), I = the sum of a * (q - z) over a run of terms, exact
//
// The rows are packed once per product; the weights come as panels (matmul_panels.c), prepacked, or
// packed by the thread that multiplies with them. Threads process panels of columns with groups of
// rows: one chunk of a group's rows, one chunk of the panel and the group's results stay in the
// second-level cache.
#include "device/cpu/matmul.h"
#include "device/cpu/tiles_int8.h"

#define GROUP_ROWS 96 // a multiple of the rows of every tile
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
    const struct ree_matmul_output *output;
    uint32_t run, n_runs;       // terms of a run; runs of a row
    uint32_t a_blocks; // blocks of a row of A
    const int8_t *a_numbers;
    const float *a_scales;
    ree_any_u32 *a;    // packed rows, (m, n_words)
    int32_t *a_sums;   // (m, n_runs)
    size_t n_words;    // words of a packed row
    uint32_t n_b;      // operands of B: numbers, scales, perhaps zero points
    const void *b[3];  // as they are in memory
    const void *packed[3]; // all panels; NULL: each thread packs
    uint32_t n_groups;     // of rows, for each panel
    uint32_t cols;
};

// Rows

// Order of the terms that packed words hold, for each word of B (tiles_int8.h): a word of A holds
// terms `first`, first + distance, ...
static void pack_row(const struct job *s, uint32_t row) {
    const struct ree_matmul_params *p = s->p;
    uint32_t terms = s->tiles->terms, per_b = 32 / p->b_bits, distance = per_b / terms;
    const int8_t *a = s->a_numbers + p->a_offset + (int64_t)row * p->a_stride_m;
    int8_t dense[REE_CHUNK];
    ree_any_u32 *words = s->a + row * s->n_words;
    for (uint32_t r = 0; r < s->n_runs; r++) {
        uint32_t first = r * s->run, n = min_u32(p->k - first, s->run);
        const int8_t *terms_of = a + (int64_t)first * p->a_stride_k;
        int32_t sum = 0;
        if (p->a_stride_k == 1)
            memcpy(dense, terms_of, n);
        else
            for (uint32_t l = 0; l < n; l++)
                dense[l] = terms_of[(int64_t)l * p->a_stride_k];
        memset(dense + n, 0, s->run - n);
        for (uint32_t l = 0; l < s->run; l++)
            sum += dense[l];
        s->a_sums[(size_t)row * s->n_runs + r] = sum;
        for (uint32_t l = 0; l < s->run; l += per_b)
            for (uint32_t i = 0; i < distance; i++) {
                const int8_t *t = dense + l + i;
                if (terms == 4)
                    *words++ = (uint32_t)(uint8_t)t[0] | (uint32_t)(uint8_t)t[distance] << 8 |
                               (uint32_t)(uint8_t)t[2 * distance] << 16 |
                               (uint32_t)(uint8_t)t[3 * distance] << 24;
                else
                    *words++ = (uint32_t)(uint16_t)t[0] | (uint32_t)(uint16_t)t[distance] << 16;
            }
    }
}

static void pack_rows(const void *user, const struct ree_cpu_range *range) {
    for (uint64_t i = range->begin; i < range->end; i++)
        pack_row(user, (uint32_t)i);
}

// Products

// Computes the results of one panel and rows [row, row + n_rows).
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
            .a_block = p->a_block,
            .b_block = p->b_block,
            .bits = p->b_bits,
            .a = s->a + row * s->n_words + k0 / s->tiles->terms,
            .a_pitch = s->n_words,
            .a_sums = s->a_sums + (size_t)row * s->n_runs + r,
            .a_sums_pitch = s->n_runs,
            .a_scales = s->a_scales + (size_t)row * s->a_blocks + k0 / p->a_block,
            .a_scales_pitch = s->a_blocks,
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

enum scratch_slot { SLOT_ROWS, SLOT_SUMS, SLOT_PANEL };

// Returns the distance in bytes between the operands of a panel that a thread packs.
static size_t aligned(size_t size) {
    return (size + 63) / 64 * 64;
}

static void run_units(const void *user, const struct ree_cpu_range *range) {
    const struct job *s = user;
    const struct ree_matmul_params *p = s->p;
    uint32_t lanes = s->tiles->lanes;
    for (uint64_t unit = range->begin; unit < range->end; unit++) {
        uint32_t at = (uint32_t)(unit / s->n_groups), group = (uint32_t)(unit % s->n_groups);
        const void *panel[3] = {0};
        char *own = range->scratch[SLOT_PANEL];
        for (uint32_t i = 0; i < s->n_b; i++) {
            size_t size = ree_panel_size(lanes, p, i + 1);
            if (s->packed[i]) {
                panel[i] = (const char *)s->packed[i] + at * size;
                continue;
            }
            ree_panel_pack(lanes, p, i + 1, at, s->b[i], own);
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
    const struct ree_int8_tiles *tiles = ree_int8_tiles_for(ctx);
    struct job s = {
        .p = p,
        .tiles = tiles,
        .output = output,
        .run = min_u32(p->a_block, p->b_block),
        .a_blocks = ceil_div(p->k, p->a_block),
        .a_numbers = operands[0],
        .a_scales = operands[ree_matmul_n_operands(p) - 1],
        .n_b = p->has_zero_points ? 3 : 2,
        .n_groups = 1,
        .cols = REE_PANEL_VECS * tiles->lanes,
    };
    s.n_runs = ceil_div(p->k, s.run);
    s.n_words = (size_t)s.n_runs * s.run / tiles->terms;
    size_t panel_size = 0;
    bool packed = true;
    for (uint32_t i = 0; i < s.n_b; i++) {
        s.b[i] = operands[i + 1];
        s.packed[i] = ctx->packed[i + 1];
        packed = packed && s.packed[i];
        panel_size += aligned(ree_panel_size(tiles->lanes, p, i + 1));
    }
    if (packed) s.n_groups = ceil_div(p->m, GROUP_ROWS);
    size_t rows_size = p->m * s.n_words * sizeof(uint32_t);
    s.a = ree_cpu_scratch_get(ctx, 0, SLOT_ROWS, rows_size);
    if (!s.a) return ree_cpu_no_memory(err, rows_size);
    size_t sums_size = (size_t)p->m * s.n_runs * sizeof(int32_t);
    s.a_sums = ree_cpu_scratch_get(ctx, 0, SLOT_SUMS, sums_size);
    if (!s.a_sums) return ree_cpu_no_memory(err, sums_size);

    const struct ree_cpu_loop rows = {
        .n = p->m,
        .grain = 1,
        .n_threads = ree_cpu_threads_for(ctx, (uint64_t)p->m * p->k),
        .body = pack_rows,
        .job = &s,
    };
    ree_cpu_run_loop(ctx, &rows);
    // About the multiply-adds of a thread in a nanosecond with many rows, and the weights it reads
    // with few.
    uint64_t weights = (uint64_t)p->n * p->k;
    uint32_t n_threads = ree_cpu_threads_for(ctx, weights * (8 + p->m) / 160);
    if (!packed)
        REE_TRY(ree_cpu_scratch_reserve(ctx, n_threads, SLOT_PANEL, panel_size, err));
    const struct ree_cpu_loop products = {
        .n = (uint64_t)ceil_div(p->n, s.cols) * s.n_groups,
        .n_threads = n_threads,
        .body = run_units,
        .job = &s,
    };
    ree_cpu_run_loop(ctx, &products);
    return REE_OK;
}
