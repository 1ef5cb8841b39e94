// Index tuples of gather and scatter. The tuple at element `at` of the indices selects the offset,
// in elements of the data, sum over j of wrap(index[at + j * component_stride], component_sizes[j])
// * component_strides[j], where wrap(x, n) = x < 0 ? x + n : x.
#ifndef REE_CUDA_INDEX_H
#define REE_CUDA_INDEX_H

#include "kernel.h"

// Returns element `at` of the indices (operand 1); 0 if tuples have no components. P is struct
// ree_gather_params or struct ree_scatter_params.
template <class P>
REE_DEVICE int64_t ree_index_at(const struct ree_cuda_header &h, const P &p, u32 at) {
    if (p.n_components == 0) return 0; // empty tuples
    return p.index_dtype == REE_I64 ? ree_in<int64_t>(h, 1)[at]
                                    : (int64_t)ree_in<int32_t>(h, 1)[at];
}
// Adds the offset of `index`, component j of a tuple, to *place. If the index is out of range,
// reports it with ree_fault and returns false.
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
// Adds the offset of the tuple at element `at` of the indices to *place. `first` is the first
// component of the tuple, which the caller has read. Returns false if a component is out of range.
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
