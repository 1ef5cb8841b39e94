// Convolution by its definition, element by element, for shapes without a suitable layout: no taps
// at all, or very large padding or dilation. NUMERICS.md section 3.
#include "device/cpu/conv.h"

#include <math.h>

// Returns the input coordinate that output coordinate o reads at tap k along one axis, or -1 if x
// has no element there.
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

// The positions of the operands of one term of a sum; x is -1 in the padding.
struct term {
    int64_t x;
    size_t w;
};

static struct term term_at(const struct ree_conv_params *p, uint32_t image, uint32_t channel,
                           uint32_t o, uint32_t l) {
    uint32_t n_taps = (uint32_t)ree_conv_n_kernel(p), c = l / n_taps, k = l % n_taps;
    uint32_t g = channel / p->m, i = channel % p->m;
    uint32_t at[3] = {o / p->out[2] / p->out[1], o / p->out[2] % p->out[1], o % p->out[2]};
    uint32_t tap[3] = {k / p->kernel[2] / p->kernel[1], k / p->kernel[2] % p->kernel[1],
                       k % p->kernel[2]};
    int64_t from = 0;
    for (int axis = 0; axis < 3 && from >= 0; axis++) {
        int64_t in = input_at(p, axis, at[axis], tap[axis]);
        from = in < 0 ? -1 : from * p->in[axis] + in;
    }
    size_t plane = ((size_t)image * p->groups + g) * p->c + c;
    size_t filter = p->transposed ? ((size_t)g * p->c + c) * p->m + i : (size_t)channel * p->c + c;
    return (struct term){
        .x = from < 0 ? -1 : (int64_t)(plane * ree_conv_n_input(p)) + from,
        .w = filter * n_taps + k,
    };
}

static float sum_at(const struct ree_conv *conv, uint32_t image, uint32_t channel, uint32_t o) {
    const struct ree_conv_params *p = conv->p;
    const float *x = conv->x, *w = conv->w;
    float total = 0.0f, acc = 0.0f;
    for (uint32_t l = 0; l < p->c * ree_conv_n_kernel(p); l++) {
        struct term term = term_at(p, image, channel, o, l);
        acc = fmaf(term.x < 0 ? 0.0f : x[term.x], w[term.w], acc);
        if (l % REE_CHUNK == REE_CHUNK - 1) {
            total += acc;
            acc = 0.0f;
        }
    }
    return ree_cpu_canonical_nan(total + acc + 0.0f);
}

static int32_t byte_at(const void *data, uint32_t dtype, size_t i) {
    return dtype == REE_I8 ? ((const int8_t *)data)[i] : ((const uint8_t *)data)[i];
}

static uint32_t integer_sum_at(const struct ree_conv *conv, uint32_t image, uint32_t channel,
                               uint32_t o) {
    const struct ree_conv_params *p = conv->p;
    int32_t pad = byte_at(&conv->words.pad, p->x_dtype, 0);
    uint32_t sum = 0;
    for (uint32_t l = 0; l < p->c * ree_conv_n_kernel(p); l++) {
        struct term term = term_at(p, image, channel, o, l);
        int32_t x = term.x < 0 ? pad : byte_at(conv->x, p->x_dtype, (size_t)term.x);
        sum += (uint32_t)(x * byte_at(conv->w, p->w_dtype, term.w));
    }
    return sum;
}

static void convolve_channels(const void *user, const struct ree_cpu_range *range) {
    const struct ree_conv *conv = user;
    const struct ree_conv_params *p = conv->p;
    uint32_t n_out = p->out[0] * p->out[1] * p->out[2], n_channels = p->groups * p->m;
    for (uint32_t u = (uint32_t)range->begin; u < range->end; u++) {
        for (uint32_t o = 0; o < n_out; o++) {
            float sum;
            if (conv->words.tiles) {
                uint32_t bits = integer_sum_at(conv, u / n_channels, u % n_channels, o);
                memcpy(&sum, &bits, sizeof sum);
            } else {
                sum = sum_at(conv, u / n_channels, u % n_channels, o);
            }
            ree_conv_write(&conv->output, &sum, u * n_out + o, 1);
        }
    }
}

void ree_conv_definition(const struct ree_cpu_context *ctx, const struct ree_conv *conv,
                         uint32_t n_threads) {
    const struct ree_conv_params *p = conv->p;
    const struct ree_cpu_loop loop = {
        .n = p->n * p->groups * p->m,
        .grain = 1,
        .n_threads = n_threads,
        .body = convolve_channels,
        .job = conv,
    };
    ree_cpu_run_loop(ctx, &loop);
}
