// Index tuples of gather and scatter. The offset of the tuple at element `at` is the sum over j of
// wrap(index[at + j * step], size[j]) * stride[j], with wrap(x, n) = x < 0 ? x + n : x.
#ifndef REE_DEVICE_CPU_GATHER_H
#define REE_DEVICE_CPU_GATHER_H

#include "device/cpu/cpu_internal.h"

struct ree_cpu_indices {
    const void *data;
    bool wide; // indices are int64; false: int32
    uint32_t n_components;
    int64_t step;
    const uint32_t *sizes;
    const int32_t *strides;
};

// An index out of range that one thread found. `at` is the number of its tuple: of all threads'
// faults, the one with the lowest `at` is reported, for any number of threads.
struct ree_cpu_index_fault {
    uint64_t at; // number of the index tuple that is out of range; UINT64_MAX: no fault
    int64_t index;
    uint32_t size;
};

static inline int64_t ree_cpu_index_at(const struct ree_cpu_indices *indices, int64_t at) {
    return indices->wide ? ((const int64_t *)indices->data)[at]
                         : ((const int32_t *)indices->data)[at];
}

// Sets *out to the offset, in elements, of the tuple whose first component is element `at` of the
// indices. If a component is out of range, returns false and sets fault->index and fault->size.
static inline bool ree_cpu_index_offset(const struct ree_cpu_indices *indices, int64_t at,
                                        int64_t *out, struct ree_cpu_index_fault *fault) {
    int64_t offset = 0;
    for (uint32_t j = 0; j < indices->n_components; j++) {
        int64_t index = ree_cpu_index_at(indices, at + j * indices->step);
        int64_t size = indices->sizes[j];
        if (index < -size || index >= size) {
            fault->index = index;
            fault->size = indices->sizes[j];
            return false;
        }
        offset += (index < 0 ? index + size : index) * indices->strides[j];
    }
    *out = offset;
    return true;
}

// Fails with REE_INVALID, describing the fault with the lowest `at`, if any of faults[n] is one;
// otherwise returns REE_OK (gather.c).
enum ree_status ree_cpu_index_report(const struct ree_cpu_index_fault *faults, uint32_t n,
                                     struct ree_error *err);

#endif
