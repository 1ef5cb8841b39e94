// reduce, matmul and scan over float64: the schemes of NUMERICS.md section 3 in binary64, term by
// term. Threads divide the outputs. Only the bits matter here, not the speed.
#include "device/cpu/float64.h"

#include "device/cpu/matmul.h"
#include "device/cpu/reduce.h"
#include "repops/scalar/ops.h"

static double result(double x) {
    return ree_from_double_bits(ree_double_result(x));
}

// The state of a chunked sum or product.
struct chain {
    bool product;
    uint32_t n; // terms so far
    double total, chunk;
};

static struct chain chain_begin(bool product) {
    double start = product ? 1 : 0;
    return (struct chain){.product = product, .total = start, .chunk = start};
}

// Totals start with the neutral element. For a sum, 0 + p differs from the first chunk's result p
// only if p is -0, and the final + 0 would turn that into +0 anyway. For a product, 1 * p has the
// bits of p.
static double chain_total(const struct chain *c) {
    return c->product ? c->total * c->chunk : c->total + c->chunk;
}

static void chain_next(struct chain *c) {
    if (c->n > 0 && c->n % REE_CHUNK == 0) {
        c->total = chain_total(c);
        c->chunk = c->product ? 1 : 0;
    }
    c->n++;
}

static void chain_add(struct chain *c, double x) {
    chain_next(c);
    c->chunk = c->product ? c->chunk * x : c->chunk + x;
}

static void chain_fma(struct chain *c, double a, double b) {
    chain_next(c);
    c->chunk = fma(a, b, c->chunk);
}

// Reduce

struct search { // for ARGMAX and ARGMIN; index -1: no term yet
    uint64_t best;
    int64_t index;
};

static bool better(bool max, uint64_t x, uint64_t best) {
    if (ree_f64_is_nan(best)) return false;
    if (ree_f64_is_nan(x)) return true;
    return (max ? ree_f64_lt(best, x) : ree_f64_lt(x, best)) != 0;
}

static void search_next(struct search *s, const struct ree_reduce_params *p, uint64_t x,
                        uint32_t index) {
    bool max = p->kind == REE_REDUCE_ARGMAX;
    bool takes = s->index < 0 || better(max, x, s->best);
    if (p->select_last && !takes) takes = !better(max, s->best, x) && !ree_f64_is_nan(s->best);
    if (takes) *s = (struct search){x, index};
}

static void reduce_output(const struct ree_cpu_reduce_plan *plan, uint32_t o, void *buffer) {
    const struct ree_reduce_params *p = plan->params;
    const char *row = plan->x + ree_cpu_reduce_offset(plan->outer_rank, plan->outer_dims,
                                                      plan->outer_strides, o) *
                                    (int64_t)sizeof(double);
    struct chain chain = chain_begin(p->kind == REE_REDUCE_PROD);
    struct search search = {.index = -1};
    uint64_t extreme = ree_double_bits(p->kind == REE_REDUCE_MAX ? -INFINITY : INFINITY);
    for (uint32_t first = 0; first < plan->n_reduce; first += REE_CHUNK) {
        uint32_t n = plan->n_reduce - first < REE_CHUNK ? plan->n_reduce - first : REE_CHUNK;
        const double *x = ree_cpu_reduce_terms(plan, row, first, n, buffer);
        for (uint32_t i = 0; i < n; i++) {
            switch (p->kind) {
            case REE_REDUCE_SUM:
            case REE_REDUCE_PROD: chain_add(&chain, x[i]); break;
            case REE_REDUCE_SUM_SQ: chain_fma(&chain, x[i], x[i]); break;
            case REE_REDUCE_SUM_ABS: chain_add(&chain, fabs(x[i])); break;
            case REE_REDUCE_MAX: extreme = ree_f64_max(extreme, ree_double_bits(x[i])); break;
            case REE_REDUCE_MIN: extreme = ree_f64_min(extreme, ree_double_bits(x[i])); break;
            default: search_next(&search, p, ree_double_bits(x[i]), first + i);
            }
        }
    }
    switch (p->kind) {
    case REE_REDUCE_PROD: ((double *)plan->out)[o] = result(chain_total(&chain)); break;
    case REE_REDUCE_MAX:
    case REE_REDUCE_MIN: ((uint64_t *)plan->out)[o] = extreme; break;
    case REE_REDUCE_ARGMAX:
    case REE_REDUCE_ARGMIN: ((int64_t *)plan->out)[o] = search.index < 0 ? 0 : search.index; break;
    default: ((double *)plan->out)[o] = result(chain_total(&chain) + 0.0);
    }
}

static void reduce_outputs(const void *user, const struct ree_cpu_range *range) {
    for (uint64_t o = range->begin; o < range->end; o++)
        reduce_output(user, (uint32_t)o, range->scratch[0]);
}

enum ree_status ree_cpu_reduce_f64(const struct ree_cpu_context *ctx,
                                   const struct ree_cpu_reduce_plan *plan, struct ree_error *err) {
    uint32_t n_threads = ree_cpu_threads_for(ctx, (uint64_t)plan->n_outer * plan->n_reduce * 4);
    if (plan->n_outer == 1) n_threads = 1;
    REE_TRY(ree_cpu_scratch_reserve(ctx, n_threads, 0, REE_CHUNK * sizeof(double), err));
    const struct ree_cpu_loop loop = {
        .n = plan->n_outer,
        .grain = 1,
        .n_threads = n_threads,
        .body = reduce_outputs,
        .job = plan,
    };
    ree_cpu_run_loop(ctx, &loop);
    return REE_OK;
}

// Matmul

struct product {
    const struct ree_matmul_params *p;
    const double *a, *b;
    double *out;
};

static void multiply_rows(const void *user, const struct ree_cpu_range *range) {
    const struct product *job = user;
    const struct ree_matmul_params *p = job->p;
    int64_t a_strides[REE_MAX_RANK], b_strides[REE_MAX_RANK];
    for (uint32_t i = 0; i < p->batch_rank; i++) {
        a_strides[i] = p->a_batch_strides[i];
        b_strides[i] = p->b_batch_strides[i];
    }
    for (uint64_t row = range->begin; row < range->end; row++) {
        uint32_t batch = (uint32_t)(row / p->m), i = (uint32_t)(row % p->m);
        const double *x = job->a + p->a_offset + (int64_t)i * p->a_stride_m +
                          ree_batch_offset(p->batch_rank, p->batch_dims, a_strides, batch);
        const double *y =
            job->b + p->b_offset + ree_batch_offset(p->batch_rank, p->batch_dims, b_strides, batch);
        for (uint32_t j = 0; j < p->n; j++) {
            struct chain chain = chain_begin(false);
            for (uint32_t l = 0; l < p->k; l++)
                chain_fma(&chain, x[(int64_t)l * p->a_stride_k],
                          y[(int64_t)l * p->b_stride_k + (int64_t)j * p->b_stride_n]);
            job->out[row * p->n + j] = result(chain_total(&chain) + 0.0);
        }
    }
}

void ree_cpu_matmul_f64(const struct ree_cpu_context *ctx, const struct ree_matmul_params *p,
                        const double *a, const double *b, double *out) {
    const struct product job = {p, a, b, out};
    uint64_t n_rows = (uint64_t)p->n_batch * p->m;
    const struct ree_cpu_loop loop = {
        .n = n_rows,
        .grain = 1,
        .n_threads = ree_cpu_threads_for(ctx, n_rows * p->n * p->k * 2),
        .body = multiply_rows,
        .job = &job,
    };
    ree_cpu_run_loop(ctx, &loop);
}

// Scan

struct scan {
    const struct ree_scan_params *p;
    const double *x;
    double *out;
};

static void scan_vectors(const void *user, const struct ree_cpu_range *range) {
    const struct scan *job = user;
    const struct ree_scan_params *p = job->p;
    for (uint64_t vector = range->begin; vector < range->end; vector++) {
        uint64_t start = vector / p->inner * p->k * p->inner + vector % p->inner;
        struct chain chain = chain_begin(p->product != 0);
        for (uint32_t j = 0; j < p->k; j++) {
            uint64_t at = start + (uint64_t)(p->reverse ? p->k - 1 - j : j) * p->inner;
            double term = job->x[at];
            if (p->exclusive) job->out[at] = result(chain_total(&chain));
            chain_add(&chain, term);
            if (!p->exclusive) job->out[at] = result(chain_total(&chain));
        }
    }
}

void ree_cpu_scan_f64(const struct ree_cpu_context *ctx, const struct ree_scan_params *p,
                      const double *x, double *out) {
    const struct scan job = {p, x, out};
    uint64_t n_vectors = (uint64_t)p->outer * p->inner;
    const struct ree_cpu_loop loop = {
        .n = n_vectors,
        .grain = 1,
        .n_threads = ree_cpu_threads_for(ctx, n_vectors * p->k * 4),
        .body = scan_vectors,
        .job = &job,
    };
    ree_cpu_run_loop(ctx, &loop);
}
