// reduce: out[o] = ((p0 + p1) + p2) + ... + 0, where p_c is the sum of chunk c of 256 terms, in
// order (NUMERICS.md section 3); maxima, integer sums and positions in any order.
#include "device/cpu/reduce.h"

const struct ree_cpu_reduce_kernels *ree_cpu_reduce_kernels(enum ree_cpu_isa isa) {
    switch (isa) {
#ifdef REE_CPU_HAVE_AVX512
    case REE_CPU_AVX512: return &ree_cpu_reduce_kernels_avx512;
#endif
#ifdef REE_CPU_HAVE_AVX2
    case REE_CPU_AVX2: return &ree_cpu_reduce_kernels_avx2;
#endif
    default: return &ree_cpu_reduce_kernels_portable;
    }
}

// If a row has at least this many whole chunks, the lanes of a vector hold chunks of one row;
// otherwise, chunks of several rows.
#define MANY_CHUNKS 8

#define SCRATCH_SIZE ((size_t)REE_CPU_LANES * REE_CHUNK * 8) // bytes per thread, for terms

void ree_cpu_reduce_rows(const struct ree_cpu_reduce_kernels *kernels, uint32_t kind,
                         const float *const *rows, uint32_t n_rows, uint32_t n, float *out) {
    const float *lanes[REE_CPU_LANES];
    float sums[REE_CPU_LANES], totals[REE_CPU_LANES];
    uint32_t n_whole = n / REE_CHUNK, tail = n % REE_CHUNK;
    for (uint32_t r = 0; r < n_rows; r++)
        totals[r] = ree_cpu_reduce_start(kind);
    if (n_whole >= MANY_CHUNKS) {
        for (uint32_t r = 0; r < n_rows; r++) {
            for (uint32_t c = 0; c < n_whole; c += REE_CPU_LANES) {
                // Lanes without a chunk repeat the last one; their results are ignored.
                for (uint32_t l = 0; l < REE_CPU_LANES; l++)
                    lanes[l] =
                        rows[r] + (size_t)(c + l < n_whole ? c + l : n_whole - 1) * REE_CHUNK;
                kernels->lanes[kind](lanes, REE_CHUNK, sums);
                for (uint32_t l = 0; l < REE_CPU_LANES && c + l < n_whole; l++)
                    totals[r] = ree_cpu_reduce_join(kind, totals[r], sums[l]);
            }
        }
    } else {
        for (uint32_t c = 0; c < n_whole; c++) {
            for (uint32_t l = 0; l < REE_CPU_LANES; l++)
                lanes[l] = rows[l < n_rows ? l : n_rows - 1] + (size_t)c * REE_CHUNK;
            kernels->lanes[kind](lanes, REE_CHUNK, sums);
            for (uint32_t r = 0; r < n_rows; r++)
                totals[r] = ree_cpu_reduce_join(kind, totals[r], sums[r]);
        }
    }
    if (tail > 0) {
        for (uint32_t l = 0; l < REE_CPU_LANES; l++)
            lanes[l] = rows[l < n_rows ? l : n_rows - 1] + (size_t)n_whole * REE_CHUNK;
        kernels->lanes[kind](lanes, tail, sums);
        for (uint32_t r = 0; r < n_rows; r++)
            totals[r] = ree_cpu_reduce_join(kind, totals[r], sums[r]);
    }
    for (uint32_t r = 0; r < n_rows; r++)
        out[r] = ree_cpu_reduce_finish(kind, totals[r]);
}

// Merges neighbouring dimensions if the strides permit it; keeps at least one. Returns the number
// of dimensions.
static uint32_t merge(uint32_t rank, const uint32_t *dims, const int32_t *strides,
                      uint32_t *out_dims, int64_t *out_strides) {
    uint32_t n = 0;
    for (uint32_t d = 0; d < rank; d++) {
        if (dims[d] == 1) continue;
        if (n > 0 && out_strides[n - 1] == strides[d] * (int64_t)dims[d]) {
            out_dims[n - 1] *= dims[d];
            out_strides[n - 1] = strides[d];
        } else {
            out_dims[n] = dims[d];
            out_strides[n++] = strides[d];
        }
    }
    if (n == 0) {
        out_dims[0] = 1;
        out_strides[0] = 0;
        n = 1;
    }
    return n;
}

static void pack_run(size_t size, const char *from, int64_t stride, uint32_t n, char *to) {
    if (stride == 1) {
        memcpy(to, from, n * size);
        return;
    }
    switch (size) {
    case 1:
        for (uint32_t i = 0; i < n; i++)
            to[i] = from[i * stride];
        break;
    case 4:
        for (uint32_t i = 0; i < n; i++)
            ((ree_any_u32 *)to)[i] = ((const ree_any_u32 *)from)[i * stride];
        break;
    default:
        for (uint32_t i = 0; i < n; i++)
            ((ree_any_u64 *)to)[i] = ((const ree_any_u64 *)from)[i * stride];
    }
}

const void *ree_cpu_reduce_terms(const struct ree_cpu_reduce_plan *plan, const char *row,
                                 uint32_t first, uint32_t n, void *buffer) {
    int64_t size = (int64_t)plan->size;
    if (plan->contiguous) return row + first * size;
    uint32_t last = plan->reduce_rank - 1;
    uint32_t width = plan->reduce_dims[last], at = first % width;
    char *to = buffer;
    for (uint32_t left = n, row_index = first / width; left > 0; row_index++) {
        uint32_t run = width - at < left ? width - at : left;
        int64_t offset =
            ree_cpu_reduce_offset(last, plan->reduce_dims, plan->reduce_strides, row_index) +
            at * plan->reduce_strides[last];
        pack_run(plan->size, row + offset * size, plan->reduce_strides[last], run, to);
        to += run * size;
        left -= run;
        at = 0;
    }
    return buffer;
}

static const char *row_of(const struct ree_cpu_reduce_plan *plan, uint32_t o) {
    return plan->x +
           ree_cpu_reduce_offset(plan->outer_rank, plan->outer_dims, plan->outer_strides, o) *
               (int64_t)plan->size;
}

// Writes the results of chunks [begin, end) of output o to sums[0 ... end-begin-1]. `buffer` holds
// one chunk per lane.
static void sum_chunks(const struct ree_cpu_reduce_plan *plan, uint32_t o, uint32_t begin,
                       uint32_t end, float *buffer, float *sums) {
    const char *row = row_of(plan, o);
    const float *lanes[REE_CPU_LANES];
    float values[REE_CPU_LANES];
    for (uint32_t c = begin; c < end;) {
        // The last chunk may be shorter, so it is computed separately.
        uint32_t n = plan->n_reduce - c * REE_CHUNK;
        uint32_t n_lanes = 1;
        if (n > REE_CHUNK) {
            n_lanes = end - c < REE_CPU_LANES ? end - c : REE_CPU_LANES;
            if (n_lanes > n / REE_CHUNK) n_lanes = n / REE_CHUNK;
            n = REE_CHUNK;
        }
        for (uint32_t l = 0; l < REE_CPU_LANES; l++)
            lanes[l] = l < n_lanes ? ree_cpu_reduce_terms(plan, row, (c + l) * REE_CHUNK, n,
                                                          buffer + l * REE_CHUNK)
                                   : lanes[0];
        plan->kernels->lanes[plan->params->kind](lanes, n, values);
        memcpy(sums, values, n_lanes * sizeof *sums);
        sums += n_lanes;
        c += n_lanes;
    }
}

// Computes outputs [begin, end), 16 at a time, with contiguous or packed terms.
static void sum_outputs(const struct ree_cpu_reduce_plan *plan, uint32_t begin, uint32_t end,
                        float *buffer) {
    uint32_t kind = plan->params->kind;
    float *out = (float *)plan->out;
    for (uint32_t o = begin; o < end; o += REE_CPU_LANES) {
        uint32_t n_rows = end - o < REE_CPU_LANES ? end - o : REE_CPU_LANES;
        const char *rows[REE_CPU_LANES];
        const float *lanes[REE_CPU_LANES];
        for (uint32_t r = 0; r < n_rows; r++) {
            rows[r] = row_of(plan, o + r);
            lanes[r] = (const float *)rows[r];
        }
        if (plan->contiguous) {
            ree_cpu_reduce_rows(plan->kernels, kind, lanes, n_rows, plan->n_reduce, out + o);
            continue;
        }
        float totals[REE_CPU_LANES], sums[REE_CPU_LANES];
        for (uint32_t r = 0; r < n_rows; r++)
            totals[r] = ree_cpu_reduce_start(kind);
        for (uint32_t c = 0; c < plan->n_chunks; c++) {
            uint32_t n = plan->n_reduce - c * REE_CHUNK;
            if (n > REE_CHUNK) n = REE_CHUNK;
            for (uint32_t l = 0; l < REE_CPU_LANES; l++)
                lanes[l] = l < n_rows ? ree_cpu_reduce_terms(plan, rows[l], c * REE_CHUNK, n,
                                                             buffer + l * REE_CHUNK)
                                      : lanes[0];
            plan->kernels->lanes[kind](lanes, n, sums);
            for (uint32_t r = 0; r < n_rows; r++)
                totals[r] = ree_cpu_reduce_join(kind, totals[r], sums[r]);
        }
        for (uint32_t r = 0; r < n_rows; r++)
            out[o + r] = ree_cpu_reduce_finish(kind, totals[r]);
    }
}

static void fold_output(const struct ree_cpu_reduce_plan *plan, uint32_t o, uint32_t first,
                        uint32_t end, void *buffer, struct ree_cpu_fold *fold) {
    const char *row = row_of(plan, o);
    uint32_t step = plan->contiguous ? end - first : REE_CHUNK;
    ree_cpu_fold_start(plan->params->kind, plan->params->dtype, fold);
    for (uint32_t at = first; at < end; at += step) {
        uint32_t n = end - at < step ? end - at : step;
        ree_cpu_fold_terms(plan, fold, ree_cpu_reduce_terms(plan, row, at, n, buffer), at, n);
    }
}

struct split {
    const struct ree_cpu_reduce_plan *plan;
    uint32_t output;
    void *parts; // results of the chunks if the plan is chunked, otherwise of the threads
};

static void split_chunks(const void *user, const struct ree_cpu_range *range) {
    const struct split *split = user;
    sum_chunks(split->plan, split->output, (uint32_t)range->begin, (uint32_t)range->end,
               range->scratch[0], (float *)split->parts + range->begin);
}

static void split_terms(const void *user, const struct ree_cpu_range *range) {
    const struct split *split = user;
    fold_output(split->plan, split->output, (uint32_t)range->begin, (uint32_t)range->end,
                range->scratch[0], (struct ree_cpu_fold *)split->parts + range->thread);
}

// Reduces few outputs with many terms: the threads share the chunks, or the terms, of each output.
static enum ree_status reduce_split(const struct ree_cpu_context *ctx,
                                    const struct ree_cpu_reduce_plan *plan, uint32_t n_threads,
                                    struct ree_error *err) {
    size_t size =
        plan->chunked ? plan->n_chunks * sizeof(float) : n_threads * sizeof(struct ree_cpu_fold);
    void *parts = ree_cpu_scratch_get(ctx, 0, 1, size);
    if (!parts) return ree_cpu_no_memory(err, size);
    float *sums = parts;
    struct ree_cpu_fold *folds = parts;
    uint32_t kind = plan->params->kind;
    struct split split = {.plan = plan, .parts = parts};
    REE_TRY(ree_cpu_scratch_reserve(ctx, n_threads, 0, SCRATCH_SIZE, err));
    const struct ree_cpu_loop loop = {
        .n = plan->chunked ? plan->n_chunks : plan->n_reduce,
        .grain = plan->chunked ? REE_CPU_LANES : REE_CHUNK,
        .n_threads = n_threads,
        .body = plan->chunked ? split_chunks : split_terms,
        .job = &split,
    };
    for (uint32_t o = 0; o < plan->n_outer; o++) {
        split.output = o;
        ree_cpu_run_loop(ctx, &loop);
        if (plan->chunked) {
            float total = ree_cpu_reduce_start(kind);
            for (uint32_t c = 0; c < plan->n_chunks; c++)
                total = ree_cpu_reduce_join(kind, total, sums[c]);
            ((float *)plan->out)[o] = ree_cpu_reduce_finish(kind, total);
        } else {
            for (uint32_t t = 1; t < n_threads; t++)
                ree_cpu_fold_join(plan, &folds[0], &folds[t]);
            ree_cpu_fold_store(plan, &folds[0], o);
        }
    }
    return REE_OK;
}

static void make_plan(struct ree_cpu_reduce_plan *plan, const struct ree_cpu_context *ctx,
                      const struct ree_reduce_params *p, void *const *operands) {
    plan->params = p;
    plan->kernels = ree_cpu_reduce_kernels(ctx->isa);
    plan->expr = ree_cpu_expr_kernels(ctx->isa);
    plan->size = ree_dtype_size((enum ree_dtype)p->dtype);
    plan->x = (const char *)operands[0] + p->offset * (int64_t)plan->size;
    plan->out = operands[1];
    plan->n_outer = p->n_outer;
    plan->n_reduce = p->n_reduce;
    plan->n_chunks = (p->n_reduce + REE_CHUNK - 1) / REE_CHUNK;
    plan->chunked = p->dtype == REE_F32 && p->kind <= REE_REDUCE_PROD;
    plan->outer_rank = merge(p->outer_rank, p->outer_dims, p->outer_strides, plan->outer_dims,
                             plan->outer_strides);
    plan->reduce_rank = merge(p->reduce_rank, p->reduce_dims, p->reduce_strides, plan->reduce_dims,
                              plan->reduce_strides);
    plan->contiguous =
        plan->reduce_rank == 1 && (plan->reduce_strides[0] == 1 || plan->reduce_dims[0] == 1);
}

static void reduce_outputs(const void *user, const struct ree_cpu_range *range) {
    const struct ree_cpu_reduce_plan *plan = user;
    void *buffer = range->scratch[0];
    if (plan->chunked) {
        sum_outputs(plan, (uint32_t)range->begin, (uint32_t)range->end, buffer);
        return;
    }
    for (uint32_t o = (uint32_t)range->begin; o < range->end; o++) {
        struct ree_cpu_fold fold;
        fold_output(plan, o, 0, plan->n_reduce, buffer, &fold);
        ree_cpu_fold_store(plan, &fold, o);
    }
}

enum ree_status ree_cpu_reduce(const struct ree_cpu_context *ctx, const struct ree_reduce_params *p,
                               void *const *operands, struct ree_error *err) {
    if (p->n_outer == 0) return REE_OK;
    struct ree_cpu_reduce_plan plan;
    make_plan(&plan, ctx, p, operands);
    if (p->dtype == REE_F64) return ree_cpu_reduce_f64(ctx, &plan, err);
    if (ree_cpu_reduce_is_columns(&plan)) return ree_cpu_reduce_columns(ctx, &plan, err);

    // Estimates nanoseconds: about one per two terms, twice that if they must be packed.
    uint64_t cost = (uint64_t)p->n_outer * (p->n_reduce + 32) / (plan.contiguous ? 2 : 1);
    uint32_t n_threads = ree_cpu_threads_for(ctx, cost);

    // If there are fewer outputs than threads, the threads share each output, provided each thread
    // has enough work. Few outputs whose terms must be packed use the same code even on one thread,
    // because it fills the lanes with chunks of one output.
    bool few = p->n_outer < n_threads && ree_cpu_threads_for(ctx, cost / p->n_outer) > 1;
    if (few || (plan.chunked && !plan.contiguous && p->n_outer < 4 && plan.n_chunks >= MANY_CHUNKS))
        return reduce_split(ctx, &plan, n_threads, err);

    uint32_t grain = plan.n_chunks > MANY_CHUNKS ? 1 : REE_CPU_LANES;
    if (p->n_outer < n_threads * grain) grain = 1;
    REE_TRY(ree_cpu_scratch_reserve(ctx, n_threads, 0, SCRATCH_SIZE, err));
    const struct ree_cpu_loop loop = {
        .n = p->n_outer,
        .grain = grain,
        .n_threads = n_threads,
        .body = reduce_outputs,
        .job = &plan,
    };
    ree_cpu_run_loop(ctx, &loop);
    return REE_OK;
}
