// topk: the first k of n elements in a total order: by value, equal values by ascending index, NaN
// above everything, -0 equal to +0 (NUMERICS.md, TopK).
//
// Values become unsigned keys in that order, inverted for `largest`, so the result is the k least
// (key, index) pairs. They are kept in a heap with the worst pair on top. Finally the heap is
// sorted in place.
#include "device/cpu/cpu_internal.h"
#include "repops/scalar/f64.h"

struct entry {
    uint64_t key;
    uint32_t index;
};

struct job {
    const struct ree_topk_params *p;
    const char *x;
    char *values;
    int64_t *indices;
    size_t size;
};

static uint64_t key_of(uint32_t dtype, bool largest, const void *x) {
    uint64_t key;
    switch (dtype) {
    case REE_F32: {
        uint32_t bits;
        memcpy(&bits, x, 4);
        if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
            key = UINT32_MAX;
        else if (bits << 1 == 0)
            key = 0x80000000u;
        else
            key = bits >> 31 ? ~bits : bits | 0x80000000u;
        break;
    }
    case REE_F64: {
        uint64_t bits;
        memcpy(&bits, x, 8);
        if (ree_f64_is_nan(bits))
            key = UINT64_MAX;
        else
            key = ree_f64_order_key(ree_f64_is_zero(bits) ? 0 : bits);
        break;
    }
    case REE_I8: key = (uint64_t)(*(const int8_t *)x) ^ (uint64_t)1 << 63; break;
    case REE_I32: key = (uint64_t)(*(const int32_t *)x) ^ (uint64_t)1 << 63; break;
    case REE_I64: key = (uint64_t)(*(const int64_t *)x) ^ (uint64_t)1 << 63; break;
    case REE_U32: key = *(const uint32_t *)x; break;
    case REE_U64: key = *(const uint64_t *)x; break;
    default: key = *(const uint8_t *)x;
    }
    return largest ? ~key : key;
}

static inline bool before(struct entry a, struct entry b) {
    return a.key < b.key || (a.key == b.key && a.index < b.index);
}

// Moves heap[at] down until it comes after all its children; the last in the order is on top.
static void sift_down(struct entry *heap, uint32_t n, uint32_t at) {
    struct entry e = heap[at];
    for (uint64_t child; (child = 2 * (uint64_t)at + 1) < n; at = (uint32_t)child) {
        if (child + 1 < n && before(heap[child], heap[child + 1])) child++;
        if (!before(e, heap[child])) break;
        heap[at] = heap[child];
    }
    heap[at] = e;
}

static void topk_vector(const struct job *job, uint64_t vector, struct entry *heap) {
    const struct ree_topk_params *p = job->p;
    uint64_t outer = vector / p->inner, inner = vector % p->inner;
    const char *x = job->x + (outer * p->n * p->inner + inner) * job->size;
    size_t step = p->inner * job->size;
    for (uint32_t i = 0; i < p->k; i++)
        heap[i] = (struct entry){key_of(p->dtype, p->largest, x + i * step), i};
    for (uint32_t i = p->k / 2; i-- > 0;)
        sift_down(heap, p->k, i);
    for (uint32_t i = p->k; i < p->n; i++) {
        // If the keys are equal, the pair in the heap has the lower index and stays.
        uint64_t key = key_of(p->dtype, p->largest, x + i * step);
        if (key >= heap[0].key) continue;
        heap[0] = (struct entry){key, i};
        sift_down(heap, p->k, 0);
    }
    for (uint32_t n = p->k; n-- > 1;) {
        struct entry last = heap[0];
        heap[0] = heap[n];
        heap[n] = last;
        sift_down(heap, n, 0);
    }
    for (uint32_t i = 0; i < p->k; i++) {
        uint64_t to = (outer * p->k + i) * p->inner + inner;
        const char *value = x + heap[i].index * step;
        char *out = job->values + to * job->size;
        job->indices[to] = heap[i].index;
        if (p->dtype == REE_F32) {
            float v;
            memcpy(&v, value, 4);
            v = ree_cpu_canonical_nan(v);
            memcpy(out, &v, 4);
        } else if (p->dtype == REE_F64) {
            uint64_t v;
            memcpy(&v, value, 8);
            v = ree_f64_canon(v);
            memcpy(out, &v, 8);
        } else {
            memcpy(out, value, job->size);
        }
    }
}

static void topk_vectors(const void *user, const struct ree_cpu_range *range) {
    for (uint64_t vector = range->begin; vector < range->end; vector++)
        topk_vector(user, vector, range->scratch[0]);
}

enum ree_status ree_cpu_topk(const struct ree_cpu_context *ctx, const struct ree_topk_params *p,
                             void *const *operands, struct ree_error *err) {
    uint64_t n_vectors = (uint64_t)p->outer * p->inner;
    if (n_vectors == 0 || p->k == 0) return REE_OK;
    struct job job = {
        .p = p,
        .x = operands[0],
        .values = operands[1],
        .indices = operands[2],
        .size = ree_dtype_size((enum ree_dtype)p->dtype),
    };
    uint32_t n_threads = ree_cpu_threads_for(ctx, n_vectors * (p->n * 3ull + p->k * 20ull));
    if (n_vectors == 1) n_threads = 1;
    REE_TRY(ree_cpu_scratch_reserve(ctx, n_threads, 0, p->k * sizeof(struct entry), err));
    const struct ree_cpu_loop loop = {
        .n = n_vectors,
        .grain = 1,
        .n_threads = n_threads,
        .body = topk_vectors,
        .job = &job,
    };
    ree_cpu_run_loop(ctx, &loop);
    return REE_OK;
}
