// scatter: data[target] = combine(data[target], update). Several updates of one element are applied
// one after another, each as one rounded operation, without chunks (NUMERICS.md, scatter).
#include "base/any.h"
#include "device/cpu/gather.h"
#include "repops/scalar/ops.h"

struct job {
    const struct ree_scatter_params *p;
    char *data;
    const char *updates;
    struct ree_cpu_indices indices;
    size_t size;
    bool *failed; // [n_threads]: whether the thread found an index out of range
};

static uint32_t combine_f32(uint32_t kind, uint32_t a, uint32_t b) {
    switch (kind) {
    case REE_SCATTER_ADD: return ree_op_add_f32(a, b);
    case REE_SCATTER_MUL: return ree_op_mul_f32(a, b);
    case REE_SCATTER_MIN: return ree_op_min_f32(a, b);
    default: return ree_op_max_f32(a, b);
    }
}

static uint64_t combine_f64(uint32_t kind, uint64_t a, uint64_t b) {
    switch (kind) {
    case REE_SCATTER_ADD: return ree_op_add_f64(a, b);
    case REE_SCATTER_MUL: return ree_op_mul_f64(a, b);
    case REE_SCATTER_MIN: return ree_op_min_f64(a, b);
    default: return ree_op_max_f64(a, b);
    }
}

// Values of type T are combined in U, which is unsigned and has at least 32 bits, so that sums and
// products wrap.
#define DEFINE_COMBINE(T, U)                                                                       \
    static void combine_##T(uint32_t kind, T *a, T b) {                                            \
        switch (kind) {                                                                            \
        case REE_SCATTER_ADD: *a = (T)((U)*a + (U)b); break;                                       \
        case REE_SCATTER_MUL: *a = (T)((U)*a * (U)b); break;                                       \
        case REE_SCATTER_MIN: *a = b < *a ? b : *a; break;                                         \
        default: *a = b > *a ? b : *a;                                                             \
        }                                                                                          \
    }
DEFINE_COMBINE(int8_t, uint32_t)
DEFINE_COMBINE(uint8_t, uint32_t)
DEFINE_COMBINE(int32_t, uint32_t)
DEFINE_COMBINE(uint32_t, uint32_t)
DEFINE_COMBINE(int64_t, uint64_t)
DEFINE_COMBINE(uint64_t, uint64_t)

static void apply(const struct job *job, int64_t to, int64_t from) {
    char *a = job->data + to * (int64_t)job->size;
    const char *b = job->updates + from * (int64_t)job->size;
    uint32_t kind = job->p->kind;
    if (kind == REE_SCATTER_SET) {
        switch (job->size) {
        case 1: *a = *b; break;
        case 2: memcpy(a, b, 2); break;
        case 4: memcpy(a, b, 4); break;
        default: memcpy(a, b, 8);
        }
        return;
    }
    switch (job->p->dtype) {
    case REE_F32:
        *(ree_any_u32 *)a = combine_f32(kind, *(ree_any_u32 *)a, *(const ree_any_u32 *)b);
        break;
    case REE_F64:
        *(ree_any_u64 *)a = combine_f64(kind, *(ree_any_u64 *)a, *(const ree_any_u64 *)b);
        break;
    case REE_I8: combine_int8_t(kind, (int8_t *)a, *(const int8_t *)b); break;
    case REE_I32: combine_int32_t(kind, (int32_t *)a, *(const int32_t *)b); break;
    case REE_U32: combine_uint32_t(kind, (uint32_t *)a, *(const uint32_t *)b); break;
    case REE_I64: combine_int64_t(kind, (int64_t *)a, *(const int64_t *)b); break;
    case REE_U64: combine_uint64_t(kind, (uint64_t *)a, *(const uint64_t *)b); break;
    default: combine_uint8_t(kind, (uint8_t *)a, *(const uint8_t *)b);
    }
}

// Offsets in elements, in data, index and updates, of a position along some of the dimensions.
struct location {
    int64_t data, index, update;
};

static struct location location_of(const struct ree_scatter_params *p, uint32_t begin, uint32_t end,
                                   uint64_t at) {
    struct location location = {0};
    for (uint32_t d = end; d-- > begin;) {
        int64_t i = (int64_t)(at % p->dims[d]);
        at /= p->dims[d];
        location.data += i * p->data_strides[d];
        location.index += i * p->index_strides[d];
        location.update += i * p->update_strides[d];
    }
    return location;
}

// Applies vectors [begin, end), step by step. Vectors of neighbouring elements are processed
// together, so that memory is accessed in order if the steps are the outer dimensions. Returns
// false if an index is out of range.
static bool scatter_vectors(const struct job *job, uint64_t begin, uint64_t end) {
    const struct ree_scatter_params *p = job->p;
    uint32_t n_vector_dims = p->rank - p->n_step_dims;
    uint64_t width = 1;
    struct location stride = {0};
    if (n_vector_dims > 0) {
        uint32_t inner = n_vector_dims - 1;
        width = p->dims[inner];
        stride = (struct location){p->data_strides[inner], p->index_strides[inner],
                                   p->update_strides[inner]};
    }
    for (uint64_t vector = begin, run; vector < end; vector += run) {
        run = width - vector % width;
        if (run > end - vector) run = end - vector;
        struct location base = location_of(p, 0, n_vector_dims, vector);
        for (uint64_t step = 0; step < p->n_steps; step++) {
            struct location at = location_of(p, n_vector_dims, p->rank, step);
            at.data += base.data, at.index += base.index, at.update += base.update;
            for (uint64_t i = 0; i < run; i++) {
                int64_t offset;
                struct ree_cpu_index_fault fault;
                if (!ree_cpu_index_offset(&job->indices, at.index, &offset, &fault)) return false;
                apply(job, at.data + offset, at.update);
                at.data += stride.data, at.index += stride.index, at.update += stride.update;
            }
        }
    }
    return true;
}

// Finds the first index out of range again, in the order of vectors and, within a vector, of steps.
// Fails with its description.
static enum ree_status report_fault(const struct job *job, struct ree_error *err) {
    const struct ree_scatter_params *p = job->p;
    uint32_t n_vector_dims = p->rank - p->n_step_dims;
    for (uint64_t vector = 0; vector < p->n_vectors; vector++) {
        struct location base = location_of(p, 0, n_vector_dims, vector);
        for (uint64_t step = 0; step < p->n_steps; step++) {
            struct location at = location_of(p, n_vector_dims, p->rank, step);
            int64_t offset;
            struct ree_cpu_index_fault fault = {.at = 0};
            if (!ree_cpu_index_offset(&job->indices, base.index + at.index, &offset, &fault))
                return ree_cpu_index_report(&fault, 1, err);
        }
    }
    return ree_fail(err, REE_INTERNAL,
                    "scatter: an index was out of range, but could not be found again");
}

static void scatter_range(const void *user, const struct ree_cpu_range *range) {
    const struct job *job = user;
    job->failed[range->thread] = !scatter_vectors(job, range->begin, range->end);
}

enum ree_status ree_cpu_scatter(const struct ree_cpu_context *ctx,
                                const struct ree_scatter_params *p, void *const *operands,
                                struct ree_error *err) {
    if (p->n_vectors == 0 || p->n_steps == 0) return REE_OK;
    struct job job = {
        .p = p,
        .data = operands[0],
        .updates = operands[2],
        .indices = {.data = operands[1],
                    .wide = p->index_dtype == REE_I64,
                    .n_components = p->n_components,
                    .step = p->component_stride,
                    .sizes = p->component_sizes,
                    .strides = p->component_strides},
        .size = ree_dtype_size((enum ree_dtype)p->dtype),
    };
    uint32_t n_threads = ree_cpu_threads_for(ctx, (uint64_t)p->n_vectors * p->n_steps * 8);
    if (p->n_vectors == 1) n_threads = 1;
    job.failed = ree_cpu_scratch_get(ctx, 0, 0, n_threads * sizeof *job.failed);
    if (!job.failed) return ree_cpu_no_memory(err, n_threads * sizeof *job.failed);
    const struct ree_cpu_loop loop = {
        .n = p->n_vectors,
        .grain = 16,
        .n_threads = n_threads,
        .body = scatter_range,
        .job = &job,
    };
    ree_cpu_run_loop(ctx, &loop);
    for (uint32_t t = 0; t < n_threads; t++)
        if (job.failed[t]) return report_fault(&job, err);
    return REE_OK;
}
