// Depthwise convolution for the kernel sizes that models use (ree_conv_is_depthwise). Each group
// has one input channel, a plane, and one to three output channels; the sums of an output channel
// are a plane too (tiles_depthwise.inc). NUMERICS.md section 3.
//
// 8-bit integers are summed as floats: a sum of at most 25 products below 2^16 is exact in 24 bits.
#include "device/cpu/conv.h"

#define BAND_FLOATS 6144

bool ree_conv_is_depthwise(const struct ree_conv_params *p) {
    uint32_t kernel = p->kernel[1], stride = p->stride[1];
    if (p->c != 1 || p->m >= REE_CONV_FEW_CHANNELS || p->transposed) return false;
    if (p->in[0] != 1 || p->kernel[0] != 1 || p->out[0] != 1 || p->pad[0] != 0) return false;
    if ((kernel != 3 && kernel != 5) || (stride != 1 && stride != 2)) return false;
    for (int i = 1; i < 3; i++)
        if (p->kernel[i] != kernel || p->stride[i] != stride || p->dilation[i] != 1 ||
            p->pad[i] < 0 || p->pad[i] > (int32_t)kernel)
            return false;
    return true;
}

static float byte_as_float(const void *bytes, uint32_t dtype, size_t i) {
    return dtype == REE_I8 ? ((const int8_t *)bytes)[i] : ((const uint8_t *)bytes)[i];
}

// Returns the number of output rows per step: few enough that the laid-out input that they read
// stays in the first-level cache.
static uint32_t rows_at_once(const struct ree_conv *conv, const struct ree_tile_plane *plane) {
    uint32_t rows = 32;
    while (rows > 4 && conv->floats->depthwise_floats(plane, rows) > BAND_FLOATS)
        rows -= 4;
    return ree_conv_min(rows, plane->out_h);
}

struct job {
    const struct ree_conv *conv;
    const struct ree_tile_plane *plane;
    uint32_t band; // output rows per step
    bool in_output;
};

// Computes one group of one image.
static void run_group(const struct job *job, uint32_t unit, float *laid_out, float *own_sums) {
    const struct ree_conv *conv = job->conv;
    const struct ree_tile_plane *plane = job->plane;
    const struct ree_conv_params *p = conv->p;
    size_t n_in = (size_t)plane->in_h * plane->in_w, n_kernel = ree_conv_n_kernel(p);
    const void *x = (const char *)conv->x + unit * n_in * ree_dtype_size(p->x_dtype);
    float widened[REE_CONV_FEW_CHANNELS * 25];
    size_t filters = (size_t)(unit % p->groups) * p->m * n_kernel;
    const float *w = (const float *)conv->w + filters;
    if (conv->words.tiles) {
        for (size_t k = 0; k < p->m * n_kernel; k++)
            widened[k] = byte_as_float(conv->w, p->w_dtype, filters + k);
        w = widened;
    }
    for (uint32_t r = 0, rows; r < plane->out_h; r += rows) {
        rows = ree_conv_min(job->band, plane->out_h - r);
        conv->floats->depthwise_lay_out(plane, x, r, rows, laid_out);
        for (uint32_t i = 0; i < p->m; i++) {
            uint32_t first = ((unit * p->m + i) * plane->out_h + r) * plane->out_w;
            float *out = job->in_output ? (float *)conv->output.out + first : own_sums;
            conv->floats->depthwise(plane, w + i * n_kernel, laid_out, rows, out);
            ree_conv_write(&conv->output, out, first, rows * plane->out_w);
        }
    }
}

static void run_groups(const void *user, const struct ree_cpu_range *range) {
    for (uint64_t unit = range->begin; unit < range->end; unit++)
        run_group(user, (uint32_t)unit, range->scratch[REE_CONV_SLOT_PANELS],
                  range->scratch[REE_CONV_SLOT_TOTALS]);
}

enum ree_status ree_conv_depthwise(const struct ree_cpu_context *ctx, const struct ree_conv *conv,
                                   uint32_t n_threads, struct ree_error *err) {
    const struct ree_conv_params *p = conv->p;
    const struct ree_tile_plane plane = {
        .in_h = p->in[1],
        .in_w = p->in[2],
        .out_h = p->out[1],
        .out_w = p->out[2],
        .kernel = p->kernel[1],
        .stride = p->stride[1],
        .pad_h = (uint32_t)p->pad[1],
        .pad_w = (uint32_t)p->pad[2],
        .type = ree_tile_type_of((enum ree_dtype)p->x_dtype),
        .pad = conv->words.tiles ? byte_as_float(&conv->words.pad, p->x_dtype, 0) : 0.0f,
    };
    uint32_t band = rows_at_once(conv, &plane);
    size_t laid_out = conv->floats->depthwise_floats(&plane, band) * sizeof(float);
    bool in_output = conv->output.elem_size == sizeof(float);
    size_t sums = in_output ? 0 : (size_t)band * plane.out_w * sizeof(float);
    REE_TRY(ree_cpu_scratch_reserve(ctx, n_threads, REE_CONV_SLOT_PANELS, laid_out, err));
    REE_TRY(ree_cpu_scratch_reserve(ctx, n_threads, REE_CONV_SLOT_TOTALS, sums, err));
    const struct job job = {conv, &plane, band, in_output};
    const struct ree_cpu_loop loop = {
        .n = p->n * p->groups,
        .n_threads = n_threads,
        .body = run_groups,
        .job = &job,
    };
    ree_cpu_run_loop(ctx, &loop);
    return REE_OK;
}
