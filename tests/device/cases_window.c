#include "cases.h"

// Returns the number of window positions along one axis that are inside the input, for output o.
static uint32_t hits(const struct ree_pool_params *p, uint32_t a, uint32_t o) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->kernel[a]; k++) {
        int64_t at = (int64_t)o * p->stride[a] + (int64_t)k * p->dilation[a] - p->pad_begin[a];
        n += at >= 0 && at < p->in[a];
    }
    return n;
}

bool case_pool(struct rng *rng, struct test_case *c) {
    case_begin(c, REE_REPOP_POOL);
    struct ree_pool_params *p = &c->dispatch.params.pool;
    p->kind = rng_below(rng, REE_POOL_SUM_SQ + 1);
    static const uint32_t dtypes[] = {REE_F32, REE_F32, REE_I8, REE_U8};
    p->dtype = p->kind == REE_POOL_MAX ? rng_of(rng, 4, dtypes) : REE_F32;
    p->planes = rng_one_in(rng, 40) ? 0 : 1 + rng_below(rng, 5);
    uint32_t n_axes = 1 + rng_below(rng, 3);
    bool long_windows = rng_one_in(rng, 6); // windows of more than a chunk
    uint64_t work = p->planes;
    for (uint32_t a = 0; a < 3; a++) {
        if (a < 3 - n_axes) {
            p->in[a] = p->kernel[a] = p->out[a] = p->stride[a] = p->dilation[a] = 1;
            continue;
        }
        p->kernel[a] = 1 + rng_below(rng, long_windows ? 20 : 4);
        p->stride[a] = 1 + rng_below(rng, 3);
        p->dilation[a] = 1 + rng_below(rng, 2);
        p->in[a] = 1 + rng_below(rng, n_axes == 3 ? 9 : 30);
        p->pad_begin[a] = (int32_t)rng_below(rng, p->kernel[a]);
        p->pad_end[a] = (int32_t)rng_below(rng, p->kernel[a]);
        int64_t span = (int64_t)p->in[a] + p->pad_begin[a] + p->pad_end[a] -
                       (int64_t)p->dilation[a] * (p->kernel[a] - 1) - 1;
        if (span < 0) return false;
        // Rounding the number of windows up adds one that extends beyond the input.
        bool up = rng_one_in(rng, 3) && span % p->stride[a] > 0;
        p->out[a] = (uint32_t)(span / p->stride[a]) + 1 + up;
        work *= (uint64_t)p->out[a] * p->kernel[a];
    }
    if (work > 1000000) return false;
    p->count_include_pad = rng_one_in(rng, 2);
    p->has_indices = p->kind == REE_POOL_MAX && rng_one_in(rng, 2);
    p->storage_order = rng_one_in(rng, 2);
    for (uint32_t a = 0; a < 3; a++)
        for (uint32_t o = 0; o < p->out[a]; o++)
            if (hits(p, a, o) == 0) p->has_indices = false; // there is no maximum
    uint64_t n_out = p->planes * case_count(3, p->out);
    case_input(c, rng, (enum ree_dtype)p->dtype, p->planes * case_count(3, p->in));
    case_output(c, rng, (enum ree_dtype)p->dtype, n_out);
    if (p->has_indices) case_output(c, rng, REE_I64, n_out);
    return true;
}

bool case_conv(struct rng *rng, struct test_case *c) {
    case_begin(c, REE_REPOP_CONV);
    struct ree_conv_params *p = &c->dispatch.params.conv;
    p->n = rng_one_in(rng, 40) ? 0 : 1 + rng_below(rng, 2);
    p->groups = rng_one_in(rng, 2) ? 1 : 1 + rng_below(rng, 4);
    p->c = 1 + rng_below(rng, rng_one_in(rng, 4) ? 70 : 6);
    p->m = 1 + rng_below(rng, rng_one_in(rng, 4) ? 40 : 6);
    p->transposed = rng_one_in(rng, 4);
    uint32_t n_axes = 1 + rng_below(rng, 3);
    // Depthwise layers with square kernels have special code.
    uint32_t square = rng_one_in(rng, 4) ? 3 + 2 * rng_below(rng, 2) : 0;
    uint32_t square_stride = 1 + rng_below(rng, 2);
    if (square) {
        p->groups = 1 + rng_below(rng, 8);
        p->c = 1;
        p->m = 1 + rng_below(rng, rng_one_in(rng, 4) ? 3 : 1);
        n_axes = 2;
    }
    uint64_t work = (uint64_t)p->n * p->groups * p->c * p->m;
    for (uint32_t a = 0; a < 3; a++) {
        if (a < 3 - n_axes) {
            p->in[a] = p->kernel[a] = p->out[a] = p->stride[a] = p->dilation[a] = 1;
            continue;
        }
        p->kernel[a] = 1 + rng_below(rng, 4);
        p->stride[a] = 1 + rng_below(rng, 3);
        p->dilation[a] = 1 + rng_below(rng, 2);
        if (square) {
            p->kernel[a] = square;
            p->stride[a] = square_stride;
            p->dilation[a] = 1;
        }
        p->in[a] = 1 + rng_below(rng, n_axes == 3 ? 7 : square ? 40 : 20);
        p->pad[a] = (int32_t)rng_below(rng, p->kernel[a] + 1);
        int64_t extent = (int64_t)p->dilation[a] * (p->kernel[a] - 1) + 1;
        int64_t pad_end = rng_below(rng, p->kernel[a] + 1);
        int64_t out = p->transposed
                          ? (int64_t)(p->in[a] - 1) * p->stride[a] + extent - p->pad[a] - pad_end
                          : (p->in[a] + p->pad[a] + pad_end - extent) / p->stride[a] + 1;
        if (out < 1 || p->in[a] + p->pad[a] + pad_end < extent) return false;
        p->out[a] = (uint32_t)out;
        work *= (uint64_t)p->out[a] * p->kernel[a];
    }
    if (work > 1500000) return false;
    uint64_t taps = case_count(3, p->kernel);
    p->x_dtype = p->w_dtype = REE_F32;
    if (!p->transposed && rng_one_in(rng, 2)) {
        p->x_dtype = rng_one_in(rng, 2) ? REE_I8 : REE_U8;
        p->w_dtype = rng_one_in(rng, 2) ? REE_I8 : REE_U8;
        p->has_pad_value = rng_one_in(rng, 2);
    }
    case_input(c, rng, (enum ree_dtype)p->x_dtype,
               (uint64_t)p->n * p->groups * p->c * case_count(3, p->in));
    case_input(c, rng, (enum ree_dtype)p->w_dtype, (uint64_t)p->groups * p->m * p->c * taps);
    if (p->has_pad_value) case_input(c, rng, (enum ree_dtype)p->x_dtype, 1);
    p->has_epilogue = rng_one_in(rng, 2);
    enum ree_dtype dtype = ree_conv_sum_dtype(p);
    uint32_t dims[5] = {p->n, p->groups * p->m, p->out[0], p->out[1], p->out[2]};
    if (p->has_epilogue) {
        case_expr(c, rng, &p->epilogue, 5, dims, true);
        dtype = (enum ree_dtype)p->epilogue.out_dtype;
    }
    case_output(c, rng, dtype, case_count(5, dims));
    return true;
}

bool case_resize(struct rng *rng, struct test_case *c) {
    case_begin(c, REE_REPOP_RESIZE);
    struct ree_resize_params *p = &c->dispatch.params.resize;
    p->outer = rng_one_in(rng, 40) ? 0 : 1 + rng_below(rng, 5);
    // 0: every output row is extrapolated
    p->k_in = rng_one_in(rng, 20) ? 0 : 1 + rng_below(rng, 40);
    p->k_out = 1 + rng_below(rng, rng_one_in(rng, 4) ? 1200 : 50);
    p->inner = rng_one_in(rng, 2) ? 1 : 1 + rng_below(rng, 60);
    p->taps = rng_one_in(rng, 10) ? case_length(rng) : 1 + rng_below(rng, 4);
    case_fill(rng, REE_F32, 1, &p->extrapolation);
    if ((uint64_t)p->outer * p->k_out * p->inner * (p->taps + 1) > 400000) return false;
    case_input(c, rng, REE_F32, (uint64_t)p->outer * p->k_in * p->inner);
    uint64_t n = (uint64_t)p->k_out * p->taps;
    int32_t *index = case_input(c, rng, REE_I32, n);
    bool outside = rng_one_in(rng, 3);
    for (uint64_t i = 0; i < n; i++) {
        index[i] = p->k_in > 0 ? (int32_t)rng_below(rng, p->k_in) : -1;
        if (outside && i % p->taps == 0 && rng_one_in(rng, 5)) index[i] = -1;
    }
    case_input(c, rng, REE_F32, n);
    case_output(c, rng, REE_F32, (uint64_t)p->outer * p->k_out * p->inner);
    return true;
}
