// Index tuples, of gather and scatter: sum over j of wrap(index[at + j * step], size[j]) *
// stride[j], wrap(x, n) = x < 0 ? x + n : x.
#ifndef REE_CUDA_INDEX_H
#define REE_CUDA_INDEX_H

#include "kernel.h"

// Adds the tuple at element `at` of operand 1 to *place. An index out of range is reported, and the
// result false. P is struct ree_gather_params or struct ree_scatter_params.
template <class P>
REE_DEVICE bool ree_add_tuple(const struct ree_cuda_header &h, const P &p, u32 at, u32 *place) {
    REE_NO_UNROLL
    for (u32 j = 0; j < p.n_components; j++, at += (u32)p.component_stride) {
        int64_t index = p.index_dtype == REE_I64 ? ree_in<int64_t>(h, 1)[at]
                                                 : (int64_t)ree_in<int32_t>(h, 1)[at];
        int64_t size = p.component_sizes[j];
        if (index < -size || index >= size) {
            ree_fault(h, (u64)index);
            return false;
        }
        *place += (u32)(index < 0 ? index + size : index) * (u32)p.component_strides[j];
    }
    return true;
}

#endif
