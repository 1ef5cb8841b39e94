// conv: out(b, i, o) = expr(sum over (c, k) of x(b, c, o*stride + k*dilation - pad) * w(i, c, k)),
// NUMERICS.md section 3, the terms in the order (c, kd, kh, kw), zeros outside x included.
//
// A matrix product of w (rows: output channels, K: taps) with a matrix that is never built: its
// panels, one chunk of K by a few output positions, are gathered from the laid-out input
// (conv_layout.h) when the tiles need them. Few output channels per group (depthwise) are summed
// directly, vectors lying along the output's rows.
#include "device/cpu/conv.h"
#include "device/cpu/tiles.h"

#include <math.h>
#include <omp.h>

#define MAX_LAID_OUT ((uint64_t)8 << 20) // floats of input laid out at a time, if one image allows
#define TASK_PANELS 8                    // of output positions
#define FEW_CHANNELS 4

struct conv {
    const struct ree_conv_params *p;
    const struct ree_tiles *tiles;
    struct ree_conv_layout layout;
    const float *x, *w;
    struct ree_conv_output output;
    const uint32_t *taps; // offsets

    // Tiles.
    uint32_t panel_rows;
    const float *packed_w;   // groups of: chunks of: panels of (chunk's length, rows)
    const float *laid_out;   // (images, groups * c, plane), or x
    uint32_t task_m, task_o; // a task's output channels and positions
};

static uint32_t min_u32(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}
static uint32_t ceil_div(uint32_t a, uint32_t b) {
    return a / b + (a % b != 0);
}

static uint64_t n_kernel(const struct ree_conv_params *p) {
    return (uint64_t)p->kernel[0] * p->kernel[1] * p->kernel[2];
}
static uint64_t n_input(const struct ree_conv_params *p) {
    return (uint64_t)p->in[0] * p->in[1] * p->in[2];
}

// Weights

static uint32_t panel_rows(const struct ree_tiles *tiles, uint32_t m) {
    return ceil_div(m, ceil_div(m, tiles->rows));
}

// One panel: rows [i, i + rows) of group g, all chunks.
static void pack_w_panel(const struct ree_tiles *tiles, const struct ree_conv_params *p,
                         const float *w, uint32_t g, uint32_t i, uint32_t rows, float *packed) {
    uint32_t taps = (uint32_t)n_kernel(p), k = p->c * taps;
    packed += (size_t)g * p->m * k;
    for (uint32_t k0 = 0; k0 < k; k0 += REE_CHUNK) {
        uint32_t kc = min_u32(k - k0, REE_CHUNK);
        float *out = packed + (size_t)k0 * p->m + (size_t)i * kc;
        if (!p->transposed) {
            tiles->pack(w + ((size_t)g * p->m + i) * k + k0, k, 1, rows, kc, out, rows);
            continue;
        }
        // (groups * c, m, kernel): adjacent along the kernel only.
        for (uint32_t l = k0; l < k0 + kc;) {
            uint32_t c = l / taps, tap = l % taps, n = min_u32(taps - tap, k0 + kc - l);
            tiles->pack(w + (((size_t)g * p->c + c) * p->m + i) * taps + tap, taps, 1, rows, n,
                        out + (size_t)(l - k0) * rows, rows);
            l += n;
        }
    }
}

size_t ree_cpu_conv_pack_size(const struct ree_cpu_context *ctx, const struct ree_conv_params *p,
                              struct ree_cpu_pack_key *key) {
    const struct ree_tiles *tiles = ree_tiles_for(ctx->isa);
    if (p->m < FEW_CHANNELS || p->x_dtype != REE_F32) return 0;
    *key = (struct ree_cpu_pack_key){{REE_REPOP_CONV, p->groups, p->c, p->m, p->kernel[0],
                                      p->kernel[1], p->kernel[2], p->transposed, tiles->rows}};
    return (size_t)p->groups * p->m * p->c * n_kernel(p) * sizeof(float);
}

void ree_cpu_conv_pack(const struct ree_cpu_context *ctx, const struct ree_conv_params *p,
                       const void *w, void *out) {
    const struct ree_tiles *tiles = ree_tiles_for(ctx->isa);
    uint32_t height = panel_rows(tiles, p->m);
    for (uint32_t g = 0; g < p->groups; g++)
        for (uint32_t i = 0; i < p->m; i += height)
            pack_w_panel(tiles, p, w, g, i, min_u32(p->m - i, height), out);
}

// Tiles

// The runs of adjacent input that the positions [o, o + n) read.
static uint32_t find_runs(const struct ree_conv_layout *layout, uint32_t o, uint32_t n,
                          struct ree_tile_run *runs) {
    uint32_t n_runs = 0;
    for (uint32_t end = o + n; o < end;) {
        uint32_t run, at = ree_conv_layout_at(layout, o, &run);
        run = min_u32(run, end - o);
        // Without padding between them, rows follow each other.
        if (n_runs && runs[n_runs - 1].at + runs[n_runs - 1].length == at)
            runs[n_runs - 1].length += run;
        else
            runs[n_runs++] = (struct ree_tile_run){at, run};
        o += run;
    }
    return n_runs;
}

#define MAX_COLS 64

struct task {
    uint32_t image, laid_out_image, group;
    uint32_t i, m; // output channels [i, i + m) of the group
    uint32_t o, n; // output positions
};

static void run_task(const struct conv *conv, const struct task *t, float *panels,
                     float *own_totals) {
    const struct ree_conv_params *p = conv->p;
    const struct ree_conv_layout *layout = &conv->layout;
    const struct ree_tiles *tiles = conv->tiles;
    uint32_t k = layout->n_taps, cols = tiles->cols;
    uint32_t channel = (t->image * p->groups + t->group) * p->m + t->i;
    uint32_t first = channel * layout->n_out + t->o;
    float *c = own_totals ? own_totals : (float *)conv->output.out + first;
    size_t ldc = own_totals ? t->n : layout->n_out;
    const float *x = conv->laid_out + layout->start +
                     ((size_t)t->laid_out_image * p->groups + t->group) * p->c * layout->plane;
    const float *w = conv->packed_w + (size_t)t->group * p->m * k;

    struct ree_tile_run runs[TASK_PANELS][MAX_COLS];
    uint32_t n_runs[TASK_PANELS], n_panels = ceil_div(t->n, cols);
    for (uint32_t j = 0; j < n_panels; j++)
        n_runs[j] = find_runs(layout, t->o + j * cols, min_u32(t->n - j * cols, cols), runs[j]);

    for (uint32_t k0 = 0; k0 < k; k0 += REE_CHUNK) {
        uint32_t kc = min_u32(k - k0, REE_CHUNK);
        uint32_t flags = (k0 == 0 ? REE_TILE_FIRST : 0) | (k0 + kc == k ? REE_TILE_LAST : 0);
        for (uint32_t j = 0; j < n_panels; j++)
            tiles->pack_runs(x, conv->taps + k0, kc, runs[j], n_runs[j],
                             panels + (size_t)j * kc * cols);
        for (uint32_t i = 0; i < t->m; i += conv->panel_rows) {
            uint32_t rows = min_u32(t->m - i, conv->panel_rows);
            const float *a = w + (size_t)k0 * p->m + (size_t)(t->i + i) * kc;
            for (uint32_t j = 0; j < t->n; j += cols) {
                uint32_t width = min_u32(t->n - j, cols), vecs = ceil_div(width, tiles->lanes);
                tiles->tile[rows - 1][vecs - 1](kc, a, panels + (size_t)j * kc, c + i * ldc + j,
                                                ldc, width, flags);
            }
        }
    }
    if (!conv->output.epilogue && !own_totals) return;
    for (uint32_t i = 0; i < t->m; i++)
        ree_conv_write(&conv->output, c + i * ldc, first + i * layout->n_out, t->n);
}

static void choose_tasks(struct conv *conv, uint32_t n_images, uint32_t n_threads) {
    uint32_t cols = conv->tiles->cols, n_out = conv->layout.n_out, m = conv->p->m;
    uint32_t others = n_images * conv->p->groups;
    uint32_t n_panels = min_u32(TASK_PANELS, ceil_div(n_out, cols));
    conv->task_m = m;
    if (n_threads > 1) {
        while (n_panels > 2 && others * ceil_div(n_out, n_panels * cols) < 8 * n_threads)
            n_panels--;
        // More tasks by fewer channels each: their panels of the input are gathered again.
        while (conv->task_m > 4 * conv->panel_rows &&
               others * ceil_div(n_out, n_panels * cols) * ceil_div(m, conv->task_m) <
                   2 * n_threads)
            conv->task_m = ceil_div(ceil_div(conv->task_m, 2), conv->panel_rows) * conv->panel_rows;
    }
    conv->task_o = n_panels * cols;
}

enum scratch_slot { SLOT_SHARED, SLOT_WEIGHTS, SLOT_PANELS, SLOT_TOTALS };

static enum ree_status run_tiles(const struct ree_cpu_context *ctx, struct conv *conv,
                                 uint32_t n_threads, struct ree_error *err) {
    const struct ree_conv_params *p = conv->p;
    const struct ree_conv_layout *layout = &conv->layout;
    const struct ree_tiles *tiles = conv->tiles;
    uint32_t n_channels = p->groups * p->c;
    uint64_t image_floats = layout->in_place ? 0 : (uint64_t)n_channels * layout->plane;
    uint64_t fitting = image_floats ? MAX_LAID_OUT / image_floats : p->n;
    uint32_t images = fitting == 0 ? 1 : fitting < p->n ? (uint32_t)fitting : p->n;
    conv->panel_rows = panel_rows(tiles, p->m);
    choose_tasks(conv, images, n_threads);

    // Memory: the laid-out input and the taps are shared, panels and totals each thread's own.
    size_t shared = (size_t)images * image_floats * sizeof(float);
    size_t weights = (size_t)p->groups * p->m * layout->n_taps * sizeof(float);
    size_t panels = (size_t)min_u32(layout->n_taps, REE_CHUNK) * conv->task_o * sizeof(float);
    size_t totals = conv->output.elem_size == sizeof(float)
                        ? 0
                        : (size_t)conv->task_m * conv->task_o * sizeof(float);
    size_t taps = ((size_t)layout->n_taps * sizeof(uint32_t) + 63) & ~(size_t)63;
    uint8_t *shared_memory = ree_cpu_scratch_get(ctx, 0, SLOT_SHARED, taps + shared);
    if (!shared_memory) return ree_cpu_no_memory(err, taps + shared);
    float *own_weights = NULL;
    if (ctx->packed) {
        conv->packed_w = ctx->packed;
    } else {
        own_weights = ree_cpu_scratch_get(ctx, 0, SLOT_WEIGHTS, weights);
        if (!own_weights) return ree_cpu_no_memory(err, weights);
        conv->packed_w = own_weights;
    }
    for (uint32_t i = 0; i < n_threads; i++)
        if (!ree_cpu_scratch_get(ctx, i, SLOT_PANELS, panels) ||
            !ree_cpu_scratch_get(ctx, i, SLOT_TOTALS, totals))
            return ree_cpu_no_memory(err, panels + totals);
    ree_conv_layout_taps(layout, (uint32_t *)shared_memory);
    conv->taps = (uint32_t *)shared_memory;
    float *laid_out = (float *)(shared_memory + taps);
    conv->laid_out = layout->in_place ? conv->x : laid_out;

    uint32_t n_panels = ceil_div(p->m, conv->panel_rows);
    uint32_t n_m = ceil_div(p->m, conv->task_m), n_o = ceil_div(layout->n_out, conv->task_o);
#pragma omp parallel num_threads(n_threads) if (n_threads > 1)
    {
        void *const *own = ctx->scratch[omp_get_thread_num()].data;
        if (own_weights) {
#pragma omp for schedule(static)
            for (uint32_t u = 0; u < p->groups * n_panels; u++) {
                uint32_t i = u % n_panels * conv->panel_rows;
                pack_w_panel(tiles, p, conv->w, u / n_panels, i,
                             min_u32(p->m - i, conv->panel_rows), own_weights);
            }
        }
        for (uint32_t image0 = 0; image0 < p->n; image0 += images) {
            uint32_t n_images = min_u32(p->n - image0, images);
            if (!layout->in_place) {
#pragma omp for schedule(static)
                for (uint32_t u = 0; u < n_images * n_channels; u++)
                    ree_conv_layout_fill(layout,
                                         conv->x + ((size_t)image0 * n_channels + u) * n_input(p),
                                         laid_out + (size_t)u * layout->plane);
            }
            uint32_t n_units = n_images * p->groups * n_m * n_o;
#pragma omp for schedule(dynamic)
            for (uint32_t u = 0; u < n_units; u++) {
                uint32_t rest = u / n_o / n_m;
                struct task t = {
                    .o = u % n_o * conv->task_o,
                    .i = u / n_o % n_m * conv->task_m,
                    .group = rest % p->groups,
                    .laid_out_image = rest / p->groups + (layout->in_place ? image0 : 0),
                    .image = rest / p->groups + image0,
                };
                t.n = min_u32(layout->n_out - t.o, conv->task_o);
                t.m = min_u32(p->m - t.i, conv->task_m);
                run_task(conv, &t, own[SLOT_PANELS], totals ? own[SLOT_TOTALS] : NULL);
            }
        }
    }
    return REE_OK;
}

// Few output channels per group

// Rows of the laid-out input are longer than those of the output by what the taps reach. Summed in
// one go, that reach included, they fill whole vectors; the rows are then cut out of the sums.
// Worth it while little is summed in vain, and as many rows at a time as stay near.
#define FLAT_FLOATS 4096

static uint32_t flat_rows(const struct ree_conv_layout *layout) {
    uint32_t pitch = layout->axes[2].length, width = layout->axes[2].out;
    uint32_t rows = layout->axes[1].out;
    if (pitch - width > width / 2 || rows == 1) return 1;
    uint32_t fitting = FLAT_FLOATS / pitch;
    return fitting < 2 ? 1 : min_u32(rows, fitting);
}

// One group of one image. `sums` holds flat_rows() rows of the laid-out input.
static void run_group(const struct conv *conv, uint32_t unit, float *laid_out, float *sums) {
    const struct ree_conv_params *p = conv->p;
    const struct ree_conv_layout *layout = &conv->layout;
    const float *x = conv->x + (size_t)unit * p->c * n_input(p);
    if (!layout->in_place) {
        for (uint32_t c = 0; c < p->c; c++)
            ree_conv_layout_fill(layout, x + c * n_input(p), laid_out + (size_t)c * layout->plane);
        x = laid_out;
    }
    uint32_t width = p->out[2], n_rows = layout->n_out / width, pitch = layout->axes[2].length;
    uint32_t most = flat_rows(layout);
    bool direct = conv->output.elem_size == sizeof(float) && (most == 1 || pitch == width);
    for (uint32_t i = 0; i < p->m; i++) {
        const float *w = conv->w + ((size_t)(unit % p->groups) * p->m + i) * layout->n_taps;
        uint32_t first = (unit * p->m + i) * layout->n_out;
        for (uint32_t r = 0, rows; r < n_rows; r += rows, first += rows * width) {
            // Rows of one depth lie at one pitch.
            rows = min_u32(most, p->out[1] - r % p->out[1]);
            uint32_t run, at = ree_conv_layout_at(layout, r * width, &run);
            float *out = direct ? (float *)conv->output.out + first : sums;
            conv->tiles->taps((rows - 1) * pitch + width, layout->n_taps, w, x + layout->start + at,
                              conv->taps, out);
            if (out != sums || pitch == width) {
                ree_conv_write(&conv->output, out, first, rows * width);
                continue;
            }
            float *target = conv->output.epilogue ? sums : (float *)conv->output.out + first;
            for (uint32_t k = 0; k < rows; k++)
                memmove(target + k * width, sums + k * pitch, width * sizeof(float));
            if (conv->output.epilogue) ree_conv_write(&conv->output, sums, first, rows * width);
        }
    }
}

static enum ree_status run_groups(const struct ree_cpu_context *ctx, struct conv *conv,
                                  uint32_t n_threads, struct ree_error *err) {
    const struct ree_conv_params *p = conv->p;
    const struct ree_conv_layout *layout = &conv->layout;
    size_t laid_out = layout->in_place ? 0 : (size_t)p->c * layout->plane * sizeof(float);
    size_t sums = (size_t)flat_rows(layout) * layout->axes[2].length * sizeof(float);
    size_t taps = layout->n_taps * sizeof(uint32_t);
    uint32_t *offsets = ree_cpu_scratch_get(ctx, 0, SLOT_SHARED, taps);
    if (!offsets) return ree_cpu_no_memory(err, taps);
    for (uint32_t i = 0; i < n_threads; i++)
        if (!ree_cpu_scratch_get(ctx, i, SLOT_PANELS, laid_out) ||
            !ree_cpu_scratch_get(ctx, i, SLOT_TOTALS, sums))
            return ree_cpu_no_memory(err, laid_out + sums);
    ree_conv_layout_taps(layout, offsets);
    conv->taps = offsets;
#pragma omp parallel for num_threads(n_threads) if (n_threads > 1) schedule(dynamic)
    for (uint32_t unit = 0; unit < p->n * p->groups; unit++) {
        void *const *own = ctx->scratch[omp_get_thread_num()].data;
        run_group(conv, unit, own[SLOT_PANELS], own[SLOT_TOTALS]);
    }
    return REE_OK;
}

// By the definition

// The input element that output coordinate o meets at tap k along one axis, or -1 for a zero.
static int64_t input_at(const struct ree_conv_params *p, int axis, uint32_t o, uint32_t k) {
    int64_t at = (int64_t)k * p->dilation[axis];
    if (p->transposed) {
        at = (int64_t)o + p->pad[axis] - at;
        if (at % p->stride[axis] != 0) return -1;
        at /= p->stride[axis];
    } else {
        at += (int64_t)o * p->stride[axis] - p->pad[axis];
    }
    return at >= 0 && at < p->in[axis] ? at : -1;
}

static float sum_at(const struct conv *conv, uint32_t image, uint32_t channel, uint32_t o) {
    const struct ree_conv_params *p = conv->p;
    uint32_t g = channel / p->m, i = channel % p->m, n_taps = (uint32_t)n_kernel(p);
    uint32_t at[3] = {o / p->out[2] / p->out[1], o / p->out[2] % p->out[1], o % p->out[2]};
    float total = 0.0f, acc = 0.0f;
    for (uint32_t l = 0; l < p->c * n_taps; l++) {
        uint32_t c = l / n_taps, k = l % n_taps;
        uint32_t tap[3] = {k / p->kernel[2] / p->kernel[1], k / p->kernel[2] % p->kernel[1],
                           k % p->kernel[2]};
        int64_t from = 0;
        for (int axis = 0; axis < 3 && from >= 0; axis++) {
            int64_t in = input_at(p, axis, at[axis], tap[axis]);
            from = in < 0 ? -1 : from * p->in[axis] + in;
        }
        size_t plane = ((size_t)image * p->groups + g) * p->c + c;
        float x = from < 0 ? 0.0f : conv->x[plane * n_input(p) + (size_t)from];
        float w = p->transposed ? conv->w[(((size_t)g * p->c + c) * p->m + i) * n_taps + k]
                                : conv->w[((size_t)channel * p->c + c) * n_taps + k];
        acc = fmaf(x, w, acc);
        if (l % REE_CHUNK == REE_CHUNK - 1) {
            total += acc;
            acc = 0.0f;
        }
    }
    return ree_cpu_canonical_nan(total + acc + 0.0f);
}

// For shapes that no layout suits.
static void run_definition(const struct conv *conv, uint32_t n_threads) {
    const struct ree_conv_params *p = conv->p;
    uint32_t n_out = p->out[0] * p->out[1] * p->out[2], n_channels = p->groups * p->m;
#pragma omp parallel for num_threads(n_threads) if (n_threads > 1)
    for (uint32_t u = 0; u < p->n * n_channels; u++) {
        for (uint32_t o = 0; o < n_out; o++) {
            float sum = sum_at(conv, u / n_channels, u % n_channels, o);
            ree_conv_write(&conv->output, &sum, u * n_out + o, 1);
        }
    }
}

enum ree_status ree_cpu_conv(const struct ree_cpu_context *ctx, const struct ree_conv_params *p,
                             void *const *operands, struct ree_error *err) {
    uint64_t n_out = (uint64_t)p->out[0] * p->out[1] * p->out[2];
    uint64_t n_elements = (uint64_t)p->n * p->groups * p->m * n_out;
    if (n_elements == 0) return REE_OK;
    uint32_t n_factors = ree_conv_n_factors(p), n_tensors = 0;
    for (uint32_t i = 0; p->has_epilogue && i < p->epilogue.n_operands; i++)
        n_tensors += p->epilogue.operands[i].kind == REE_EXPR_TENSOR;
    struct ree_cpu_expr_plan epilogue;
    if (p->has_epilogue)
        ree_cpu_expr_plan(&epilogue, &p->epilogue, operands + n_factors, true, ctx->isa);
    struct conv conv = {
        .p = p,
        .tiles = ree_tiles_for(ctx->isa),
        .x = operands[0],
        .w = operands[1],
        .output =
            {
                .epilogue = p->has_epilogue ? &epilogue : NULL,
                .out = operands[n_factors + n_tensors],
                .elem_size =
                    p->has_epilogue ? ree_dtype_size(p->epilogue.out_dtype) : sizeof(float),
            },
    };
    if (ree_conv_sum_dtype(p) == REE_I32)
        return ree_conv_integer(ctx, p, operands, &conv.output, err);
    uint64_t k = p->c * n_kernel(p);
    uint64_t multiplications = n_elements * k;
    // No taps at all, or a layout out of proportion.
    if (k == 0 || !ree_conv_layout_init(&conv.layout, p)) {
        run_definition(&conv, ree_cpu_threads_for(ctx, multiplications * 4));
        return REE_OK;
    }
    uint32_t n_threads = ree_cpu_threads_for(ctx, multiplications / 24);
    if (p->m < FEW_CHANNELS && (!p->transposed || p->c == 1) &&
        (n_threads == 1 || p->n * p->groups >= 2 * n_threads))
        return run_groups(ctx, &conv, n_threads, err);
    return run_tiles(ctx, &conv, n_threads, err);
}
