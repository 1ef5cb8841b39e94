// matmul of 32-bit and 64-bit integers: out(b, i, j) = sum over l of a(b, i, l) * b(b, l, j). Sums
// wrap, so their order is irrelevant, and signed types use the code of unsigned ones.
#include "device/cpu/matmul.h"

#define BLOCK 1024 // columns whose sums are computed together

#define DEFINE_ROW(type)                                                                           \
    static void row_##type(const struct ree_matmul_params *p, uint32_t begin, uint32_t count,      \
                           const type *a, const type *b, type *out) {                              \
        for (uint32_t j0 = begin; j0 < begin + count; j0 += BLOCK) {                               \
            uint32_t n = begin + count - j0 < BLOCK ? begin + count - j0 : BLOCK;                  \
            type sums[BLOCK] = {0};                                                                \
            for (uint32_t l = 0; l < p->k; l++) {                                                  \
                type x = a[(int64_t)l * p->a_stride_k];                                            \
                const type *bl = b + (int64_t)l * p->b_stride_k + (int64_t)j0 * p->b_stride_n;     \
                if (p->b_stride_n == 1)                                                            \
                    for (uint32_t j = 0; j < n; j++)                                               \
                        sums[j] += x * bl[j];                                                      \
                else                                                                               \
                    for (uint32_t j = 0; j < n; j++)                                               \
                        sums[j] += x * bl[(int64_t)j * p->b_stride_n];                             \
            }                                                                                      \
            memcpy(out + (j0 - begin), sums, n * sizeof(type));                                    \
        }                                                                                          \
    }
DEFINE_ROW(uint32_t)
DEFINE_ROW(uint64_t)

struct job {
    const struct ree_matmul_params *p;
    const void *a, *b;
    const struct ree_matmul_output *output;
};

static void multiply_rows(const void *user, const struct ree_cpu_range *range) {
    const struct job *job = user;
    const struct ree_matmul_params *p = job->p;
    char *out = job->output->out;
    int64_t a_strides[REE_MAX_RANK], b_strides[REE_MAX_RANK];
    for (uint32_t i = 0; i < p->batch_rank; i++) {
        a_strides[i] = p->a_batch_strides[i];
        b_strides[i] = p->b_batch_strides[i];
    }
    bool wide = ree_dtype_size(p->dtype) == 8;
    for (uint64_t row = range->begin; row < range->end; row++) {
        uint32_t batch = (uint32_t)(row / p->m), i = (uint32_t)(row % p->m);
        int64_t at_a = p->a_offset + (int64_t)i * p->a_stride_m +
                       ree_batch_offset(p->batch_rank, p->batch_dims, a_strides, batch);
        int64_t at_b =
            p->b_offset + ree_batch_offset(p->batch_rank, p->batch_dims, b_strides, batch);
        if (wide) {
            row_uint64_t(p, 0, p->n, (const uint64_t *)job->a + at_a,
                         (const uint64_t *)job->b + at_b, (uint64_t *)(void *)out + row * p->n);
            continue;
        }
        const uint32_t *a = (const uint32_t *)job->a + at_a, *b = (const uint32_t *)job->b + at_b;
        if (!job->output->epilogue) {
            row_uint32_t(p, 0, p->n, a, b, (uint32_t *)(void *)out + row * p->n);
            continue;
        }
        for (uint32_t j = 0; j < p->n; j += BLOCK) {
            uint32_t n = p->n - j < BLOCK ? p->n - j : BLOCK, sums[BLOCK];
            row_uint32_t(p, j, n, a, b, sums);
            ree_matmul_write(job->output, sums, (uint32_t)(row * p->n) + j, n);
        }
    }
}

void ree_matmul_integer(const struct ree_cpu_context *ctx, const struct ree_matmul_params *p,
                        const void *a, const void *b, const struct ree_matmul_output *output) {
    const struct job job = {p, a, b, output};
    uint64_t n_rows = (uint64_t)p->n_batch * p->m;
    const struct ree_cpu_loop loop = {
        .n = n_rows,
        .grain = 1,
        .n_threads = ree_cpu_threads_for(ctx, n_rows * p->n * p->k / 2),
        .body = multiply_rows,
        .job = &job,
    };
    ree_cpu_run_loop(ctx, &loop);
}
