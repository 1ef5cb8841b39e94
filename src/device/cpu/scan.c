// scan: out[j] = the sum (or product) of terms 0 ... j by the scheme: the chunks before j's chunk,
// then j's chunk up to j (NUMERICS.md section 3).
//
// Adjacent vectors (inner > 1) use the loops of expressions, one row of terms at a time. A single
// vector is computed term by term.
#include "device/cpu/expr.h"
#include "device/cpu/float64.h"
#include "repops/scalar/ops.h"

struct job {
    const struct ree_scan_params *p;
    const struct ree_cpu_expr_kernels *kernels;
    const char *x;
    char *out;
    size_t size;
    uint32_t op;    // combines two terms
    uint64_t start; // value without terms
};

#define DEFINE_VECTOR(T, join)                                                                     \
    static void vector_##T(const struct job *job, const T *x, T *out) {                            \
        const struct ree_scan_params *p = job->p;                                                  \
        T total = (T)job->start, acc = (T)job->start;                                              \
        for (uint32_t j = 0; j < p->k; j++) {                                                      \
            uint32_t at = p->reverse ? p->k - 1 - j : j;                                           \
            T before = join(total, acc);                                                           \
            if (j > 0 && j % REE_CHUNK == 0) {                                                     \
                total = before;                                                                    \
                acc = (T)job->start;                                                               \
            }                                                                                      \
            acc = join(acc, x[at]);                                                                \
            out[at] = p->exclusive ? before : join(total, acc);                                    \
        }                                                                                          \
    }
#define JOIN(a, b) (p->product ? (a) * (b) : (a) + (b))
DEFINE_VECTOR(uint32_t, JOIN)
DEFINE_VECTOR(uint64_t, JOIN)

// Sums require no final + 0, because neither total nor acc is ever -0.
static void vector_float(const struct job *job, const float *x, float *out) {
    const struct ree_scan_params *p = job->p;
    float start = p->product ? 1.0f : 0.0f, total = start, acc = start;
    for (uint32_t j = 0; j < p->k; j++) {
        uint32_t at = p->reverse ? p->k - 1 - j : j;
        float before = JOIN(total, acc);
        if (j > 0 && j % REE_CHUNK == 0) {
            total = before;
            acc = start;
        }
        acc = JOIN(acc, x[at]);
        out[at] = ree_cpu_canonical_nan(p->exclusive ? before : JOIN(total, acc));
    }
}

static void fill_start(const struct job *job, uint32_t n, void *out) {
    if (job->size == 8)
        job->kernels->fill64(n, job->start, out);
    else
        job->kernels->fill32(n, (uint32_t)job->start, out);
}

// Scans `width` adjacent vectors, starting with column `first` of matrix `outer`.
static void scan_columns(const struct job *job, uint64_t outer, uint32_t first, uint32_t width,
                         char *scratch) {
    const struct ree_scan_params *p = job->p;
    void (*join)(size_t, const void *, const void *, const void *, void *) =
        job->kernels->ops[job->op];
    size_t start = (outer * p->k * p->inner + first) * job->size, step = p->inner * job->size;
    const char *x = job->x + start;
    char *out = job->out + start;
    char *total = scratch, *acc = total + REE_CPU_EXPR_BLOCK * 8;
    fill_start(job, width, total);
    fill_start(job, width, acc);
    for (uint32_t j = 0; j < p->k; j++) {
        size_t at = (p->reverse ? p->k - 1 - j : j) * step;
        if (j > 0 && j % REE_CHUNK == 0) {
            join(width, total, acc, NULL, total);
            fill_start(job, width, acc);
        }
        if (p->exclusive) join(width, total, acc, NULL, out + at);
        join(width, acc, x + at, NULL, acc);
        if (!p->exclusive) join(width, total, acc, NULL, out + at);
    }
}

static void scan_vector(const struct job *job, uint64_t outer) {
    size_t start = outer * job->p->k * job->size;
    const void *x = job->x + start;
    void *out = job->out + start;
    if (job->p->dtype == REE_F32)
        vector_float(job, x, out);
    else if (job->size == 8)
        vector_uint64_t(job, x, out);
    else
        vector_uint32_t(job, x, out);
}

// Returns the number of blocks of columns in a row.
static uint32_t tiles_across(uint32_t inner) {
    return (inner + REE_CPU_EXPR_BLOCK - 1) / REE_CPU_EXPR_BLOCK;
}

static void scan_items(const void *user, const struct ree_cpu_range *range) {
    const struct job *job = user;
    const uint32_t inner = job->p->inner;
    for (uint64_t item = range->begin; item < range->end; item++) {
        if (inner == 1) {
            scan_vector(job, item);
            continue;
        }
        uint32_t n_tiles = tiles_across(inner);
        uint32_t first = (uint32_t)(item % n_tiles) * REE_CPU_EXPR_BLOCK;
        uint32_t width = inner - first < REE_CPU_EXPR_BLOCK ? inner - first : REE_CPU_EXPR_BLOCK;
        scan_columns(job, item / n_tiles, first, width, range->scratch[0]);
    }
}

enum ree_status ree_cpu_scan(const struct ree_cpu_context *ctx, const struct ree_scan_params *p,
                             void *const *operands, struct ree_error *err) {
    if (p->outer == 0 || p->k == 0 || p->inner == 0) return REE_OK;
    if (p->dtype == REE_F64) {
        ree_cpu_scan_f64(ctx, p, operands[0], operands[1]);
        return REE_OK;
    }
    struct job job = {
        .p = p,
        .kernels = ree_cpu_expr_kernels(ctx->isa),
        .x = operands[0],
        .out = operands[1],
        .size = ree_dtype_size((enum ree_dtype)p->dtype),
        .start = p->product ? 1 : 0,
    };
    if (p->dtype == REE_F32) {
        job.op = p->product ? REE_MAP_mul_f32 : REE_MAP_add_f32;
        if (p->product) job.start = ree_bits(1.0f);
    } else if (job.size == 8) {
        job.op = p->product ? REE_MAP_mul_i64 : REE_MAP_add_i64;
    } else {
        job.op = p->product ? REE_MAP_mul_i32 : REE_MAP_add_i32;
    }
    uint64_t n_items = (uint64_t)p->outer * tiles_across(p->inner);
    uint64_t n_terms = (uint64_t)p->outer * p->k * p->inner;
    uint32_t n_threads = ree_cpu_threads_for(ctx, n_terms * 2);
    if (n_items == 1) n_threads = 1;
    REE_TRY(ree_cpu_scratch_reserve(ctx, n_threads, 0, 2 * REE_CPU_EXPR_BLOCK * 8, err));
    const struct ree_cpu_loop loop = {
        .n = n_items,
        .grain = 1,
        .n_threads = n_threads,
        .body = scan_items,
        .job = &job,
    };
    ree_cpu_run_loop(ctx, &loop);
    return REE_OK;
}
