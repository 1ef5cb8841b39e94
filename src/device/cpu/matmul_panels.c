// Few rows times constant narrow weights (float16, bfloat16, bytes, blockwise weights), prepacked
// as panels. (For many rows, tiles read panels of blockwise weights too: operand.c.) The columns
// that a kernel processes together are stored together, in the order in which they are multiplied,
// so the weights are read once, in one direction.
//
// out(i, j) = sum over l of a(i, l) * b(l, j), NUMERICS.md section 3: chunks of 256 along l.
//
// Threads process panels. If there are few panels, threads process parts of them, and a second pass
// adds the chunks in order.
//
// Packed layout, with cols = REE_PANEL_VECS * lanes and zeros beyond column n:
//   plain weights      for each panel (k, cols)
//   blockwise weights  for each panel (words of k, cols), terms in a word as in tiles.h; with
//                      blockwise activations (words of whole blocks, cols), words as in memory
//   scales, zeros      for each panel (blocks of k, cols)
#include "device/cpu/matmul.h"

#include <omp.h>

#define MAX_COLS (REE_PANEL_VECS * 16)

static uint32_t min_u32(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}
static uint32_t ceil_div(uint32_t a, uint32_t b) {
    return a / b + (a % b != 0);
}

static uint32_t panel_cols(const struct ree_tiles *tiles) {
    return REE_PANEL_VECS * tiles->lanes;
}

bool ree_panels_keep(const struct ree_tiles *tiles, const struct ree_matmul_plan *plan) {
    if (plan->swapped || plan->integer) return false;
    if (!plan->blocks && plan->m > REE_STREAM_MAX_ROWS) return false;
    if (!plan->blocks && plan->b_dtype == REE_F32) return false;
    // Weights whose columns are contiguous are streamed unpacked, as fast as memory delivers them.
    // This avoids a second copy of a language model's weights.
    bool narrow = plan->b_dtype == REE_BF16 || plan->b_dtype == REE_F16;
    if (!plan->blocks && narrow && plan->b_stride_k == 1 && tiles->lanes > 1) return false;
    // A mostly empty panel costs more than it saves.
    if (plan->n <= panel_cols(tiles) / 2) return false;
    for (uint32_t i = 0; i < plan->batch_rank; i++)
        if (plan->batch_dims[i] != 1 && plan->b_batch_strides[i] != 0) return false;
    return true;
}

bool ree_panels_suit(const struct ree_tiles *tiles, const struct ree_matmul_plan *plan) {
    return plan->m <= REE_STREAM_MAX_ROWS && ree_panels_keep(tiles, plan);
}

// Packing

// Returns the words that a panel stores of each column. With blockwise activations a column
// consists of whole blocks, because products always compute whole runs (tiles_int8.h).
static uint32_t n_words(const struct ree_matmul_params *p) {
    uint32_t k = p->a_block ? ceil_div(p->k, p->b_block) * p->b_block : p->k;
    return ceil_div(k, 32 / p->b_bits);
}

// Returns the bytes of one column of operand `operand`: 1 B, 2 scales, 3 zero points.
static size_t column_size(const struct ree_matmul_params *p, uint32_t operand) {
    if (!p->b_block) return p->k * ree_dtype_size((enum ree_dtype)p->b_dtype);
    if (operand == 1) return n_words(p) * sizeof(uint32_t);
    return ceil_div(p->k, p->b_block) * (operand == 2 ? sizeof(float) : 1);
}

size_t ree_panel_size(const struct ree_tiles *tiles, const struct ree_matmul_params *p,
                      uint32_t operand) {
    return panel_cols(tiles) * column_size(p, operand);
}

size_t ree_panels_size(const struct ree_tiles *tiles, const struct ree_matmul_params *p,
                       uint32_t operand) {
    return ceil_div(p->n, panel_cols(tiles)) * ree_panel_size(tiles, p, operand);
}

// Moves the even terms of a word to its low half and the odd terms to its high half.
static uint32_t part_word(uint32_t word, uint32_t bits) {
    if (bits == 8) return (word & 0xFF0000FFu) | (word & 0xFF00u) << 8 | (word >> 8 & 0xFF00u);
    uint32_t even = word & 0x0F0F0F0Fu, odd = word >> 4 & 0x0F0F0F0Fu;
    even = (even | even >> 4) & 0x00FF00FFu;
    odd = (odd | odd >> 4) & 0x00FF00FFu;
    even = (even | even >> 8) & 0xFFFFu;
    odd = (odd | odd >> 8) & 0xFFFFu;
    return even | odd << 16;
}

#define PACK_ROWS 64 // rows at a time: this part of the source stays in the first-level cache

// dst(l, c) = src[c * stride_c + l * stride_l] for l < n_rows, c < n_cols; zeros up to cols.
#define DEFINE_PACK(name, type)                                                                    \
    static void pack_##name(const type *src, int64_t stride_c, int64_t stride_l, uint32_t n_cols,  \
                            uint32_t n_rows, type *dst, uint32_t cols) {                           \
        for (uint32_t l0 = 0; l0 < n_rows; l0 += PACK_ROWS) {                                      \
            uint32_t l1 = min_u32(n_rows, l0 + PACK_ROWS);                                         \
            for (uint32_t c = 0; c < cols; c++)                                                    \
                for (uint32_t l = l0; l < l1; l++) {                                               \
                    type x = 0;                                                                    \
                    if (c < n_cols) x = src[c * stride_c + l * stride_l];                          \
                    dst[(size_t)l * cols + c] = x;                                                 \
                }                                                                                  \
        }                                                                                          \
    }
DEFINE_PACK(u8, uint8_t)
DEFINE_PACK(u16, uint16_t)
DEFINE_PACK(u32, ree_any_u32)

// As pack_u32 with stride_l 1. If `part` is set, also separates the even and odd terms of each
// word.
static void pack_words(const struct ree_tiles *tiles, const ree_any_u32 *src, size_t stride_c,
                       uint32_t n_cols, uint32_t n_rows, ree_any_u32 *dst, bool part,
                       uint32_t bits) {
    uint32_t cols = panel_cols(tiles);
    for (uint32_t l = 0; l < n_rows; l += PACK_ROWS) {
        uint32_t n = min_u32(n_rows - l, PACK_ROWS);
        ree_any_u32 *to = dst + (size_t)l * cols;
        if (n_cols < cols)
            pack_u32(src + l, (int64_t)stride_c, 1, n_cols, n, to, cols);
        else
            for (uint32_t c = 0; c < cols; c += tiles->lanes)
                tiles->transpose(src + c * stride_c + l, stride_c, n, to + c, cols);
        for (uint32_t i = 0; part && i < n * cols; i++)
            to[i] = part_word(to[i], bits);
    }
}

void ree_panel_pack(const struct ree_tiles *tiles, const struct ree_matmul_params *p,
                    uint32_t operand, uint32_t panel, const void *src, void *dst) {
    uint32_t n_blocks = p->b_block ? ceil_div(p->k, p->b_block) : 0;
    uint32_t cols = panel_cols(tiles), j = panel * cols, n = min_u32(p->n - j, cols);
    if (!p->b_block) {
        int64_t at = p->b_offset + (int64_t)j * p->b_stride_n;
        if (ree_dtype_size((enum ree_dtype)p->b_dtype) == 1)
            pack_u8((const uint8_t *)src + at, p->b_stride_n, p->b_stride_k, n, p->k, dst, cols);
        else
            pack_u16((const uint16_t *)src + at, p->b_stride_n, p->b_stride_k, n, p->k, dst, cols);
    } else if (operand == 1) {
        size_t pitch = (size_t)n_blocks * p->b_block * p->b_bits / 32;
        pack_words(tiles, (const ree_any_u32 *)src + j * pitch, pitch, n, n_words(p), dst,
                   !p->a_block, p->b_bits);
    } else if (operand == 2) {
        pack_words(tiles, (const ree_any_u32 *)src + (size_t)j * n_blocks, n_blocks, n, n_blocks,
                   dst, false, 0);
    } else {
        pack_u8((const uint8_t *)src + (size_t)j * n_blocks, n_blocks, 1, n, n_blocks, dst, cols);
    }
}

struct packing {
    const struct ree_matmul_params *p;
    const struct ree_tiles *tiles;
    uint32_t operand;
    const void *src;
    char *out;
};

static void pack_panels(const void *user, const struct ree_cpu_range *range) {
    const struct packing *job = user;
    for (uint64_t i = range->begin; i < range->end; i++)
        ree_panel_pack(job->tiles, job->p, job->operand, (uint32_t)i, job->src,
                       job->out + i * ree_panel_size(job->tiles, job->p, job->operand));
}

void ree_panels_pack(const struct ree_cpu_context *ctx, const struct ree_tiles *tiles,
                     const struct ree_matmul_params *p, uint32_t operand, const void *src,
                     void *out) {
    const struct packing job = {p, tiles, operand, src, out};
    const struct ree_cpu_loop loop = {
        .n = ceil_div(p->n, panel_cols(tiles)),
        .grain = 1,
        .n_threads = ree_cpu_threads_for(ctx, ree_panels_size(tiles, p, operand)),
        .body = pack_panels,
        .job = &job,
    };
    ree_cpu_run_loop(ctx, &loop);
}

// Multiplying

// Computes chunks [c0, c1) of one panel. If pitch is 0, their total goes to c; otherwise the result
// of chunk i goes to c + i * pitch.
static void run_chunks(const struct ree_panels *s, uint32_t batch, uint32_t panel, uint32_t c0,
                       uint32_t c1, float *c, size_t pitch) {
    const struct ree_matmul_plan *plan = s->plan;
    uint32_t cols = panel_cols(s->tiles);
    const float *a = ree_matmul_rows_at(plan, &s->a, batch);
    size_t b_size = ree_dtype_size(plan->b_dtype);
    enum ree_tile_type type = ree_tile_type_of(plan->b_dtype);
    for (uint32_t i = c0; i < c1; i++) {
        uint32_t k0 = i * REE_CHUNK, kc = min_u32(plan->k - k0, REE_CHUNK);
        float *to = c + i * pitch;
        uint32_t flags = i == c0 || pitch ? REE_TILE_FIRST : 0;
        if (k0 + kc == plan->k && !pitch) flags |= REE_TILE_LAST;
        if (!plan->blocks) {
            const char *b = (const char *)s->b + ((size_t)panel * plan->k + k0) * cols * b_size;
            s->tiles->panel[type](plan->m, kc, a + k0, s->a.stride_m, b, to, cols, cols, flags);
            continue;
        }
        const struct ree_packed_blocks packed = {s->b,    s->scales, s->zeros,
                                                 s->bits, s->block,  plan->k};
        const struct ree_tile_panel b = ree_packed_panel(&packed, cols, panel, k0);
        s->tiles->panel_blocks(plan->m, kc, a + k0, s->a.stride_m, &b, to, cols, cols, flags);
    }
}

// Writes the totals of one panel's columns, for all rows, to the output.
static void write_panel(const struct ree_panels *s, uint32_t batch, uint32_t panel,
                        const float *totals) {
    const struct ree_matmul_plan *plan = s->plan;
    uint32_t cols = panel_cols(s->tiles), j = panel * cols;
    uint32_t first = batch * plan->m * plan->n + j;
    for (uint32_t i = 0; i < plan->m; i++)
        ree_matmul_write(s->output, totals + i * cols, first + i * plan->n,
                         min_u32(plan->n - j, cols));
}

static void run_panels(const void *user, const struct ree_cpu_range *range) {
    const struct ree_panels *s = user;
    const struct ree_matmul_plan *plan = s->plan;
    uint32_t n_chunks = ceil_div(plan->k, REE_CHUNK);
    for (uint64_t unit = range->begin; unit < range->end; unit++) {
        uint32_t panel = (uint32_t)(unit / plan->n_batch);
        uint32_t batch = (uint32_t)(unit % plan->n_batch);
        _Alignas(64) float totals[REE_STREAM_MAX_ROWS * MAX_COLS];
        run_chunks(s, batch, panel, 0, n_chunks, totals, 0);
        write_panel(s, batch, panel, totals);
    }
}

// parts[e] = ((p0 + p1) + p2) + ... + 0 for e < n_floats, where pi is parts[i * n_floats + e], the
// result of chunk i.
static void add_chunks(uint32_t n_chunks, uint32_t n_floats, float *parts) {
    for (uint32_t i = 1; i < n_chunks; i++)
        for (uint32_t e = 0; e < n_floats; e++)
            parts[e] = parts[e] + parts[(size_t)i * n_floats + e];
    for (uint32_t e = 0; e < n_floats; e++)
        parts[e] = ree_cpu_canonical_nan(parts[e] + 0.0f);
}

enum scratch_slot { SLOT_PARTS = 1 }; // slot 0 holds the rows of a

enum ree_status ree_panels_run(const struct ree_cpu_context *ctx, const struct ree_panels *s,
                               struct ree_error *err) {
    const struct ree_matmul_plan *plan = s->plan;
    uint32_t cols = panel_cols(s->tiles), n_chunks = ceil_div(plan->k, REE_CHUNK);
    uint32_t n_floats = plan->m * cols;
    uint64_t n_panels = (uint64_t)ceil_div(plan->n, cols) * plan->n_batch;
    // Estimates nanoseconds: a thread does about 16 multiplications per nanosecond, if memory is
    // fast enough.
    uint64_t elements = (uint64_t)plan->n_batch * plan->n * plan->k;
    uint32_t n_threads = ree_cpu_threads_for(ctx, elements * (1 + plan->m) / 16);

    // Several parts per thread, so that an interrupted thread delays the others only a little.
    uint32_t n_parts = 1;
    if (n_threads > 1 && n_panels < 4 * n_threads)
        n_parts = min_u32(n_chunks, ceil_div(4 * n_threads, (uint32_t)n_panels));
    if (n_parts == 1) {
        const struct ree_cpu_loop loop = {
            .n = n_panels,
            .n_threads = n_threads,
            .body = run_panels,
            .job = s,
        };
        ree_cpu_run_loop(ctx, &loop);
        return REE_OK;
    }
    size_t panel_floats = (size_t)n_chunks * n_floats;
    float *parts = ree_cpu_scratch_get(ctx, 0, SLOT_PARTS, n_panels * panel_floats * sizeof(float));
    if (!parts) return ree_cpu_no_memory(err, n_panels * panel_floats * sizeof(float));
#pragma omp parallel num_threads(n_threads)
    {
        REE_FLOAT_ENV_WORKER();
#pragma omp for schedule(dynamic)
        for (uint64_t unit = 0; unit < n_panels * n_parts; unit++) {
            uint64_t i = unit / n_parts, part = unit % n_parts;
            run_chunks(s, (uint32_t)(i % plan->n_batch), (uint32_t)(i / plan->n_batch),
                       (uint32_t)(n_chunks * part / n_parts),
                       (uint32_t)(n_chunks * (part + 1) / n_parts), parts + i * panel_floats,
                       n_floats);
        }
#pragma omp for
        for (uint64_t i = 0; i < n_panels; i++) {
            add_chunks(n_chunks, n_floats, parts + i * panel_floats);
            write_panel(s, (uint32_t)(i % plan->n_batch), (uint32_t)(i / plan->n_batch),
                        parts + i * panel_floats);
        }
    }
    return REE_OK;
}
