// gather: out[i] = data[offset + sum(i * data_stride) + offset of the index tuple of i]. Moves
// bytes and computes nothing (NUMERICS.md, movement).
//
// Innermost dimensions that the index does not depend on are copied as one row per tuple, so a
// whole row requires only one index.
#include "device/cpu/gather.h"

#include <inttypes.h>

enum ree_status ree_cpu_index_report(const struct ree_cpu_index_fault *faults, uint32_t n,
                                     struct ree_error *err) {
    const struct ree_cpu_index_fault *first = &faults[0];
    for (uint32_t t = 1; t < n; t++)
        if (faults[t].at < first->at) first = &faults[t];
    if (first->at == UINT64_MAX) return REE_OK;
    if (first->size == 0)
        return ree_fail(err, REE_INVALID, "index %" PRId64 " into a dimension of size 0",
                        first->index);
    return ree_fail(err, REE_INVALID,
                    "index %" PRId64 " is out of range [-%" PRIu32 ", %" PRIu32 "]", first->index,
                    first->size, first->size - 1);
}

struct plan {
    size_t size;
    const char *data;
    char *out;
    struct ree_cpu_indices indices;
    uint32_t rank; // number of dimensions without those of the row
    uint32_t dims[REE_MAX_RANK];
    int64_t data_strides[REE_MAX_RANK], index_strides[REE_MAX_RANK];
    uint32_t row; // elements copied per index tuple
    int64_t row_stride;
};

static void make_plan(struct plan *plan, const struct ree_gather_params *p, void *const *operands) {
    plan->size = p->elem_size;
    plan->data = (const char *)operands[0] + p->data_offset * (int64_t)p->elem_size;
    plan->out = operands[2];
    plan->indices = (struct ree_cpu_indices){
        .data = operands[1],
        .wide = p->index_dtype == REE_I64,
        .n_components = p->n_components,
        .step = p->component_stride,
        .sizes = p->component_sizes,
        .strides = p->component_strides,
    };
    plan->rank = 0;
    for (uint32_t d = 0; d < p->rank; d++) {
        uint32_t dim = p->dims[d], last = plan->rank - 1;
        int64_t data_stride = p->data_strides[d], index_stride = p->index_strides[d];
        if (dim == 1) continue;
        if (plan->rank > 0 && plan->data_strides[last] == data_stride * dim &&
            plan->index_strides[last] == index_stride * dim) {
            plan->dims[last] *= dim;
        } else {
            last = plan->rank++;
            plan->dims[last] = dim;
        }
        plan->data_strides[last] = data_stride;
        plan->index_strides[last] = index_stride;
    }
    plan->row = 1;
    plan->row_stride = 1;
    if (plan->rank > 0 && plan->index_strides[plan->rank - 1] == 0) {
        plan->rank--;
        plan->row = plan->dims[plan->rank];
        plan->row_stride = plan->data_strides[plan->rank];
    }
}

static void copy_row(const struct plan *plan, const char *src, char *dst) {
    int64_t stride = plan->row_stride;
    if (stride == 1) {
        memcpy(dst, src, plan->row * plan->size);
        return;
    }
    for (uint32_t i = 0; i < plan->row; i++)
        memcpy(dst + i * plan->size, src + i * stride * (int64_t)plan->size, plan->size);
}

static inline void copy_element(size_t size, const char *src, char *dst) {
    switch (size) {
    case 1: *dst = *src; break;
    case 2: memcpy(dst, src, 2); break;
    case 4: memcpy(dst, src, 4); break;
    default: memcpy(dst, src, 8);
    }
}

// Gathers n elements along the innermost dimension, each with its own index, up to the first index
// out of range. Returns the number gathered. Inlined for each element size and index type, so that
// the loop has no branches on them.
static inline __attribute__((always_inline)) uint32_t gather_row(size_t size, bool wide,
                                                                 const struct plan *plan,
                                                                 int64_t data_at, int64_t index_at,
                                                                 uint32_t n, char *dst) {
    const uint32_t last = plan->rank - 1;
    const int64_t data_stride = plan->data_strides[last], index_stride = plan->index_strides[last];
    const int64_t bound = plan->indices.sizes[0], stride = plan->indices.strides[0];
    const int32_t *narrow_index = (const int32_t *)plan->indices.data + (wide ? 0 : index_at);
    const int64_t *wide_index = (const int64_t *)plan->indices.data + (wide ? index_at : 0);
    for (uint32_t i = 0; i < n; i++) {
        int64_t index = wide ? wide_index[i * index_stride] : narrow_index[i * index_stride];
        if (index < 0) index += bound;
        if ((uint64_t)index >= (uint64_t)bound) return i;
        int64_t from = data_at + i * data_stride + index * stride;
        memcpy(dst + i * size, plan->data + from * (int64_t)size, size);
    }
    return n;
}

static uint32_t gather_elements(const struct plan *plan, int64_t data_at, int64_t index_at,
                                uint32_t n, char *dst) {
    bool wide = plan->indices.wide;
#define GATHER(size)                                                                               \
    (wide ? gather_row(size, true, plan, data_at, index_at, n, dst)                                \
          : gather_row(size, false, plan, data_at, index_at, n, dst))
    switch (plan->size) {
    case 1: return GATHER(1);
    case 2: return GATHER(2);
    case 4: return GATHER(4);
    default: return GATHER(8);
    }
#undef GATHER
}

// Gathers the elements of index tuples [begin, end). Stops at the first one that is out of range
// and describes it in *fault.
static void gather_range(const struct plan *plan, uint64_t begin, uint64_t end,
                         struct ree_cpu_index_fault *fault) {
    uint32_t coord[REE_MAX_RANK];
    int64_t data_at = 0, index_at = 0;
    uint64_t rest = begin;
    for (uint32_t d = plan->rank; d-- > 0;) {
        coord[d] = (uint32_t)(rest % plan->dims[d]);
        rest /= plan->dims[d];
        data_at += coord[d] * plan->data_strides[d];
        index_at += coord[d] * plan->index_strides[d];
    }
    int64_t size = (int64_t)plan->size;
    bool by_row = plan->rank > 0 && plan->row == 1 && plan->indices.n_components == 1;
    char *dst = plan->out + begin * plan->row * plan->size;
    for (uint64_t at = begin; at < end;) {
        uint32_t done = 1;
        if (by_row) {
            uint64_t left = plan->dims[plan->rank - 1] - coord[plan->rank - 1];
            if (left > end - at) left = end - at;
            done = gather_elements(plan, data_at, index_at, (uint32_t)left, dst);
            if (done < left) {
                int64_t offset, last = plan->rank - 1;
                ree_cpu_index_offset(&plan->indices, index_at + done * plan->index_strides[last],
                                     &offset, fault);
                fault->at = at + done;
                return;
            }
        } else {
            int64_t offset;
            if (!ree_cpu_index_offset(&plan->indices, index_at, &offset, fault)) {
                fault->at = at;
                return;
            }
            const char *src = plan->data + (data_at + offset) * size;
            if (plan->row == 1)
                copy_element(plan->size, src, dst);
            else
                copy_row(plan, src, dst);
        }
        at += done;
        dst += done * plan->row * plan->size;
        for (uint32_t d = plan->rank; d-- > 0; done = 1) {
            data_at += done * plan->data_strides[d];
            index_at += done * plan->index_strides[d];
            if ((coord[d] += done) < plan->dims[d]) break;
            data_at -= plan->dims[d] * plan->data_strides[d];
            index_at -= plan->dims[d] * plan->index_strides[d];
            coord[d] = 0;
        }
    }
}

struct job {
    const struct plan *plan;
    struct ree_cpu_index_fault *faults; // [n_threads]
};

static void gather_job_range(const void *user, const struct ree_cpu_range *range) {
    const struct job *job = user;
    struct ree_cpu_index_fault *fault = &job->faults[range->thread];
    fault->at = UINT64_MAX;
    gather_range(job->plan, range->begin, range->end, fault);
}

enum ree_status ree_cpu_gather(const struct ree_cpu_context *ctx, const struct ree_gather_params *p,
                               void *const *operands, struct ree_error *err) {
    if (p->n_elements == 0) return REE_OK;
    struct plan plan;
    make_plan(&plan, p, operands);
    uint64_t n_tuples = p->n_elements / plan.row;
    uint64_t row_cost = plan.row_stride == 1 ? plan.row * plan.size / 5 : plan.row;
    uint32_t n_threads = ree_cpu_threads_for(ctx, n_tuples * (5 + row_cost));
    if (n_tuples == 1) n_threads = 1;
    struct ree_cpu_index_fault *faults = ree_cpu_scratch_get(ctx, 0, 0, n_threads * sizeof *faults);
    if (!faults) return ree_cpu_no_memory(err, n_threads * sizeof *faults);
    const struct job job = {.plan = &plan, .faults = faults};
    const struct ree_cpu_loop loop = {
        .n = n_tuples,
        .grain = 1,
        .n_threads = n_threads,
        .body = gather_job_range,
        .job = &job,
    };
    ree_cpu_run_loop(ctx, &loop);
    return ree_cpu_index_report(faults, n_threads, err);
}
