// Convolution by tiles, as a matrix product. The panels of its second operand (one chunk of K by a
// few output positions) are gathered from the laid-out input when the tiles need them. NUMERICS.md
// section 3.
#include "device/cpu/conv.h"

#include <omp.h>

#define MAX_LAID_OUT ((uint64_t)8 << 20) // words of input laid out at a time, at least one image
#define TASK_PANELS 8                    // panels of output positions per task
#define MAX_COLS 64

struct tiles_run {
    const struct ree_conv *conv;
    struct ree_conv_packing packing;
    const float *packed_w;
    const float *laid_out;   // (images, groups * planes, plane), or x
    float *own_weights;      // where this run packs the weights; NULL: they are packed already
    float *own_laid_out;     // where this run lays out x; NULL: the tiles read x itself
    bool own_totals;         // sums are kept in scratch until the epilogue
    uint32_t images;         // images laid out at a time
    uint32_t task_m, task_o; // output channels and positions per task
};

// Finds the runs of adjacent input that positions [o, o + n) read. Returns their number.
static uint32_t find_runs(const struct ree_conv_layout *layout, uint32_t o, uint32_t n,
                          struct ree_tile_run *runs) {
    uint32_t n_runs = 0;
    for (uint32_t end = o + n; o < end;) {
        uint32_t run, at = ree_conv_layout_at(layout, o, &run);
        run = ree_conv_min(run, end - o);
        // Without padding between them, rows are contiguous.
        if (n_runs && runs[n_runs - 1].at + runs[n_runs - 1].length == at)
            runs[n_runs - 1].length += run;
        else
            runs[n_runs++] = (struct ree_tile_run){at, run};
        o += run;
    }
    return n_runs;
}

struct task {
    uint32_t image, laid_out_image, group;
    uint32_t i, m; // output channels [i, i + m) of the group
    uint32_t o, n; // output positions
};

// Initialises integer sums with the correction of their output channel.
static void begin_sums(const struct tiles_run *run, const struct task *t, float *c, size_t ldc) {
    uint32_t channel = t->group * run->conv->p->m + t->i;
    for (uint32_t i = 0; i < t->m; i++) {
        uint32_t start = ree_conv_correction(run->conv, run->packed_w, channel + i);
        ree_any_u32 *row = (ree_any_u32 *)(c + i * ldc);
        for (uint32_t j = 0; j < t->n; j++)
            row[j] = start;
    }
}

static void run_task(const struct tiles_run *run, const struct task *t, float *panels,
                     float *own_totals) {
    const struct ree_conv *conv = run->conv;
    const struct ree_conv_params *p = conv->p;
    const struct ree_conv_layout *layout = &conv->layout;
    const struct ree_tiles *tiles = conv->tiles;
    uint32_t k = layout->n_taps, cols = tiles->cols;
    uint32_t channel = (t->image * p->groups + t->group) * p->m + t->i;
    uint32_t first = channel * layout->n_out + t->o;
    float *c = own_totals ? own_totals : (float *)conv->output.out + first;
    size_t ldc = own_totals ? t->n : layout->n_out;
    const float *x =
        run->laid_out + layout->start +
        ((size_t)t->laid_out_image * p->groups + t->group) * layout->c * layout->c_plane;
    const float *w = run->packed_w + (size_t)t->group * p->m * k;

    struct ree_tile_run runs[TASK_PANELS][MAX_COLS];
    uint32_t n_runs[TASK_PANELS], n_panels = ree_conv_ceil_div(t->n, cols);
    for (uint32_t j = 0; j < n_panels; j++)
        n_runs[j] =
            find_runs(layout, t->o + j * cols, ree_conv_min(t->n - j * cols, cols), runs[j]);

    bool begun = ree_conv_shift(conv) != 0;
    if (begun) begin_sums(run, t, c, ldc);
    for (uint32_t k0 = 0; k0 < k; k0 += REE_CHUNK) {
        uint32_t kc = ree_conv_min(k - k0, REE_CHUNK);
        uint32_t flags =
            (k0 == 0 && !begun ? REE_TILE_FIRST : 0) | (k0 + kc == k ? REE_TILE_LAST : 0);
        for (uint32_t j = 0; j < n_panels; j++)
            tiles->pack_runs(x, conv->taps + k0, kc, runs[j], n_runs[j],
                             panels + (size_t)j * kc * cols);
        for (uint32_t i = 0; i < t->m; i += run->packing.panel_rows) {
            uint32_t rows = ree_conv_min(t->m - i, run->packing.panel_rows);
            const float *a = w + (size_t)k0 * p->m + (size_t)(t->i + i) * kc;
            for (uint32_t j = 0; j < t->n; j += cols) {
                uint32_t width = ree_conv_min(t->n - j, cols);
                uint32_t vecs = ree_conv_ceil_div(width, tiles->lanes);
                tiles->tile[rows - 1][vecs - 1](kc, a, panels + (size_t)j * kc, c + i * ldc + j,
                                                ldc, width, flags);
            }
        }
    }
    if (!conv->output.epilogue && !own_totals) return;
    for (uint32_t i = 0; i < t->m; i++)
        ree_conv_write(&conv->output, c + i * ldc, first + i * layout->n_out, t->n);
}

static void choose_tasks(struct tiles_run *run, uint32_t n_images, uint32_t n_threads) {
    const struct ree_conv *conv = run->conv;
    uint32_t cols = conv->tiles->cols, n_out = conv->layout.n_out, m = conv->p->m;
    uint32_t others = n_images * conv->p->groups, panel_rows = run->packing.panel_rows;
    uint32_t n_panels = ree_conv_min(TASK_PANELS, ree_conv_ceil_div(n_out, cols));
    run->task_m = m;
    if (n_threads > 1) {
        while (n_panels > 2 && others * ree_conv_ceil_div(n_out, n_panels * cols) < 8 * n_threads)
            n_panels--;
        // Make more tasks with fewer channels each, but only as many as necessary: every task
        // gathers the input's panels again.
        while (run->task_m > 4 * panel_rows && others * ree_conv_ceil_div(n_out, n_panels * cols) *
                                                       ree_conv_ceil_div(m, run->task_m) <
                                                   2 * n_threads)
            run->task_m =
                ree_conv_ceil_div(ree_conv_ceil_div(run->task_m, 2), panel_rows) * panel_rows;
    }
    run->task_o = n_panels * cols;
}

static size_t max_size(size_t a, size_t b) {
    return a > b ? a : b;
}

// The iterations of the three loops of a run: packing weights, laying out x, and tasks. `own` is
// the thread's scratch.

static uint32_t n_weight_panels(const struct tiles_run *run) {
    const struct ree_conv_params *p = run->conv->p;
    return run->own_weights ? p->groups * ree_conv_ceil_div(p->m, run->packing.panel_rows) : 0;
}

static void pack_weights(const struct tiles_run *run, uint32_t panel) {
    uint32_t n_panels = ree_conv_ceil_div(run->conv->p->m, run->packing.panel_rows);
    ree_conv_pack_panel(&run->packing, run->conv->w, panel / n_panels,
                        panel % n_panels * run->packing.panel_rows, run->own_weights);
}

static uint32_t n_planes(const struct tiles_run *run, uint32_t n_images) {
    return run->own_laid_out ? n_images * run->conv->p->groups * run->conv->layout.c : 0;
}

static void lay_out(const struct tiles_run *run, uint32_t image0, uint32_t plane,
                    void *const *own) {
    const struct ree_conv_params *p = run->conv->p;
    const struct ree_conv_layout *layout = &run->conv->layout;
    size_t group_bytes = p->c * ree_conv_n_input(p) * ree_dtype_size(p->x_dtype);
    size_t group = (size_t)image0 * p->groups + plane / layout->c;
    ree_conv_layout_fill(layout, (const char *)run->conv->x + group * group_bytes,
                         plane % layout->c, 1, own[REE_CONV_SLOT_PANELS],
                         run->own_laid_out + (size_t)plane * layout->c_plane);
}

static uint32_t n_tasks(const struct tiles_run *run, uint32_t n_images) {
    const struct ree_conv_params *p = run->conv->p;
    return n_images * p->groups * ree_conv_ceil_div(p->m, run->task_m) *
           ree_conv_ceil_div(run->conv->layout.n_out, run->task_o);
}

static void run_numbered_task(const struct tiles_run *run, uint32_t image0, uint32_t number,
                              void *const *own) {
    const struct ree_conv_params *p = run->conv->p;
    uint32_t n_out = run->conv->layout.n_out;
    uint32_t n_m = ree_conv_ceil_div(p->m, run->task_m);
    uint32_t n_o = ree_conv_ceil_div(n_out, run->task_o);
    uint32_t rest = number / n_o / n_m;
    struct task t = {
        .o = number % n_o * run->task_o,
        .i = number / n_o % n_m * run->task_m,
        .group = rest % p->groups,
        .laid_out_image = rest / p->groups + (run->own_laid_out ? 0 : image0),
        .image = rest / p->groups + image0,
    };
    t.n = ree_conv_min(n_out - t.o, run->task_o);
    t.m = ree_conv_min(p->m - t.i, run->task_m);
    run_task(run, &t, own[REE_CONV_SLOT_PANELS],
             run->own_totals ? own[REE_CONV_SLOT_TOTALS] : NULL);
}

static void run_alone(const struct tiles_run *run, void *const *own) {
    for (uint32_t i = 0; i < n_weight_panels(run); i++)
        pack_weights(run, i);
    for (uint32_t image0 = 0, n_images; image0 < run->conv->p->n; image0 += n_images) {
        n_images = ree_conv_min(run->conv->p->n - image0, run->images);
        for (uint32_t i = 0; i < n_planes(run, n_images); i++)
            lay_out(run, image0, i, own);
        for (uint32_t i = 0; i < n_tasks(run, n_images); i++)
            run_numbered_task(run, image0, i, own);
    }
}

// Every thread of the team executes this function. The barriers at the ends of the loops order
// them.
static void run_in_team(const struct tiles_run *run, void *const *own) {
    if (run->own_weights) {
#pragma omp for schedule(static)
        for (uint32_t i = 0; i < n_weight_panels(run); i++)
            pack_weights(run, i);
    }
    for (uint32_t image0 = 0, n_images; image0 < run->conv->p->n; image0 += n_images) {
        n_images = ree_conv_min(run->conv->p->n - image0, run->images);
        if (run->own_laid_out) {
#pragma omp for schedule(static)
            for (uint32_t i = 0; i < n_planes(run, n_images); i++)
                lay_out(run, image0, i, own);
        }
#pragma omp for schedule(dynamic)
        for (uint32_t i = 0; i < n_tasks(run, n_images); i++)
            run_numbered_task(run, image0, i, own);
    }
}

enum ree_status ree_conv_tiles(const struct ree_cpu_context *ctx, struct ree_conv *conv,
                               uint32_t n_threads, struct ree_error *err) {
    const struct ree_conv_params *p = conv->p;
    const struct ree_conv_layout *layout = &conv->layout;
    struct tiles_run run = {.conv = conv, .packing = ree_conv_packing_of(ctx, p)};
    bool in_place = ree_conv_layout_is_x(layout);
    uint64_t image_words = in_place ? 0 : (uint64_t)p->groups * layout->c * layout->c_plane;
    uint64_t fitting = image_words ? MAX_LAID_OUT / image_words : p->n;
    uint32_t images = fitting == 0 ? 1 : fitting < p->n ? (uint32_t)fitting : p->n;
    run.images = images;
    choose_tasks(&run, images, n_threads);

    // Memory: the laid-out input and the taps are shared; each thread has its own panels and
    // totals. A thread first uses the memory of its panels for the bytes that become words.
    size_t shared = (size_t)images * image_words * sizeof(float);
    size_t weights = ree_conv_packed_size(&run.packing);
    size_t panels =
        max_size((size_t)ree_conv_min(layout->n_taps, REE_CHUNK) * run.task_o * sizeof(float),
                 ree_conv_layout_scratch(layout));
    size_t totals = conv->output.elem_size == sizeof(float)
                        ? 0
                        : (size_t)run.task_m * run.task_o * sizeof(float);
    size_t taps = ((size_t)layout->n_taps * sizeof(uint32_t) + 63) & ~(size_t)63;
    uint8_t *shared_memory = ree_cpu_scratch_get(ctx, 0, REE_CONV_SLOT_SHARED, taps + shared);
    if (!shared_memory) return ree_cpu_no_memory(err, taps + shared);
    if (ctx->packed[1]) {
        run.packed_w = ctx->packed[1];
    } else {
        run.own_weights = ree_cpu_scratch_get(ctx, 0, REE_CONV_SLOT_WEIGHTS, weights);
        if (!run.own_weights) return ree_cpu_no_memory(err, weights);
        run.packed_w = run.own_weights;
    }
    REE_TRY(ree_cpu_scratch_reserve(ctx, n_threads, REE_CONV_SLOT_PANELS, panels, err));
    REE_TRY(ree_cpu_scratch_reserve(ctx, n_threads, REE_CONV_SLOT_TOTALS, totals, err));
    ree_conv_layout_taps(layout, (uint32_t *)shared_memory);
    conv->taps = (uint32_t *)shared_memory;
    run.own_laid_out = in_place ? NULL : (float *)(void *)(shared_memory + taps);
    run.laid_out = in_place ? conv->x : run.own_laid_out;
    run.own_totals = totals > 0;

    if (n_threads == 1) {
        run_alone(&run, ctx->scratch[0].data);
        return REE_OK;
    }
#pragma omp parallel num_threads(n_threads)
    {
        REE_FLOAT_ENV_WORKER();
        run_in_team(&run, ctx->scratch[omp_get_thread_num()].data);
    }
    return REE_OK;
}
