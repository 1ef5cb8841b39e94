// conv over 8-bit integers: out(b, i, o) = expr(sum over (c, k) of x(b, c, o*stride + k*dilation -
// pad) * w(i, c, k)), exactly in 32 bits, wrapping; outside x the pad value.
#include "device/cpu/conv.h"

static int32_t load(const void *data, uint32_t dtype, size_t i) {
    return dtype == REE_I8 ? ((const int8_t *)data)[i] : ((const uint8_t *)data)[i];
}

static uint32_t sum_at(const struct ree_conv_params *p, const void *x, const void *w, int32_t pad,
                       uint32_t plane, uint32_t channel, uint32_t o) {
    uint32_t n_taps = p->kernel[0] * p->kernel[1] * p->kernel[2], sum = 0;
    size_t n_in = (size_t)p->in[0] * p->in[1] * p->in[2];
    const uint32_t at[3] = {o / p->out[2] / p->out[1], o / p->out[2] % p->out[1], o % p->out[2]};
    for (uint32_t c = 0; c < p->c; c++)
        for (uint32_t k = 0; k < n_taps; k++) {
            const uint32_t tap[3] = {k / p->kernel[2] / p->kernel[1],
                                     k / p->kernel[2] % p->kernel[1], k % p->kernel[2]};
            int64_t from = 0;
            for (int a = 0; a < 3 && from >= 0; a++) {
                int64_t in =
                    (int64_t)at[a] * p->stride[a] + (int64_t)tap[a] * p->dilation[a] - p->pad[a];
                from = in < 0 || in >= p->in[a] ? -1 : from * p->in[a] + in;
            }
            int32_t xv =
                from < 0 ? pad : load(x, p->x_dtype, (size_t)(plane + c) * n_in + (size_t)from);
            sum += (uint32_t)(xv * load(w, p->w_dtype, ((size_t)channel * p->c + c) * n_taps + k));
        }
    return sum;
}

enum ree_status ree_conv_integer(const struct ree_cpu_context *ctx, const struct ree_conv_params *p,
                                 void *const *operands, const struct ree_conv_output *output,
                                 struct ree_error *err) {
    (void)err;
    int32_t pad = p->has_pad_value ? load(operands[2], p->x_dtype, 0) : 0;
    uint32_t n_out = p->out[0] * p->out[1] * p->out[2], n_channels = p->groups * p->m;
    uint64_t k = (uint64_t)p->c * p->kernel[0] * p->kernel[1] * p->kernel[2];
    uint32_t n_threads = ree_cpu_threads_for(ctx, 4 * k * p->n * n_channels * n_out);
#pragma omp parallel for num_threads(n_threads) if (n_threads > 1)
    for (uint32_t u = 0; u < p->n * n_channels; u++) {
        uint32_t channel = u % n_channels,
                 plane = (u / n_channels * p->groups + channel / p->m) * p->c;
        for (uint32_t o = 0; o < n_out; o++) {
            uint32_t sum = sum_at(p, operands[0], operands[1], pad, plane, channel, o);
            ree_conv_write(output, (const float *)(const void *)&sum, u * n_out + o, 1);
        }
    }
    return REE_OK;
}
