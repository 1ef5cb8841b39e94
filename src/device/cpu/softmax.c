// softmax: m = max x; e = exp(x - m); s = sum e; out = e / s, or (x - m) - log(s). Each step is
// rounded once; the sum follows the scheme (NUMERICS.md sections 3, 4 and 7).
#include "device/cpu/softmax.h"
#include "repops/scalar/ops.h"

#include <math.h>

struct job {
    const struct ree_softmax_params *p;
    const struct ree_cpu_expr_kernels *expr;
    const struct ree_cpu_reduce_kernels *reduce;
    const float *x;
    float *out;
    uint32_t at_once; // rows, or columns, per step
};

// Returns the size of a thread's scratch in bytes. For rows: the block of ree_cpu_rows_op and, for
// log-softmax, exp(x - m), because the output then holds x - m. For columns: four rows of values.
static size_t scratch_size(const struct job *job) {
    size_t e = job->p->log ? (size_t)job->at_once * job->p->k * sizeof(float) : 0;
    return 8 * REE_CPU_ROWS_BLOCK * sizeof(float) + (job->p->inner == 1 ? e : 0);
}

// zero_empty: for rows (or columns) whose values are all -inf, lift_empty sets m to 0 and sum_empty
// sets the sum to 1.
static void lift_empty(uint32_t n, float *max, bool *empty) {
    for (uint32_t i = 0; i < n; i++) {
        empty[i] = max[i] == -INFINITY;
        if (empty[i]) max[i] = 0;
    }
}

static void sum_empty(uint32_t n, const bool *empty, float *sum) {
    for (uint32_t i = 0; i < n; i++)
        if (empty[i]) sum[i] = 1;
}

// Returns how many elements of each row must be computed. The elements after them are -inf in all
// rows and become +0, because every maximum is finite. Returns k if a maximum is not finite, and
// for log-softmax. Causal masks and partly filled kv caches produce such rows.
static uint32_t used_length(const struct job *job, uint32_t n_rows, const float *x,
                            const float *max) {
    enum { STEP = 64 };
    uint32_t k = job->p->k, used = 0;
    if (job->p->log) return k;
    for (uint32_t r = 0; r < n_rows; r++)
        if (!(fabsf(max[r]) < INFINITY)) return k;
    for (uint32_t r = 0; r < n_rows; r++, x += k) {
        uint32_t end = k;
        while (end >= used + STEP) {
            uint32_t differ = 0;
            for (uint32_t i = end - STEP; i < end; i++)
                differ |= ree_bits(x[i]) ^ (REE_INF | REE_SIGN);
            if (differ) break;
            end -= STEP;
        }
        if (end > used) used = end;
    }
    return used;
}

// Computes exp(x - max) of n_rows rows, in e. Only the first `used` elements of a row may differ
// from +0.
static void exp_rows(const struct job *job, uint32_t n_rows, uint32_t used, const float *x,
                     const float *max, float *out, float *e, float *block) {
    uint32_t k = job->p->k;
    if (used == k) {
        ree_cpu_rows_op(job->expr, REE_MAP_sub_f32, n_rows, k, x, max, out, block);
        job->expr->ops[REE_MAP_exp_f32]((size_t)n_rows * k, out, NULL, NULL, e);
        return;
    }
    for (uint32_t r = 0; r < n_rows; r++, x += k, out += k) {
        ree_cpu_rows_op(job->expr, REE_MAP_sub_f32, 1, used, x, &max[r], out, block);
        job->expr->ops[REE_MAP_exp_f32](used, out, NULL, NULL, out);
        memset(out + used, 0, (k - used) * sizeof *out);
    }
}

static void softmax_rows(const struct job *job, uint32_t begin, uint32_t end, void *scratch) {
    uint32_t k = job->p->k;
    float *block = scratch, *logs_e = block + REE_CPU_ROWS_BLOCK;
    for (uint32_t row = begin; row < end; row += job->at_once) {
        uint32_t n_rows = end - row < job->at_once ? end - row : job->at_once;
        const float *x = job->x + (size_t)row * k;
        float *out = job->out + (size_t)row * k;
        float *e = job->p->log ? logs_e : out;
        float max[REE_CPU_LANES], sum[REE_CPU_LANES];
        const float *rows[REE_CPU_LANES];
        bool empty[REE_CPU_LANES];
        for (uint32_t r = 0; r < n_rows; r++) {
            max[r] = ree_float(job->expr->max_f32(k, x + (size_t)r * k));
            rows[r] = e + (size_t)r * k;
        }
        if (job->p->zero_empty) lift_empty(n_rows, max, empty);
        uint32_t used = used_length(job, n_rows, x, max);
        exp_rows(job, n_rows, used, x, max, out, e, block);
        ree_cpu_reduce_rows(job->reduce, REE_REDUCE_SUM, rows, n_rows, used, sum);
        if (job->p->zero_empty) sum_empty(n_rows, empty, sum);
        if (job->p->log) job->expr->ops[REE_MAP_log_f32](n_rows, sum, NULL, NULL, sum);
        if (used < k) { // +0 divided by a sum of 1 or more stays +0
            for (uint32_t r = 0; r < n_rows; r++)
                ree_cpu_rows_op(job->expr, REE_MAP_div_f32, 1, used, out + (size_t)r * k, &sum[r],
                                out + (size_t)r * k, block);
            continue;
        }
        ree_cpu_rows_op(job->expr, job->p->log ? REE_MAP_sub_f32 : REE_MAP_div_f32, n_rows, k, out,
                        sum, out, block);
    }
}

// Computes a block of neighbouring columns of one (k, inner) matrix.
static void softmax_columns(const struct job *job, uint64_t item, void *scratch) {
    uint32_t k = job->p->k, inner = job->p->inner, width = job->at_once;
    uint32_t n_tiles = (inner + width - 1) / width;
    uint32_t first = (uint32_t)(item % n_tiles) * width;
    uint32_t n = inner - first < width ? inner - first : width;
    size_t start = (size_t)(item / n_tiles) * k * inner + first;
    const float *x = job->x + start;
    float *out = job->out + start;
    float *max = scratch, *chunk = max + REE_CPU_ROWS_BLOCK, *sum = chunk + REE_CPU_ROWS_BLOCK;
    float *e = sum + REE_CPU_ROWS_BLOCK;
    bool empty[REE_CPU_EXPR_BLOCK];
    const struct ree_cpu_expr_kernels *kernels = job->expr;

    memcpy(max, x, n * sizeof *x);
    for (uint32_t i = 1; i < k; i++)
        kernels->ops[REE_MAP_max_f32](n, max, x + (size_t)i * inner, NULL, max);
    if (job->p->zero_empty) lift_empty(n, max, empty);
    kernels->fill32(n, 0, sum);
    for (uint32_t begin = 0; begin < k; begin += REE_CHUNK) {
        kernels->fill32(n, 0, chunk);
        for (uint32_t i = begin; i < k && i < begin + REE_CHUNK; i++) {
            float *d = out + (size_t)i * inner, *to = job->p->log ? e : d;
            kernels->ops[REE_MAP_sub_f32](n, x + (size_t)i * inner, max, NULL, d);
            kernels->ops[REE_MAP_exp_f32](n, d, NULL, NULL, to);
            kernels->ops[REE_MAP_add_f32](n, chunk, to, NULL, chunk);
        }
        kernels->ops[REE_MAP_add_f32](n, sum, chunk, NULL, sum);
    }
    if (job->p->zero_empty) sum_empty(n, empty, sum);
    if (job->p->log) kernels->ops[REE_MAP_log_f32](n, sum, NULL, NULL, sum);
    for (uint32_t i = 0; i < k; i++) {
        float *d = out + (size_t)i * inner;
        kernels->ops[job->p->log ? REE_MAP_sub_f32 : REE_MAP_div_f32](n, d, sum, NULL, d);
    }
}

static void softmax_items(const void *user, const struct ree_cpu_range *range) {
    const struct job *job = user;
    void *scratch = range->scratch[0];
    if (job->p->inner == 1) {
        softmax_rows(job, (uint32_t)range->begin, (uint32_t)range->end, scratch);
        return;
    }
    for (uint64_t item = range->begin; item < range->end; item++)
        softmax_columns(job, item, scratch);
}

enum ree_status ree_cpu_softmax(const struct ree_cpu_context *ctx,
                                const struct ree_softmax_params *p, void *const *operands,
                                struct ree_error *err) {
    uint64_t n_rows = (uint64_t)p->outer * p->inner;
    if (n_rows == 0 || p->k == 0) return REE_OK;
    struct job job = {
        .p = p,
        .expr = ree_cpu_expr_kernels(ctx->isa),
        .reduce = ree_cpu_reduce_kernels(ctx->isa),
        .x = operands[0],
        .out = operands[1],
        .at_once = ree_cpu_rows_at_once(p->k),
    };
    uint64_t n_items = p->outer;
    if (p->inner > 1) {
        uint32_t width = p->k < 1024 ? 65536 / p->k : 64;
        job.at_once = width > REE_CPU_EXPR_BLOCK ? REE_CPU_EXPR_BLOCK : width;
        n_items *= (p->inner + job.at_once - 1) / job.at_once;
    }
    uint32_t n_threads = ree_cpu_threads_for(ctx, n_rows * (p->k + 16) * 3);
    if (n_items == 1) n_threads = 1;
    REE_TRY(ree_cpu_scratch_reserve(ctx, n_threads, 0, scratch_size(&job), err));
    const struct ree_cpu_loop loop = {
        .n = n_items,
        .grain = 1,
        .n_threads = n_threads,
        .body = softmax_items,
        .job = &job,
    };
    ree_cpu_run_loop(ctx, &loop);
    return REE_OK;
}
