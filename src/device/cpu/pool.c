// pool: max, or sum / count, or sum of squares over each window, by the scheme in window order
// (NUMERICS.md section 3).
//
// The window is the outermost loop: for each window position, in order, a row of outputs
// accumulates a strided row of inputs, so vectors run across outputs. Positions outside the input
// would add +0, which changes no accumulator, so they are skipped; they still count as terms of a
// chunk.
#include "device/cpu/expr.h"
#include "repops/scalar/ops.h"

struct span {
    uint32_t begin, end;
};

struct job {
    const struct ree_pool_params *p;
    const struct ree_cpu_expr_kernels *kernels;
    const char *x;
    char *out;
    int64_t *indices;   // NULL if absent
    size_t size;        // bytes per element
    uint32_t width;     // outputs of a row processed together
    struct span *reach; // [kernel[2]]: reach() of each window position along the last axis
};

static uint64_t volume(const uint32_t dims[3]) {
    return (uint64_t)dims[0] * dims[1] * dims[2];
}

// Returns the outputs along the last axis whose window position k is inside the input.
static struct span reach(const struct ree_pool_params *p, uint32_t k) {
    int64_t shift = (int64_t)k * p->dilation[2] - p->pad_begin[2], stride = p->stride[2];
    // [low, high): outputs o for which 0 <= o * stride + shift < in
    int64_t low = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    int64_t high = shift >= p->in[2] ? 0 : (p->in[2] - shift + stride - 1) / stride;
    if (high > p->out[2]) high = p->out[2];
    if (low > high) low = high;
    return (struct span){(uint32_t)low, (uint32_t)high};
}

// Returns the number of window positions along axis a, at output o, whose input coordinates are in
// [low, high).
static uint32_t count(const struct ree_pool_params *p, uint32_t a, uint32_t o, int64_t low,
                      int64_t high) {
    int64_t start = (int64_t)o * p->stride[a] - p->pad_begin[a];
    int64_t dilation = p->dilation[a];
    int64_t from = low - start <= 0 ? 0 : (low - start + dilation - 1) / dilation;
    int64_t to = high - start <= 0 ? 0 : (high - start + dilation - 1) / dilation;
    if (to > p->kernel[a]) to = p->kernel[a];
    return to > from ? (uint32_t)(to - from) : 0;
}

static uint32_t count_at(const struct ree_pool_params *p, uint32_t a, uint32_t o) {
    return p->count_include_pad
               ? count(p, a, o, -(int64_t)p->pad_begin[a], (int64_t)p->in[a] + p->pad_end[a])
               : count(p, a, o, 0, p->in[a]);
}

// Returns n inputs at distance `stride` from each other, starting at x, as 32-bit values of map
// (class W). Copies them to `row` unless they are already stored that way.
static const void *inputs(const struct job *job, const char *x, uint32_t n, uint32_t stride,
                          void *row) {
    enum ree_cpu_load load = ree_cpu_load_of(job->p->dtype);
    if (stride == 1 && load == REE_CPU_LOAD_B32) return x;
    job->kernels->loads[load](n, x, stride, row);
    return row;
}

struct rows {
    ree_any_u32 *acc, *total, *values;
    uint32_t *index; // position in the plane of the element in acc
};

// acc[j + i] = max(acc[j + i], values[i]) for i < n, and index[j + i] = its position in the plane.
// values[i] has position at + i * step.
static void take_positions(const struct job *job, const struct rows *rows, uint32_t j,
                           const ree_any_u32 *values, uint32_t n, uint64_t at, uint64_t step) {
    bool is_float = job->p->dtype == REE_F32;
    for (uint32_t i = 0; i < n; i++) {
        ree_any_u32 *best = &rows->acc[j + i];
        uint32_t *index = &rows->index[j + i];
        bool better;
        if (is_float) {
            float v = ree_float(values[i]), b = ree_float(*best);
            better = b == b && (v > b || v != v);
            *best = ree_op_max_f32(*best, values[i]);
        } else {
            better = (int32_t)values[i] > (int32_t)*best;
            if (better) *best = values[i];
        }
        if (better || *index == UINT32_MAX) *index = (uint32_t)(at + i * step);
    }
}

static void finish_row(const struct job *job, const struct rows *rows, uint32_t od, uint32_t oh,
                       uint32_t first, uint32_t n) {
    const struct ree_pool_params *p = job->p;
    if (p->kind == REE_POOL_MAX) return;
    job->kernels->fill32(n, 0, rows->values);
    job->kernels->ops[REE_MAP_add_f32](n, rows->total, rows->values, NULL, rows->total);
    if (p->kind != REE_POOL_AVG) return;
    uint64_t outer = (uint64_t)count_at(p, 0, od) * count_at(p, 1, oh);
    for (uint32_t j = 0; j < n; j++)
        rows->values[j] = ree_bits((float)(outer * count_at(p, 2, first + j)));
    job->kernels->ops[REE_MAP_div_f32](n, rows->total, rows->values, NULL, rows->total);
}

// Accumulates window position kw of input row (id, ih) into outputs [first, first + n) of a row.
static void take_in(const struct job *job, const char *plane, uint64_t id, uint64_t ih, uint32_t kw,
                    uint32_t first, uint32_t n, const struct rows *rows) {
    const struct ree_pool_params *p = job->p;
    const struct ree_cpu_expr_kernels *kernels = job->kernels;
    uint32_t begin = job->reach[kw].begin, end = job->reach[kw].end;
    if (begin < first) begin = first;
    if (end > first + n) end = first + n;
    if (begin >= end) return;
    uint32_t j = begin - first, m = end - begin;
    uint64_t iw =
        (uint64_t)((int64_t)begin * p->stride[2] + (int64_t)kw * p->dilation[2] - p->pad_begin[2]);
    uint64_t at = (id * p->in[1] + ih) * p->in[2] + iw;
    const ree_any_u32 *values = inputs(job, plane + at * job->size, m, p->stride[2], rows->values);
    ree_any_u32 *acc = rows->acc + j;
    if (job->indices) {
        uint64_t step = p->stride[2];
        if (p->storage_order) { // column-major: the innermost axis varies slowest
            at = (iw * p->in[1] + ih) * p->in[0] + id;
            step *= (uint64_t)p->in[0] * p->in[1];
        }
        take_positions(job, rows, j, values, m, at, step);
        return;
    }
    switch (p->kind) {
    case REE_POOL_MAX:
        kernels->ops[p->dtype == REE_F32 ? REE_MAP_max_f32 : REE_MAP_max_i32](m, acc, values, NULL,
                                                                              acc);
        break;
    case REE_POOL_AVG: kernels->ops[REE_MAP_add_f32](m, acc, values, NULL, acc); break;
    default: kernels->ops[REE_MAP_fma_f32](m, values, values, acc, acc);
    }
}

// Returns the maximum of an empty window.
static uint32_t lowest(uint32_t dtype) {
    return dtype == REE_F32 ? 0xFF800000u : dtype == REE_I8 ? (uint32_t)INT8_MIN : 0;
}

// Computes outputs [first, first + n) of row (od, oh) of one plane.
static void pool_row(const struct job *job, uint32_t plane, uint32_t od, uint32_t oh,
                     uint32_t first, uint32_t n, const struct rows *rows) {
    const struct ree_pool_params *p = job->p;
    const struct ree_cpu_expr_kernels *kernels = job->kernels;
    bool max = p->kind == REE_POOL_MAX;
    const char *x = job->x + plane * volume(p->in) * job->size;
    kernels->fill32(n, max ? lowest(p->dtype) : 0, rows->acc);
    kernels->fill32(n, 0, rows->total);
    if (job->indices) kernels->fill32(n, UINT32_MAX, rows->index);

    uint32_t term = 0; // number of window positions in this chunk so far
    for (uint32_t kd = 0; kd < p->kernel[0]; kd++) {
        int64_t id = (int64_t)od * p->stride[0] + (int64_t)kd * p->dilation[0] - p->pad_begin[0];
        for (uint32_t kh = 0; kh < p->kernel[1]; kh++) {
            int64_t ih =
                (int64_t)oh * p->stride[1] + (int64_t)kh * p->dilation[1] - p->pad_begin[1];
            bool inside = id >= 0 && id < p->in[0] && ih >= 0 && ih < p->in[1];
            for (uint32_t kw = 0; kw < p->kernel[2]; kw++, term++) {
                if (!max && term == REE_CHUNK) {
                    kernels->ops[REE_MAP_add_f32](n, rows->total, rows->acc, NULL, rows->total);
                    kernels->fill32(n, 0, rows->acc);
                    term = 0;
                }
                if (inside) take_in(job, x, (uint64_t)id, (uint64_t)ih, kw, first, n, rows);
            }
        }
    }
    if (!max) kernels->ops[REE_MAP_add_f32](n, rows->total, rows->acc, NULL, rows->total);
    finish_row(job, rows, od, oh, first, n);

    uint64_t o = ((plane * (uint64_t)p->out[0] + od) * p->out[1] + oh) * p->out[2] + first;
    kernels->stores[ree_cpu_store_of(p->dtype)](n, max ? rows->acc : rows->total,
                                                job->out + o * job->size);
    for (uint32_t i = 0; job->indices && i < n; i++)
        job->indices[o + i] = (int64_t)(plane * volume(p->in)) + rows->index[i];
}

static void pool_rows(const void *user, const struct ree_cpu_range *range) {
    const struct job *job = user;
    const struct ree_pool_params *p = job->p;
    const size_t row = REE_CPU_EXPR_BLOCK;
    uint32_t *scratch = range->scratch[0];
    struct rows rows = {scratch, scratch + row, scratch + 2 * row, scratch + 3 * row};
    for (uint64_t at = range->begin; at < range->end; at++) {
        uint32_t oh = (uint32_t)(at % p->out[1]), od = (uint32_t)(at / p->out[1] % p->out[0]);
        uint32_t plane = (uint32_t)(at / p->out[1] / p->out[0]);
        for (uint32_t first = 0; first < p->out[2]; first += job->width) {
            uint32_t n = p->out[2] - first < job->width ? p->out[2] - first : job->width;
            pool_row(job, plane, od, oh, first, n, &rows);
        }
    }
}

enum ree_status ree_cpu_pool(const struct ree_cpu_context *ctx, const struct ree_pool_params *p,
                             void *const *operands, struct ree_error *err) {
    uint64_t n_rows = (uint64_t)p->planes * p->out[0] * p->out[1];
    if (n_rows == 0 || p->out[2] == 0) return REE_OK;
    struct job job = {
        .p = p,
        .kernels = ree_cpu_expr_kernels(ctx->isa),
        .x = operands[0],
        .out = operands[1],
        .indices = p->kind == REE_POOL_MAX && p->has_indices ? operands[2] : NULL,
        .size = ree_dtype_size((enum ree_dtype)p->dtype),
        .width = p->out[2] < REE_CPU_EXPR_BLOCK ? p->out[2] : REE_CPU_EXPR_BLOCK,
    };
    size_t reach_size = p->kernel[2] * sizeof *job.reach;
    job.reach = ree_cpu_scratch_get(ctx, 0, 1, reach_size);
    if (!job.reach) return ree_cpu_no_memory(err, reach_size);
    for (uint32_t kw = 0; kw < p->kernel[2]; kw++)
        job.reach[kw] = reach(p, kw);
    // Estimates nanoseconds: a loop over a row costs some nanoseconds to start, then about one per
    // two elements.
    uint32_t n_threads = ree_cpu_threads_for(ctx, n_rows * volume(p->kernel) * (8 + p->out[2] / 2));
    if (n_rows == 1) n_threads = 1;
    REE_TRY(
        ree_cpu_scratch_reserve(ctx, n_threads, 0, 4 * REE_CPU_EXPR_BLOCK * sizeof(uint32_t), err));
    const struct ree_cpu_loop loop = {
        .n = n_rows,
        .grain = 1,
        .n_threads = n_threads,
        .body = pool_rows,
        .job = &job,
    };
    ree_cpu_run_loop(ctx, &loop);
    return REE_OK;
}
