// norm: m = sum(x) / n; d = x - m; v = sum(d * d) / n; out = d / sqrt(v + eps) * scale + bias, for
// each row x of n numbers; for RMS, d = x. Each step is rounded once; sums and squares follow the
// scheme (NUMERICS.md sections 3 and 4).
#include "device/cpu/softmax.h"
#include "repops/scalar/ops.h"

struct job {
    const struct ree_norm_params *p;
    const struct ree_cpu_expr_kernels *expr;
    const struct ree_cpu_reduce_kernels *reduce;
    const float *x, *scale, *bias; // scale, bias: NULL if absent
    float *out;
};

// y = op(y, w[offset of the row + column * stride]), where w is scale or bias.
static void affine(const struct job *job, enum ree_map_op op, uint32_t row, const float *w,
                   float *y, float *block) {
    const struct ree_norm_params *p = job->p;
    uint32_t row_index = row / p->scale_row_div % p->scale_row_mod;
    w += (size_t)row_index * p->scale_row_stride;
    uint32_t stride = p->scale_col_stride;
    if (stride == 1) {
        job->expr->ops[op](p->cols, y, w, NULL, y);
        return;
    }
    for (uint32_t i = 0, n; i < p->cols; i += n) {
        n = p->cols - i < REE_CPU_ROWS_BLOCK ? p->cols - i : REE_CPU_ROWS_BLOCK;
        job->expr->loads[REE_CPU_LOAD_B32](n, w + (size_t)i * stride, stride, block);
        job->expr->ops[op](n, y + i, block, NULL, y + i);
    }
}

static void norm_rows(const void *user, const struct ree_cpu_range *range) {
    const struct job *job = user;
    const struct ree_norm_params *p = job->p;
    uint32_t n = p->cols, at_once = ree_cpu_rows_at_once(n);
    uint32_t begin = (uint32_t)range->begin, end = (uint32_t)range->end;
    float *block = range->scratch[0];
    float count = (float)n;
    for (uint32_t row = begin; row < end; row += at_once) {
        uint32_t n_rows = end - row < at_once ? end - row : at_once;
        const float *x = job->x + (size_t)row * n;
        float *out = job->out + (size_t)row * n;
        const float *rows[REE_CPU_LANES];
        float value[REE_CPU_LANES];
        for (uint32_t r = 0; r < n_rows; r++)
            rows[r] = x + (size_t)r * n;
        const float *d = x;
        if (!p->rms) {
            ree_cpu_reduce_rows(job->reduce, REE_REDUCE_SUM, rows, n_rows, n, value);
            for (uint32_t r = 0; r < n_rows; r++) {
                value[r] = ree_cpu_canonical_nan(value[r] / count);
                rows[r] = out + (size_t)r * n;
            }
            ree_cpu_rows_op(job->expr, REE_MAP_sub_f32, n_rows, n, x, value, out, block);
            d = out;
        }
        ree_cpu_reduce_rows(job->reduce, REE_REDUCE_SUM_SQ, rows, n_rows, n, value);
        for (uint32_t r = 0; r < n_rows; r++) {
            uint32_t v = ree_bits(value[r] / count);
            value[r] = ree_float(ree_op_sqrt_f32(ree_op_add_f32(v, ree_bits(p->epsilon))));
        }
        ree_cpu_rows_op(job->expr, REE_MAP_div_f32, n_rows, n, d, value, out, block);
        for (uint32_t r = 0; r < n_rows; r++) {
            float *y = out + (size_t)r * n;
            if (job->scale) affine(job, REE_MAP_mul_f32, row + r, job->scale, y, block);
            if (job->bias) affine(job, REE_MAP_add_f32, row + r, job->bias, y, block);
        }
    }
}

enum ree_status ree_cpu_norm(const struct ree_cpu_context *ctx, const struct ree_norm_params *p,
                             void *const *operands, struct ree_error *err) {
    if (p->rows == 0 || p->cols == 0) return REE_OK;
    uint32_t next = 1;
    struct job job = {
        .p = p,
        .expr = ree_cpu_expr_kernels(ctx->isa),
        .reduce = ree_cpu_reduce_kernels(ctx->isa),
        .x = operands[0],
    };
    job.scale = p->has_scale ? operands[next++] : NULL;
    job.bias = p->has_bias ? operands[next++] : NULL;
    job.out = operands[next];
    uint32_t n_threads = ree_cpu_threads_for(ctx, (uint64_t)p->rows * (p->cols + 16) * 3 / 2);
    if (p->rows == 1) n_threads = 1;
    REE_TRY(ree_cpu_scratch_reserve(ctx, n_threads, 0, REE_CPU_ROWS_BLOCK * sizeof(float), err));
    const struct ree_cpu_loop loop = {
        .n = p->rows,
        .grain = 1,
        .n_threads = n_threads,
        .body = norm_rows,
        .job = &job,
    };
    ree_cpu_run_loop(ctx, &loop);
    return REE_OK;
}
