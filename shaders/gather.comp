#version 460
// gather: out[i] = data[offset + sum(i * data_stride) + sum over j of wrap(index[sum(i *
// index_stride) + j * component_stride], size[j]) * stride[j]]. Moves bytes without arithmetic.
//
// A thread moves one element, or all elements of one output word if they have 1 or 2 bytes. An
// index out of range is reported, and 0 is stored for it.
#include "index.glsl"

layout(constant_id = 16) const uint ELEM_SIZE = 4;
layout(constant_id = 17) const bool WIDE = false; // indices are i64
layout(constant_id = 18) const uint RANK = 1;
layout(constant_id = 19) const uint N_COMPONENTS = 1;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Params {
    uint elem_size;
    uint index_dtype;
    uint rank;
    uint n_elements;
    uint dims[REE_MAX_RANK];
    int data_offset;
    int data_strides[REE_MAX_RANK];
    int index_strides[REE_MAX_RANK];
    uint n_components;
    int component_stride;
    uint component_sizes[REE_MAX_RANK];
    int component_strides[REE_MAX_RANK];
};

uvec2 element(Params p, uint i) {
    ReeWords data = ree_operand(0), indices = ree_operand(1);
    uint from = uint(p.data_offset), at = 0u;
    [[unroll]] for (uint d = RANK; d-- > 0u;) {
        uint c = d > 0u ? i % p.dims[d] : i;
        if (d > 0u) i /= p.dims[d];
        from += c * uint(p.data_strides[d]);
        at += c * uint(p.index_strides[d]);
    }
    bool ok = true;
    [[unroll]] for (uint j = 0u; j < N_COMPONENTS; j++) {
        uint place = at + j * uint(p.component_stride), index;
        if (!ree_index(indices, WIDE, place, p.component_sizes[j], index)) ok = false;
        from += index * uint(p.component_strides[j]);
    }
    return ok ? ree_load_size(data, ELEM_SIZE, from) : uvec2(0u);
}

void main() {
    Params p = Params(ree_params());
    ReeWords result = ree_operand(2);
    const uint per_thread = ELEM_SIZE < 4u ? 4u / ELEM_SIZE : 1u;
    uint first = ree_thread() * per_thread, n = p.n_elements, word = 0u;
    if (first >= n) return;
    for (uint e = 0u; e < per_thread && first + e < n; e++) {
        uvec2 value = element(p, first + e);
        if (ELEM_SIZE == 8u) ree_store64(result, first, value);
        else word |= value.x << (e * ELEM_SIZE * 8u);
    }
    if (ELEM_SIZE < 8u) result.w[first / per_thread] = word;
}
