// Convolution with few output channels per group (for example depthwise): sums are computed
// directly, one channel at a time, with vectors along the output's rows. NUMERICS.md section 3.
#include "device/cpu/conv.h"

#define MAX_SCRATCH_SUMS 4096 // maximum words of sums in scratch; more if one row has more

struct direct_run {
    const struct ree_conv *conv;
    const float *packed_w; // packed weights of integers; floats are not packed
};

// Computes n_rows rows of output channel i of a group, each sum over all taps. x: the laid-out
// input, from the word that offset 0 reads for the first sum.
static void sum_taps(const struct direct_run *run, uint32_t group, uint32_t i, uint32_t n_rows,
                     const float *x, float *out) {
    const struct ree_conv *conv = run->conv;
    uint32_t width = conv->layout.axes[2].out, pitch = conv->layout.axes[2].length;
    if (pitch == width) { // the rows are contiguous: treat them as one
        width *= n_rows;
        n_rows = 1;
    }
    uint32_t k = conv->layout.n_taps, m = conv->p->m, channel = group * m + i;
    const struct ree_integer_tiles *integer = conv->words.tiles;
    if (!integer) {
        const float *w = (const float *)conv->w + (size_t)channel * k;
        conv->tiles->taps(n_rows, width, k, w, x, pitch, conv->taps, out);
        return;
    }
    // Packed weights of so few channels are one panel: (words, channels).
    const ree_any_u32 *w = (const ree_any_u32 *)run->packed_w;
    integer->taps(n_rows, width, k, w + (size_t)group * m * k + i, m, (const ree_any_u32 *)x, pitch,
                  conv->taps, ree_conv_correction(conv, run->packed_w, channel),
                  (ree_any_u32 *)out);
}

// Returns the number of output rows whose sums are computed together. They are rows of one depth
// slice, so their distance in the laid-out input is constant.
static uint32_t rows_at_once(const struct ree_conv *conv) {
    uint32_t fitting = MAX_SCRATCH_SUMS / conv->layout.axes[2].out, rows = conv->layout.axes[1].out;
    if (conv->output.elem_size == sizeof(float)) return rows;
    return fitting == 0 ? 1 : ree_conv_min(rows, fitting);
}

// Computes one group of one image. `sums` is scratch: first for bytes that become words, then,
// unless sums are computed in the output itself, for rows_at_once() rows of sums.
static void run_group(const struct direct_run *run, uint32_t unit, float *laid_out, float *sums) {
    const struct ree_conv *conv = run->conv;
    const struct ree_conv_params *p = conv->p;
    const struct ree_conv_layout *layout = &conv->layout;
    size_t group_bytes = p->c * ree_conv_n_input(p) * ree_dtype_size(p->x_dtype);
    const void *group = (const char *)conv->x + unit * group_bytes;
    const float *x = group;
    if (!ree_conv_layout_is_x(layout)) {
        ree_conv_layout_fill(layout, group, 0, layout->c, (uint8_t *)sums, laid_out);
        x = laid_out;
    }
    uint32_t width = p->out[2], n_rows = layout->n_out / width, most = rows_at_once(conv);
    bool in_output = conv->output.elem_size == sizeof(float);
    for (uint32_t i = 0; i < p->m; i++) {
        uint32_t first = (unit * p->m + i) * layout->n_out;
        for (uint32_t r = 0, rows; r < n_rows; r += rows, first += rows * width) {
            rows = ree_conv_min(most, p->out[1] - r % p->out[1]);
            uint32_t ignored, at = ree_conv_layout_at(layout, r * width, &ignored);
            float *out = in_output ? (float *)conv->output.out + first : sums;
            sum_taps(run, unit % p->groups, i, rows, x + layout->start + at, out);
            ree_conv_write(&conv->output, out, first, rows * width);
        }
    }
}

static void run_groups(const void *user, const struct ree_cpu_range *range) {
    for (uint64_t unit = range->begin; unit < range->end; unit++)
        run_group(user, (uint32_t)unit, range->scratch[REE_CONV_SLOT_PANELS],
                  range->scratch[REE_CONV_SLOT_TOTALS]);
}

enum ree_status ree_conv_direct(const struct ree_cpu_context *ctx, struct ree_conv *conv,
                                uint32_t n_threads, struct ree_error *err) {
    const struct ree_conv_params *p = conv->p;
    const struct ree_conv_layout *layout = &conv->layout;
    struct direct_run run = {.conv = conv, .packed_w = ctx->packed[1]};
    size_t laid_out =
        ree_conv_layout_is_x(layout) ? 0 : (size_t)layout->c * layout->c_plane * sizeof(float);
    size_t sums = conv->output.elem_size == sizeof(float)
                      ? 0
                      : (size_t)rows_at_once(conv) * p->out[2] * sizeof(float);
    size_t bytes = ree_conv_layout_scratch(layout), own = sums > bytes ? sums : bytes;
    size_t taps = layout->n_taps * sizeof(uint32_t);
    uint32_t *offsets = ree_cpu_scratch_get(ctx, 0, REE_CONV_SLOT_SHARED, taps);
    if (!offsets) return ree_cpu_no_memory(err, taps);
    REE_TRY(ree_cpu_scratch_reserve(ctx, n_threads, REE_CONV_SLOT_PANELS, laid_out, err));
    REE_TRY(ree_cpu_scratch_reserve(ctx, n_threads, REE_CONV_SLOT_TOTALS, own, err));
    ree_conv_layout_taps(layout, offsets);
    conv->taps = offsets;
    if (conv->words.tiles && !ctx->packed[1]) {
        struct ree_conv_packing packing = ree_conv_packing_of(ctx, p);
        size_t size = ree_conv_packed_size(&packing);
        float *packed = ree_cpu_scratch_get(ctx, 0, REE_CONV_SLOT_WEIGHTS, size);
        if (!packed) return ree_cpu_no_memory(err, size);
        for (uint32_t g = 0; g < p->groups; g++)
            ree_conv_pack_panel(&packing, conv->w, g, 0, packed);
        run.packed_w = packed;
    }
    const struct ree_cpu_loop loop = {
        .n = p->n * p->groups,
        .n_threads = n_threads,
        .body = run_groups,
        .job = &run,
    };
    ree_cpu_run_loop(ctx, &loop);
    return REE_OK;
}
