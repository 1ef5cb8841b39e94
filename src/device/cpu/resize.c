// resize: out[o, j, i] = sum over t of w[j, t] * x[o, index[j, t], i], a dot product by the scheme,
// t ascending (NUMERICS.md section 3, resize).
#include "device/cpu/expr.h"
#include "repops/scalar/ops.h"

#include <inttypes.h>

struct job {
    const struct ree_resize_params *p;
    const struct ree_cpu_expr_kernels *kernels;
    const float *x;
    const int32_t *index; // (k_out, taps)
    const float *w;       // (k_out, taps)
    float *out;
    uint32_t row, width, n_tiles; // elements of a row, of a tile; tiles per row
};

struct rows {
    ree_any_u32 *acc, *total, *weights, *values;
};

// Adds the chunk to the total and starts the next one.
static void end_chunk(const struct job *job, uint32_t n, const struct rows *rows) {
    job->kernels->ops[REE_MAP_add_f32](n, rows->total, rows->acc, NULL, rows->total);
    job->kernels->fill32(n, 0, rows->acc);
}

static bool is_extrapolated(const struct job *job, uint32_t j) {
    return job->p->taps > 0 && job->index[(size_t)j * job->p->taps] == -1;
}

// Computes out[o, j, first ... first + n - 1] for inner > 1: a tap has one weight for the whole
// row.
static void along_inner(const struct job *job, uint64_t o, uint32_t j, uint32_t first, uint32_t n,
                        const struct rows *rows) {
    const struct ree_resize_params *p = job->p;
    const struct ree_cpu_expr_kernels *kernels = job->kernels;
    float *out = job->out + (o * p->k_out + j) * p->inner + first;
    uint32_t bits;
    if (is_extrapolated(job, j)) {
        memcpy(&bits, &p->extrapolation, 4);
        kernels->fill32(n, bits, rows->acc);
        kernels->stores[REE_CPU_STORE_F32](n, rows->acc, out);
        return;
    }
    kernels->fill32(n, 0, rows->total);
    kernels->fill32(n, 0, rows->acc);
    for (uint32_t t = 0; t < p->taps; t++) {
        size_t tap = (size_t)j * p->taps + t;
        if (t > 0 && t % REE_CHUNK == 0) end_chunk(job, n, rows);
        memcpy(&bits, &job->w[tap], 4);
        kernels->fill32(n, bits, rows->weights);
        const float *x = job->x + (o * p->k_in + (uint32_t)job->index[tap]) * p->inner + first;
        kernels->ops[REE_MAP_fma_f32](n, rows->weights, x, rows->acc, rows->acc);
    }
    end_chunk(job, n, rows); // acc is now +0, which is added last
    kernels->ops[REE_MAP_add_f32](n, rows->total, rows->acc, NULL, out);
}

// Computes out[o, first ... first + n - 1] for inner = 1: each output has its own weights and
// indices.
static void along_axis(const struct job *job, uint64_t o, uint32_t first, uint32_t n,
                       const struct rows *rows) {
    const struct ree_resize_params *p = job->p;
    const struct ree_cpu_expr_kernels *kernels = job->kernels;
    const float *x = job->x + o * p->k_in;
    float *out = job->out + o * p->k_out + first;
    const int32_t *index = job->index + (size_t)first * p->taps;
    kernels->fill32(n, 0, rows->total);
    kernels->fill32(n, 0, rows->acc);
    for (uint32_t t = 0; t < p->taps; t++) {
        if (t > 0 && t % REE_CHUNK == 0) end_chunk(job, n, rows);
        kernels->loads[REE_CPU_LOAD_B32](n, job->w + (size_t)first * p->taps + t, p->taps,
                                         rows->weights);
        for (uint32_t i = 0; i < n; i++) {
            int32_t at = index[(size_t)i * p->taps + t];
            rows->values[i] = at < 0 ? 0 : ree_bits(x[at]); // extrapolated outputs are set below
        }
        kernels->ops[REE_MAP_fma_f32](n, rows->weights, rows->values, rows->acc, rows->acc);
    }
    end_chunk(job, n, rows);
    kernels->ops[REE_MAP_add_f32](n, rows->total, rows->acc, NULL, out);
    float extrapolation = ree_cpu_canonical_nan(p->extrapolation);
    for (uint32_t i = 0; i < n; i++)
        if (is_extrapolated(job, first + i)) out[i] = extrapolation;
}

// Checks the indices once, outside the loops.
static enum ree_status check(const struct job *job, struct ree_error *err) {
    const struct ree_resize_params *p = job->p;
    for (uint32_t j = 0; j < p->k_out; j++) {
        bool extrapolated = is_extrapolated(job, j);
        for (uint32_t t = 0; t < p->taps; t++) {
            int32_t index = job->index[(size_t)j * p->taps + t];
            if (index < (extrapolated ? -1 : 0) || index >= (int64_t)p->k_in)
                return ree_fail(err, REE_INVALID,
                                "index %" PRId32 " is out of range [0, %" PRIu32 ")", index,
                                p->k_in);
        }
    }
    return REE_OK;
}

static void resize_items(const void *user, const struct ree_cpu_range *range) {
    const struct job *job = user;
    const struct ree_resize_params *p = job->p;
    const size_t block = REE_CPU_EXPR_BLOCK;
    ree_any_u32 *scratch = range->scratch[0];
    struct rows rows = {scratch, scratch + block, scratch + 2 * block, scratch + 3 * block};
    for (uint64_t item = range->begin; item < range->end; item++) {
        uint32_t first = (uint32_t)(item % job->n_tiles) * job->width;
        uint32_t n = job->row - first < job->width ? job->row - first : job->width;
        uint64_t at = item / job->n_tiles;
        if (p->inner == 1)
            along_axis(job, at, first, n, &rows);
        else
            along_inner(job, at / p->k_out, (uint32_t)(at % p->k_out), first, n, &rows);
    }
}

enum ree_status ree_cpu_resize(const struct ree_cpu_context *ctx, const struct ree_resize_params *p,
                               void *const *operands, struct ree_error *err) {
    uint64_t n_rows = (uint64_t)p->outer * (p->inner == 1 ? 1 : p->k_out);
    uint32_t row = p->inner == 1 ? p->k_out : p->inner;
    if (n_rows == 0 || row == 0) return REE_OK;
    struct job job = {
        .p = p,
        .kernels = ree_cpu_expr_kernels(ctx->isa),
        .x = operands[0],
        .index = operands[1],
        .w = operands[2],
        .out = operands[3],
        .row = row,
    };
    REE_TRY(check(&job, err));
    job.width = row < REE_CPU_EXPR_BLOCK ? row : REE_CPU_EXPR_BLOCK;
    job.n_tiles = (row + job.width - 1) / job.width;
    uint64_t n_items = n_rows * job.n_tiles;
    uint32_t n_threads = ree_cpu_threads_for(ctx, n_rows * row * (p->taps + 1ull));
    if (n_items == 1) n_threads = 1;
    REE_TRY(
        ree_cpu_scratch_reserve(ctx, n_threads, 0, 4 * REE_CPU_EXPR_BLOCK * sizeof(uint32_t), err));
    const struct ree_cpu_loop loop = {
        .n = n_items,
        .grain = 1,
        .n_threads = n_threads,
        .body = resize_items,
        .job = &job,
    };
    ree_cpu_run_loop(ctx, &loop);
    return REE_OK;
}
