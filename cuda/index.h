// Index tuples of gather and scatter: sum over j of wrap(index[at + j * step], size[j]) *
// stride[j], wrap(x, n) = x < 0 ? x + n : x.
#ifndef REE_CUDA_INDEX_H
#define REE_CUDA_INDEX_H

#include "kernel.h"

// P is struct ree_gather_params or struct ree_scatter_params; indices are operand 1.
template <class P>
REE_DEVICE int64_t ree_index_at(const struct ree_cuda_header &h, const P &p, u32 at) {
    if (p.n_components == 0) return 0; // empty tuples
    return p.index_dtype == REE_I64 ? ree_in<int64_t>(h, 1)[at]
                                    : (int64_t)ree_in<int32_t>(h, 1)[at];
}
// Adds component j to *place. Reports an index out of range and returns false.
template <class P>
REE_DEVICE bool ree_add_index(const struct ree_cuda_header &h, const P &p, u32 j, int64_t index,
                              u32 *place) {
    int64_t size = p.component_sizes[j];
    if (index < -size || index >= size) {
        ree_fault(h, (u64)index);
        return false;
    }
    *place += (u32)(index < 0 ? index + size : index) * (u32)p.component_strides[j];
    return true;
}
// Adds the tuple at element `at`. `first` is its first component, which was read before.
template <class P>
REE_DEVICE bool ree_add_tuple(const struct ree_cuda_header &h, const P &p, u32 at, int64_t first,
                              u32 *place) {
    if (p.n_components > 0 && !ree_add_index(h, p, 0, first, place)) return false;
    REE_NO_UNROLL
    for (u32 j = 1; j < p.n_components; j++)
        if (!ree_add_index(h, p, j, ree_index_at(h, p, at + j * (u32)p.component_stride), place))
            return false;
    return true;
}

#endif
