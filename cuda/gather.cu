// gather: out[i] = data[offset + sum(i * data_stride) + offset of the index tuple of i]. Moves
// bytes without arithmetic (src/repops/repop.h).
//
// A thread moves one element or, if rows of data are copied whole, a unit of up to 16 bytes. Memory
// traffic: the size of the output twice; indices come from caches. An index out of range is
// reported and nothing is stored for it.
#include "index.h"

template <class T>
REE_DEVICE void gather_one(const struct ree_cuda_header &h, const struct ree_cuda_gather_params &p,
                           u32 i) {
    u32 from = (u32)p.p.data_offset, at = 0, rest = i;
    REE_NO_UNROLL
    for (u32 d = p.p.rank; d-- > 0;) {
        u32 coordinate, q = ree_divide(rest, p.dims[d], &coordinate);
        from += coordinate * (u32)p.p.data_strides[d];
        at += coordinate * (u32)p.p.index_strides[d];
        rest = q;
    }
    if (!ree_add_tuple(h, p.p, at, ree_index_at(h, p.p, at), &from)) return;
    ree_out<T>(h, 2)[i] = ree_in<T>(h, 0)[from];
}

REE_KERNEL(gather_elements, struct ree_cuda_gather_params, 256) {
    u32 i = ree_thread();
    if (i >= p.p.n_elements) return;
    switch (p.p.elem_size) {
    case 16: gather_one<uint4>(h, p, i); break;
    case 8: gather_one<uint64_t>(h, p, i); break;
    case 4: gather_one<uint32_t>(h, p, i); break;
    case 2: gather_one<uint16_t>(h, p, i); break;
    default: gather_one<uint8_t>(h, p, i);
    }
}
