#include "reference.h"
#include "repops/scalar/ops.h"

static uint64_t volume(const uint32_t dims[3]) {
    return (uint64_t)dims[0] * dims[1] * dims[2];
}

static void split(const uint32_t dims[3], uint64_t at, uint32_t out[3]) {
    for (uint32_t a = 3; a-- > 0;) {
        out[a] = (uint32_t)(at % dims[a]);
        at /= dims[a];
    }
}

void reference_pool(const struct ree_pool_params *p, void *const *operands) {
    enum ree_dtype dtype = (enum ree_dtype)p->dtype;
    uint64_t n_in = volume(p->in), n_out = volume(p->out);
    for (uint64_t i = 0; i < p->planes * n_out; i++) {
        uint64_t plane = i / n_out;
        uint32_t o[3], k[3];
        split(p->out, i % n_out, o);
        struct reference_sum sum;
        reference_sum_begin(&sum, false);
        uint64_t best = dtype == REE_F32 ? 0xFF800000u : dtype == REE_I8 ? (uint32_t)INT8_MIN : 0;
        int64_t best_at = -1;
        uint32_t count = 0;
        for (uint64_t t = 0; t < volume(p->kernel); t++) {
            split(p->kernel, t, k);
            bool inside = true, padded = true;
            int64_t at[3];
            for (uint32_t a = 0; a < 3; a++) {
                at[a] =
                    (int64_t)o[a] * p->stride[a] + (int64_t)k[a] * p->dilation[a] - p->pad_begin[a];
                inside = inside && at[a] >= 0 && at[a] < p->in[a];
                padded = padded && at[a] < (int64_t)p->in[a] + p->pad_end[a];
            }
            count += p->count_include_pad ? padded : inside;
            uint64_t value = 0;
            if (inside) {
                int64_t flat = (at[0] * p->in[1] + at[1]) * p->in[2] + at[2];
                value = reference_load(dtype, operands[0], (int64_t)(plane * n_in) + flat);
                float v = ree_float((uint32_t)value), b = ree_float((uint32_t)best);
                bool better =
                    dtype == REE_F32 ? b == b && (v > b || v != v) : (int32_t)value > (int32_t)best;
                if (better || best_at < 0)
                    best_at =
                        !p->storage_order ? flat : (at[2] * p->in[1] + at[1]) * p->in[0] + at[0];
                best = dtype == REE_F32 ? ree_op_max_f32((uint32_t)best, (uint32_t)value)
                                        : ree_op_max_i32((uint32_t)best, (uint32_t)value);
            }
            float x = ree_float((uint32_t)value);
            if (p->kind == REE_POOL_SUM_SQ)
                reference_sum_fma(&sum, x, x);
            else
                reference_sum_add(&sum, x);
        }
        if (p->kind == REE_POOL_AVG)
            best = ree_op_div_f32(reference_sum_end(sum), ree_op_u32_to_f32(count));
        else if (p->kind == REE_POOL_SUM_SQ)
            best = reference_sum_end(sum);
        reference_store(dtype, operands[1], (int64_t)i, best);
        if (p->has_indices) ((int64_t *)operands[2])[i] = (int64_t)(plane * n_in) + best_at;
    }
}

// Returns the element of x that window position k covers at output o, in a plane; -1: padding.
static int64_t met(const struct ree_conv_params *p, const uint32_t o[3], const uint32_t k[3]) {
    int64_t flat = 0;
    for (uint32_t a = 0; a < 3; a++) {
        int64_t at;
        if (p->transposed) { // at * stride + k * dilation - pad = o
            int64_t scaled = (int64_t)o[a] + p->pad[a] - (int64_t)k[a] * p->dilation[a];
            if (scaled < 0 || scaled % p->stride[a] != 0) return -1;
            at = scaled / p->stride[a];
        } else {
            at = (int64_t)o[a] * p->stride[a] + (int64_t)k[a] * p->dilation[a] - p->pad[a];
        }
        if (at < 0 || at >= p->in[a]) return -1;
        flat = flat * p->in[a] + at;
    }
    return flat;
}

void reference_conv(const struct ree_conv_params *p, void *const *operands) {
    const float *x = operands[0], *w = operands[1];
    bool integer = p->x_dtype != REE_F32;
    uint32_t first = p->has_pad_value ? 3 : 2, n_tensors = 0;
    uint32_t pad =
        p->has_pad_value ? (uint32_t)reference_load((enum ree_dtype)p->x_dtype, operands[2], 0) : 0;
    for (uint32_t k = 0; p->has_epilogue && k < p->epilogue.n_operands; k++)
        n_tensors += p->epilogue.operands[k].kind == REE_EXPR_TENSOR;
    void *out = operands[first + n_tensors];
    uint64_t n_in = volume(p->in), n_out = volume(p->out), taps = volume(p->kernel);
    for (uint64_t i = 0; i < (uint64_t)p->n * p->groups * p->m * n_out; i++) {
        uint64_t channel = i / n_out % (p->groups * p->m), b = i / n_out / (p->groups * p->m);
        uint64_t g = channel / p->m, m = channel % p->m;
        uint32_t o[3], k[3];
        split(p->out, i % n_out, o);
        struct reference_sum sum;
        reference_sum_begin(&sum, false);
        uint32_t acc = 0;
        for (uint32_t c = 0; c < p->c; c++) {
            for (uint64_t t = 0; t < taps; t++) {
                split(p->kernel, t, k);
                int64_t at = met(p, o, k);
                uint64_t plane = (b * p->groups + g) * p->c + c;
                uint64_t w_at = p->transposed ? ((g * p->c + c) * p->m + m) * taps + t
                                              : (channel * p->c + c) * taps + t;
                int64_t from = (int64_t)(plane * n_in) + at;
                if (integer)
                    acc +=
                        (at < 0 ? pad
                                : (uint32_t)reference_load((enum ree_dtype)p->x_dtype, x, from)) *
                        (uint32_t)reference_load((enum ree_dtype)p->w_dtype, w, (int64_t)w_at);
                else
                    reference_sum_fma(&sum, at < 0 ? 0.0f : x[from], w[w_at]);
            }
        }
        uint32_t value = integer ? acc : reference_sum_end(sum);
        if (p->has_epilogue)
            reference_store((enum ree_dtype)p->epilogue.out_dtype, out, (int64_t)i,
                            reference_expr(&p->epilogue, operands + first, &value, i));
        else
            reference_store(integer ? REE_I32 : REE_F32, out, (int64_t)i, value);
    }
}

void reference_resize(const struct ree_resize_params *p, void *const *operands) {
    const float *x = operands[0], *w = operands[2];
    const int32_t *index = operands[1];
    for (uint64_t n = 0; n < (uint64_t)p->outer * p->k_out * p->inner; n++) {
        uint64_t o = n / p->inner / p->k_out, j = n / p->inner % p->k_out, i = n % p->inner;
        struct reference_sum sum;
        reference_sum_begin(&sum, false);
        bool extrapolated = p->taps > 0 && index[j * p->taps] == -1;
        for (uint32_t t = 0; t < p->taps && !extrapolated; t++) {
            uint64_t at = (o * p->k_in + (uint32_t)index[j * p->taps + t]) * p->inner + i;
            reference_sum_fma(&sum, w[j * p->taps + t], x[at]);
        }
        reference_store(REE_F32, operands[3], (int64_t)n,
                        extrapolated ? ree_bits(p->extrapolation) : reference_sum_end(sum));
    }
}
