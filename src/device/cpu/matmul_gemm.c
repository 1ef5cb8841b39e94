// Matrix products by tiles over packed panels.
//
// out(i, j) = sum over l of a(i, l) * b(l, j), NUMERICS.md section 3: chunks of 256 along l.
//
// The loops, from outermost to innermost:
// - blocks of columns and of K, whose panels of b are packed once for all threads
// - blocks of rows, whose panels of a are packed likewise
// - tasks, each a rectangle of the output, distributed over the threads
// - in a task, chunks of K in ascending order
// - panels of a (12 KiB, stay in the first-level cache) times panels of b (a task's share of a
//   chunk stays in the second-level cache)
//
// If one task covers all rows, no two tasks read the same panel of b. Then each task packs its own
// panels, one chunk at a time, and they never leave the second-level cache.
#include "device/cpu/matmul.h"

#include <omp.h>
#include <stdatomic.h>

// Columns of a task: REE_CHUNK * TASK_COLS floats of b are half of a 1 MiB second-level cache.
#define TASK_COLS 512
#define TASK_ROWS 192 // minimum rows of a block; maximum rows of a task with its own totals
// Maximum memory for packed panels, in floats.
#define MAX_PACKED_A ((size_t)4 << 20)
#define MAX_PACKED_B ((size_t)8 << 20)
#define BLOCK_K 1024  // words of K packed at a time
#define OWN_ROWS 1024 // with at most this many rows, tasks pack their own panels of b

static uint32_t min_u32(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}
static uint32_t ceil_div(uint32_t a, uint32_t b) {
    return a / b + (a % b != 0);
}

// Return the floats of a packed part of b with n columns and k words: of its panels, and of the
// panels and the column sums or least exponents that follow them.
static size_t panels_floats(const struct ree_gemm *g, uint32_t n, uint32_t k) {
    return (size_t)ceil_div(n, g->tiles->cols) * g->tiles->cols * k;
}
static size_t packed_floats(const struct ree_gemm *g, uint32_t n, uint32_t k) {
    size_t n_panels = ceil_div(n, g->tiles->cols), floats = panels_floats(g, n, k);
    if (g->a_shift) floats += n_panels * g->tiles->cols;
    if (g->pairs) floats += n_panels * ceil_div(k, g->tiles->chunk);
    return floats;
}

size_t ree_gemm_packed_b_floats(const struct ree_gemm *g) {
    return packed_floats(g, g->n, g->k);
}

// Packs words [word, word + n_words) of vectors [vector, vector + n_vectors). With pairs, sets
// *least to the least exponent.
static void pack_panel(const struct ree_gemm *g, const struct ree_cpu_operand *f, uint32_t vector,
                       uint32_t n_vectors, uint32_t word, uint32_t n_words, float *out,
                       uint32_t pitch, ree_any_u32 *least) {
    if (!g->pairs) {
        ree_cpu_operand_pack(g->tiles, f, g->n_terms, vector, n_vectors, word, n_words, out, pitch);
        return;
    }
    uint32_t l = 2 * word;
    const uint16_t *from =
        (const uint16_t *)(const void *)f->data + vector * f->stride_vector + l * f->stride_k;
    *least =
        g->pairs->pack(from, f->stride_vector, f->stride_k, f->ahead ? f->ahead : REE_CHUNK,
                       n_vectors, min_u32(g->n_terms - l, 2 * n_words), (ree_any_u32 *)out, pitch);
}

// Packs one panel, of the n columns that start at j0, and one chunk, of kc words that start at k0.
// If a_shift is not 0, also stores the sums of the panel's columns in `sums`; after the first
// chunk, adds them.
static void pack_b_panel(const struct ree_gemm *g, uint32_t j0, uint32_t n, uint32_t k0,
                         uint32_t kc, uint32_t panel, float *out, float *sums, ree_any_u32 *least) {
    const struct ree_tiles *tiles = g->tiles;
    uint32_t j = panel * tiles->cols, cols = tiles->cols;
    pack_panel(g, &g->b, j0 + j, min_u32(n - j, cols), k0, kc, out, cols, least);
    if (!g->a_shift) return;
    // The sums are a row of ones times the columns.
    float ones[REE_CHUNK];
    for (uint32_t l = 0; l < kc; l++)
        memcpy(&ones[l], &g->b.integer->ones, sizeof *ones);
    tiles->tile[0][tiles->vecs - 1](kc, ones, out, sums + j, cols, cols,
                                    k0 == 0 ? REE_TILE_FIRST : 0);
}

void ree_gemm_pack_b(const struct ree_gemm *g, float *out) {
    uint32_t cols = g->tiles->cols, n_panels = ceil_div(g->n, cols);
    float *sums = out + panels_floats(g, g->n, g->k);
    ree_any_u32 *least = (ree_any_u32 *)sums;
    for (uint32_t k0 = 0; k0 < g->k; k0 += g->tiles->chunk) {
        uint32_t kc = min_u32(g->k - k0, g->tiles->chunk);
        for (uint32_t panel = 0; panel < n_panels; panel++) {
            pack_b_panel(g, 0, g->n, k0, kc, panel, out, sums, least++);
            out += (size_t)kc * cols;
        }
    }
}

void ree_matmul_write(const struct ree_matmul_output *output, const void *values, uint32_t first,
                      uint32_t count) {
    if (output->epilogue)
        ree_cpu_expr_row(output->epilogue, values, first, count, output->out);
    else if (values != (char *)output->out + (size_t)first * 4)
        memcpy((char *)output->out + (size_t)first * 4, values, (size_t)count * 4);
}

// How one product is divided into blocks and tasks.
struct blocking {
    uint32_t panel_rows;    // rows of every panel of a except the last
    uint32_t bm, bn, bk;    // sizes of one packed block
    uint32_t tm, tn;        // sizes of a task
    bool own_totals;        // each task has its own totals, because the output cannot hold floats
    bool own_b;             // each task packs its own panels of b
    size_t packed_a_floats; // sizes of the shared scratch and of each thread's
    size_t packed_b_floats;
    size_t totals_floats;
};

// Returns the columns of a task that covers all rows, chosen so that the busiest thread has as few
// columns as possible.
static uint32_t choose_columns(uint32_t n, uint32_t cols, uint32_t n_threads) {
    uint32_t n_panels = ceil_div(n, cols), best = 1, least = UINT32_MAX;
    for (uint32_t panels = min_u32(TASK_COLS / cols, n_panels); panels > 0; panels--) {
        uint32_t n_tasks = ceil_div(n_panels, panels);
        uint32_t most = ceil_div(n_tasks, n_threads) * panels;
        if (most >= least || (n_threads > 1 && n_tasks < 3 * n_threads && panels > 1)) continue;
        best = panels;
        least = most;
    }
    return best * cols;
}

// Returns the number of least exponents of packed a. They follow its panels: for each chunk of the
// block, for each panel.
static size_t exponents(const struct ree_gemm *g, const struct blocking *s) {
    if (!g->pairs) return 0;
    return (size_t)ceil_div(s->bk, g->tiles->chunk) * ceil_div(s->bm, s->panel_rows);
}

static struct blocking choose_blocking(const struct ree_gemm *g, uint32_t n_threads) {
    const struct ree_tiles *tiles = g->tiles;
    struct blocking s = {0};
    // Panels of nearly equal height: 64 rows are 5 * 11 + 9 instead of 5 * 12 + 4.
    s.panel_rows = ceil_div(g->m, ceil_div(g->m, tiles->rows));
    s.own_totals = g->output->elem_size != sizeof(float);

    s.own_b = !s.own_totals && !g->packed_b && !g->b.integer && g->m <= OWN_ROWS &&
              (size_t)g->m * g->k <= MAX_PACKED_A && g->n >= 2 * n_threads * tiles->cols;
    if (s.own_b) {
        s.bm = s.tm = g->m;
        s.bn = g->n;
        s.bk = g->k;
        s.tn = choose_columns(g->n, tiles->cols, n_threads);
        s.packed_a_floats = (size_t)s.bm * s.bk + exponents(g, &s);
        s.packed_b_floats = (size_t)s.tn * min_u32(g->k, tiles->chunk);
        return s;
    }

    // If a task has its own totals, one block must contain all of K.
    s.bk = s.own_totals || g->packed_b ? g->k : min_u32(g->k, BLOCK_K);
    size_t bm = MAX_PACKED_A / s.bk / s.panel_rows * s.panel_rows;
    if (bm < TASK_ROWS) bm = TASK_ROWS / s.panel_rows * s.panel_rows;
    s.bm = bm < g->m ? (uint32_t)bm : g->m;
    size_t bn = g->packed_b ? g->n : MAX_PACKED_B / s.bk / TASK_COLS * TASK_COLS;
    if (bn < TASK_COLS) bn = TASK_COLS;
    s.bn = bn < g->n ? (uint32_t)bn : g->n;

    // Several tasks per thread, so that an interrupted thread delays the others only a little.
    s.tn = min_u32(s.bn, TASK_COLS / tiles->cols * tiles->cols);
    s.tm = s.bm;
    if (n_threads > 1 || s.own_totals) {
        uint32_t n_cols = ceil_div(s.bn, s.tn);
        uint32_t wanted = ceil_div(4 * n_threads, n_cols);
        uint32_t rows = ceil_div(s.bm, wanted);
        if (rows > TASK_ROWS && s.own_totals) rows = TASK_ROWS;
        if (rows < 4 * s.panel_rows) rows = 4 * s.panel_rows;
        s.tm = min_u32(s.bm, ceil_div(rows, s.panel_rows) * s.panel_rows);
        while (s.tn >= 4 * tiles->cols &&
               ceil_div(s.bm, s.tm) * ceil_div(s.bn, s.tn) < 2 * n_threads)
            s.tn = ceil_div(s.tn / 2, tiles->cols) * tiles->cols;
    }
    s.packed_a_floats = (size_t)s.bm * s.bk + exponents(g, &s);
    s.packed_b_floats = g->packed_b ? 0 : packed_floats(g, s.bn, s.bk);
    s.totals_floats = s.own_totals ? (size_t)s.tm * s.tn : 0;
    return s;
}

// Data shared by the threads of a team.
struct team {
    const struct ree_gemm *gemm;
    struct blocking blocking;
    float *packed_a, *packed_b;
    uint32_t n_threads;
    _Atomic uint64_t next; // next unit number to hand out, see take
};

// Takes the next unit of a phase; returns false if none is left. A phase's units are numbered from
// `base`. Each thread takes numbers until it gets one past the phase's end, so a phase of n units
// uses exactly n + n_threads numbers.
static bool take(struct team *team, uint64_t base, uint32_t n_units, uint32_t *out) {
    if (team->n_threads == 1) {
        // A single thread needs no atomic addition.
        uint64_t next = atomic_load_explicit(&team->next, memory_order_relaxed);
        atomic_store_explicit(&team->next, next + 1, memory_order_relaxed);
        *out = (uint32_t)(next - base);
        return next - base < n_units;
    }
    uint64_t unit = atomic_fetch_add_explicit(&team->next, 1, memory_order_relaxed) - base;
    *out = (uint32_t)unit;
    return unit < n_units;
}

static void wait_for_team(const struct team *team) {
    if (team->n_threads > 1) {
#pragma omp barrier
    }
}

// Returns the address of the least exponent of a panel of a, in the chunk that begins with word l
// of the block. Only for pairs.
static ree_any_u32 *least_a(const struct team *team, uint32_t bm, uint32_t l, uint32_t panel) {
    const struct blocking *s = &team->blocking;
    size_t chunk = l / team->gemm->tiles->chunk;
    return (ree_any_u32 *)(team->packed_a + (size_t)s->bm * s->bk) +
           chunk * ceil_div(bm, s->panel_rows) + panel;
}

// Layout of packed a: for each chunk of the block, for each panel: (chunk's length, rows of the
// panel).
static void pack_a_panel(const struct team *team, uint32_t i0, uint32_t bm, uint32_t k0,
                         uint32_t bk, uint32_t panel) {
    const struct ree_gemm *g = team->gemm;
    uint32_t height = team->blocking.panel_rows;
    uint32_t i = panel * height, rows = min_u32(bm - i, height);
    for (uint32_t l = 0; l < bk; l += g->tiles->chunk) {
        uint32_t kc = min_u32(bk - l, g->tiles->chunk);
        pack_panel(g, &g->a, i0 + i, rows, k0 + l, kc,
                   team->packed_a + (size_t)l * bm + (size_t)i * kc, rows,
                   g->pairs ? least_a(team, bm, l, panel) : NULL);
    }
}

// Returns the address of the sums of b's columns, or of the least exponents: both follow the packed
// panels.
static float *column_sums(const struct team *team, uint32_t bn) {
    const struct ree_gemm *g = team->gemm;
    uint32_t width = ceil_div(bn, g->tiles->cols) * g->tiles->cols;
    if (g->packed_b) return (float *)(uintptr_t)g->packed_b + (size_t)width * g->k;
    return team->packed_b + (size_t)width * team->blocking.bk;
}

// Returns the address of the least exponent of a panel of b, in the chunk that begins with word l
// of the block. Only for pairs.
static ree_any_u32 *least_b(const struct team *team, uint32_t bn, uint32_t l, uint32_t panel) {
    const struct ree_tiles *tiles = team->gemm->tiles;
    size_t chunk = l / tiles->chunk;
    return (ree_any_u32 *)column_sums(team, bn) + chunk * ceil_div(bn, tiles->cols) + panel;
}

static void pack_b_panels(const struct team *team, uint32_t j0, uint32_t bn, uint32_t k0,
                          uint32_t bk, uint32_t panel) {
    const struct ree_gemm *g = team->gemm;
    uint32_t cols = g->tiles->cols, n_panels = ceil_div(bn, cols);
    for (uint32_t l = 0; l < bk; l += g->tiles->chunk) {
        uint32_t kc = min_u32(bk - l, g->tiles->chunk);
        float *out = team->packed_b + (size_t)l * n_panels * cols + (size_t)panel * kc * cols;
        pack_b_panel(g, j0, bn, k0 + l, kc, panel, out, column_sums(team, bn),
                     g->pairs ? least_b(team, bn, l, panel) : NULL);
    }
}

// A rectangle of one block: rows [i, i + tm) of the block at i0, columns [j, j + tn) of the block
// at j0.
struct task {
    uint32_t i0, bm, i, tm;
    uint32_t j0, bn, j, tn;
    uint32_t k0, bk;
};

// A thread's own memory; NULL if the blocking does not use it.
struct own {
    float *totals, *b;
    float *widened; // with pairs: see struct widened
};

static void pack_own_b(const struct ree_gemm *g, const struct task *t, uint32_t l, uint32_t kc,
                       float *out, ree_any_u32 *least) {
    uint32_t cols = g->tiles->cols;
    for (uint32_t j = 0; j < t->tn; j += cols)
        pack_b_panel(g, t->j0, t->bn, t->k0 + l, kc, (t->j + j) / cols, out + (size_t)j * kc, NULL,
                     least++);
}

// Two panels to multiply, with kc words of one chunk.
struct panels {
    uint32_t rows, kc;
    const float *a, *b;
    uint32_t least_a, least_b; // with pairs
};

// The panels of a task's chunk as floats, each widened when it is first needed: the panel of a for
// the current rows, and all panels of b.
struct widened {
    float *a; // (words of a chunk * 2, rows)
    float *b; // (panels, words of a chunk * 2, columns)
    bool has_a, has_b[TASK_COLS];
};

// Returns the floats that struct widened requires for a task of n_cols columns. The last panel is
// widened whole.
static size_t widened_floats(const struct ree_gemm *g, uint32_t n_cols) {
    uint32_t cols = g->tiles->cols, widest = ceil_div(n_cols, cols) * cols;
    return g->pairs ? (size_t)REE_CHUNK * (REE_TILE_MAX_ROWS + widest) : 0;
}

// As multiply, with the tiles for floats: for panels for which the instruction for pairs could meet
// a subnormal number, or is slower. `panel` is the number of the panel of b.
static void multiply_widened(const struct ree_gemm *g, const struct panels *p, struct widened *wide,
                             uint32_t panel, float *c, size_t ldc, uint32_t n_cols,
                             uint32_t flags) {
    const struct ree_tiles *tiles = g->pairs->floats;
    float *b = wide->b + (size_t)panel * REE_CHUNK * tiles->cols;
    if (!wide->has_a) g->pairs->widen((const ree_any_u32 *)p->a, p->kc, p->rows, wide->a);
    if (!wide->has_b[panel]) g->pairs->widen((const ree_any_u32 *)p->b, p->kc, tiles->cols, b);
    wide->has_a = wide->has_b[panel] = true;
    uint32_t vecs = ceil_div(n_cols, tiles->lanes);
    tiles->tile[p->rows - 1][vecs - 1](2 * p->kc, wide->a, b, c, ldc, n_cols, flags);
}

// Stores the product of two panels in c (rows, n_cols) or, without REE_TILE_FIRST, adds it.
static void multiply(const struct ree_gemm *g, const struct panels *p, struct widened *wide,
                     uint32_t panel, float *c, size_t ldc, uint32_t n_cols, uint32_t flags) {
    const struct ree_tiles *tiles = g->tiles;
    if (g->pairs && (g->as_floats || !ree_pairs_exact(p->least_a, p->least_b))) {
        multiply_widened(g, p, wide, panel, c, ldc, n_cols, flags);
        return;
    }
    uint32_t vecs = ceil_div(n_cols, tiles->lanes);
    tiles->tile[p->rows - 1][vecs - 1](p->kc, p->a, p->b, c, ldc, n_cols, flags);
}

// c(i, j) += a_shift * the sum of column j.
static void add_column_sums(const struct team *team, const struct task *t, float *c, size_t ldc) {
    const ree_any_u32 *sums = (const ree_any_u32 *)(column_sums(team, t->bn) + t->j);
    uint32_t shift = (uint32_t)team->gemm->a_shift;
    for (uint32_t i = 0; i < t->tm; i++) {
        ree_any_u32 *row = (ree_any_u32 *)(c + i * ldc);
        for (uint32_t j = 0; j < t->tn; j++)
            row[j] += shift * sums[j];
    }
}

// Writes rows [i, i + n) of the task, whose sums are complete, to the output.
static void write_rows(const struct ree_gemm *g, const struct task *t, uint32_t first,
                       const float *c, size_t ldc, uint32_t i, uint32_t n) {
    if (t->tn == g->n && ldc == g->n) {
        ree_matmul_write(g->output, c + i * ldc, first + i * g->n, n * g->n);
        return;
    }
    for (uint32_t r = i; r < i + n; r++)
        ree_matmul_write(g->output, c + r * ldc, first + r * g->n, t->tn);
}

// Prefetches what the epilogue reads for the tile at (i, j) of the task, so that the latency of
// memory passes behind the tiles of a row of panels.
static void prefetch_epilogue(const struct ree_gemm *g, const struct task *t, uint32_t first,
                              uint32_t i, uint32_t rows, uint32_t j) {
    uint32_t n_cols = min_u32(t->tn - j, g->tiles->cols);
    for (uint32_t r = i; r < i + rows; r++)
        ree_cpu_expr_prefetch(g->output->epilogue, first + r * g->n + j, n_cols);
}

static void run_task(const struct team *team, const struct task *t, const struct own *own) {
    const struct ree_gemm *g = team->gemm;
    const struct ree_tiles *tiles = g->tiles;
    uint32_t height = team->blocking.panel_rows, cols = tiles->cols;
    uint32_t first = g->first + (t->i0 + t->i) * g->n + t->j0 + t->j;
    float *c = own->totals ? own->totals : (float *)g->output->out + first;
    size_t ldc = own->totals ? t->tn : g->n;

    // The rows of a panel are written while they are in the first-level cache, unless column sums
    // must still be added to all rows.
    bool ends = t->k0 + t->bk == g->k, writes = ends && (g->output->epilogue || own->totals);

    // If b was packed in advance, a block has all columns and all of K, so packed b is that of the
    // block.
    const float *packed_b = g->packed_b ? g->packed_b : team->packed_b;
    uint32_t n_panels = ceil_div(t->bn, cols);
    ree_any_u32 own_least[TASK_COLS];
    struct widened wide;
    if (g->pairs) {
        wide.a = own->widened;
        wide.b = own->widened + REE_CHUNK * REE_TILE_MAX_ROWS;
    }
    for (uint32_t l = 0; l < t->bk; l += tiles->chunk) {
        uint32_t kc = min_u32(t->bk - l, tiles->chunk);
        uint32_t flags =
            (t->k0 + l == 0 ? REE_TILE_FIRST : 0) | (t->k0 + l + kc == g->k ? REE_TILE_LAST : 0);
        const float *chunk_b = packed_b + (size_t)l * n_panels * cols + (size_t)t->j * kc;
        if (own->b) {
            pack_own_b(g, t, l, kc, own->b, own_least);
            chunk_b = own->b;
        }
        const ree_any_u32 *leasts = NULL;
        if (g->pairs) {
            leasts = own->b ? own_least : least_b(team, t->bn, l, t->j / cols);
            memset(wide.has_b, false, ceil_div(t->tn, cols) * sizeof *wide.has_b);
        }
        for (uint32_t i = 0; i < t->tm; i += height) {
            uint32_t rows = min_u32(t->tm - i, height);
            struct panels p = {.rows = rows, .kc = kc};
            p.a = team->packed_a + (size_t)l * t->bm + (size_t)(t->i + i) * kc;
            if (g->pairs) p.least_a = *least_a(team, t->bm, l, (t->i + i) / height);
            wide.has_a = false;
            bool finishes = writes && !g->a_shift && (flags & REE_TILE_LAST);
            for (uint32_t j = 0; j < t->tn; j += cols) {
                if (finishes && g->output->epilogue) prefetch_epilogue(g, t, first, i, rows, j);
                p.b = chunk_b + (size_t)j * kc;
                if (g->pairs) p.least_b = leasts[j / cols];
                multiply(g, &p, &wide, j / cols, c + i * ldc + j, ldc, min_u32(t->tn - j, cols),
                         flags);
            }
            if (finishes) write_rows(g, t, first, c, ldc, i, rows);
        }
    }
    if (!ends || !g->a_shift) return;
    add_column_sums(team, t, c, ldc);
    if (writes) write_rows(g, t, first, c, ldc, 0, t->tm);
}

static void run_tasks(struct team *team, uint64_t base, struct task block, const struct own *own) {
    uint32_t tm = team->blocking.tm, tn = team->blocking.tn;
    uint32_t n_rows = ceil_div(block.bm, tm), n_cols = ceil_div(block.bn, tn), unit;
    while (take(team, base, n_rows * n_cols, &unit)) {
        struct task t = block;
        t.i = unit % n_rows * tm;
        t.j = unit / n_rows * tn;
        t.tm = min_u32(block.bm - t.i, tm);
        t.tn = min_u32(block.bn - t.j, tn);
        run_task(team, &t, own);
    }
}

// Every thread of the team executes this function.
static void run_blocks(struct team *team, const struct own *own) {
    const struct ree_gemm *g = team->gemm;
    const struct blocking *s = &team->blocking;
    uint64_t base = 0;
    for (uint32_t j0 = 0; j0 < g->n; j0 += s->bn) {
        uint32_t bn = min_u32(g->n - j0, s->bn);
        for (uint32_t k0 = 0; k0 < g->k; k0 += s->bk) {
            uint32_t bk = min_u32(g->k - k0, s->bk);
            for (uint32_t i0 = 0; i0 < g->m; i0 += s->bm) {
                uint32_t bm = min_u32(g->m - i0, s->bm);
                uint32_t n_a = ceil_div(bm, s->panel_rows);
                bool shares_b = !g->packed_b && !own->b && i0 == 0;
                uint32_t n_b = shares_b ? ceil_div(bn, g->tiles->cols) : 0;
                uint32_t unit;
                while (take(team, base, n_a + n_b, &unit)) {
                    if (unit < n_a)
                        pack_a_panel(team, i0, bm, k0, bk, unit);
                    else
                        pack_b_panels(team, j0, bn, k0, bk, unit - n_a);
                }
                base += n_a + n_b + team->n_threads;
                wait_for_team(team);
                struct task block = {.i0 = i0, .bm = bm, .j0 = j0, .bn = bn, .k0 = k0, .bk = bk};
                run_tasks(team, base, block, own);
                base += (uint64_t)ceil_div(bm, s->tm) * ceil_div(bn, s->tn) + team->n_threads;
                wait_for_team(team);
            }
        }
    }
}

enum scratch_slot { SLOT_A, SLOT_B, SLOT_TOTALS, SLOT_WIDENED };

static struct own own_memory(const struct blocking *s, void *const *scratch) {
    return (struct own){.totals = s->own_totals ? scratch[SLOT_TOTALS] : NULL,
                        .b = s->own_b ? scratch[SLOT_B] : NULL,
                        .widened = scratch[SLOT_WIDENED]};
}

// Returns the gemm with a prefetch distance for b that matches the order in which the blocking
// packs it.
static struct ree_gemm in_order(const struct ree_gemm *gemm, const struct blocking *s) {
    struct ree_gemm g = *gemm;
    if (s->own_b) g.b.ahead = g.tiles->cols * g.b.stride_vector;
    return g;
}

enum ree_status ree_gemm_run(const struct ree_cpu_context *ctx, const struct ree_gemm *gemm,
                             uint32_t n_threads, struct ree_error *err) {
    struct team team = {.blocking = choose_blocking(gemm, n_threads)};
    const struct blocking *s = &team.blocking;
    struct ree_gemm ordered = in_order(gemm, s);
    team.gemm = &ordered;
    team.packed_a = ree_cpu_scratch_get(ctx, 0, SLOT_A, s->packed_a_floats * sizeof(float));
    team.packed_b = ree_cpu_scratch_get(ctx, 0, SLOT_B, s->packed_b_floats * sizeof(float));
    if (!team.packed_a || !team.packed_b)
        return ree_cpu_no_memory(err, (s->packed_a_floats + s->packed_b_floats) * sizeof(float));
    for (uint32_t i = 0; i < n_threads; i++)
        if (!ree_cpu_scratch_get(ctx, i, SLOT_TOTALS, s->totals_floats * sizeof(float)) ||
            (s->own_b && !ree_cpu_scratch_get(ctx, i, SLOT_B, s->packed_b_floats * sizeof(float))))
            return ree_cpu_no_memory(err, (s->totals_floats + s->packed_b_floats) * sizeof(float));
    REE_TRY(ree_cpu_scratch_reserve(ctx, n_threads, SLOT_WIDENED,
                                    widened_floats(gemm, s->tn) * sizeof(float), err));

    if (n_threads == 1) {
        team.n_threads = 1;
        struct own own = own_memory(s, ctx->scratch[0].data);
        run_blocks(&team, &own);
        return REE_OK;
    }
#pragma omp parallel num_threads(n_threads)
    {
        REE_FLOAT_ENV_WORKER();
#pragma omp single
        team.n_threads = (uint32_t)omp_get_num_threads();
        struct own own = own_memory(s, ctx->scratch[omp_get_thread_num()].data);
        run_blocks(&team, &own);
    }
    return REE_OK;
}

struct batch {
    void (*make)(const void *user, uint32_t i, struct ree_gemm *gemm);
    const void *user;
    struct blocking blocking;
};

static void run_products(const void *user, const struct ree_cpu_range *range) {
    const struct batch *batch = user;
    for (uint64_t i = range->begin; i < range->end; i++) {
        struct own own = own_memory(&batch->blocking, range->scratch);
        struct ree_gemm gemm;
        batch->make(batch->user, (uint32_t)i, &gemm);
        gemm = in_order(&gemm, &batch->blocking);
        struct team team = {
            .gemm = &gemm,
            .blocking = batch->blocking,
            .packed_a = range->scratch[SLOT_A],
            .packed_b = range->scratch[SLOT_B],
            .n_threads = 1,
        };
        run_blocks(&team, &own);
    }
}

enum ree_status ree_gemm_run_batch(const struct ree_cpu_context *ctx, uint32_t n_batch,
                                   void (*make)(const void *user, uint32_t i,
                                                struct ree_gemm *gemm),
                                   const void *user, uint32_t n_threads, struct ree_error *err) {
    struct ree_gemm sample;
    make(user, 0, &sample);
    struct blocking s = choose_blocking(&sample, 1);
    const size_t sizes[] = {s.packed_a_floats, s.packed_b_floats, s.totals_floats,
                            widened_floats(&sample, s.tn)};
    for (uint32_t slot = SLOT_A; slot <= SLOT_WIDENED; slot++)
        REE_TRY(ree_cpu_scratch_reserve(ctx, n_threads, slot, sizes[slot] * sizeof(float), err));
    const struct batch batch = {make, user, s};
    const struct ree_cpu_loop loop = {
        .n = n_batch,
        .n_threads = n_threads,
        .body = run_products,
        .job = &batch,
    };
    ree_cpu_run_loop(ctx, &loop);
    return REE_OK;
}
