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

// The parameters, read once, before the first branch (shaders/README.md).
uint data_offset, component_stride;
uint dims[REE_MAX_RANK], data_strides[REE_MAX_RANK], index_strides[REE_MAX_RANK];
uint component_sizes[REE_MAX_RANK], component_strides[REE_MAX_RANK];

void read_parameters(Params p) {
    data_offset = uint(p.data_offset);
    component_stride = uint(p.component_stride);
    [[unroll]] for (uint d = 0u; d < RANK; d++) {
        dims[d] = p.dims[d];
        data_strides[d] = uint(p.data_strides[d]);
        index_strides[d] = uint(p.index_strides[d]);
    }
    [[unroll]] for (uint j = 0u; j < N_COMPONENTS; j++) {
        component_sizes[j] = p.component_sizes[j];
        component_strides[j] = uint(p.component_strides[j]);
    }
}

uvec2 element(ReeWords data, ReeWords indices, uint i) {
    uint from = data_offset, at = 0u;
    [[unroll]] for (uint k = 1u; k <= RANK; k++) {
        uint d = RANK - k, c = d > 0u ? i % dims[d] : i;
        if (d > 0u) i /= dims[d];
        from += c * data_strides[d];
        at += c * index_strides[d];
    }
    bool ok = true;
    [[unroll]] for (uint j = 0u; j < N_COMPONENTS; j++) {
        uint place = at + j * component_stride, index;
        if (!ree_index(indices, WIDE, place, component_sizes[j], index)) ok = false;
        from += index * component_strides[j];
    }
    return ok ? ree_load_size(data, ELEM_SIZE, from) : uvec2(0u);
}

void main() {
    Params p = Params(ree_params());
    ReeWords data = ree_operand(0), indices = ree_operand(1), result = ree_operand(2);
    read_parameters(p);
    const uint per_thread = ELEM_SIZE < 4u ? 4u / ELEM_SIZE : 1u;
    uint first = ree_thread() * per_thread, n = p.n_elements, word = 0u;
    if (first >= n) return;
    for (uint e = 0u; e < per_thread; e++) {
        if (e > 0u && first + e >= n) break;
        uvec2 value = element(data, indices, first + e);
        if (ELEM_SIZE == 8u) ree_store64(result, first, value);
        else word |= value.x << (e * ELEM_SIZE * 8u);
    }
    if (ELEM_SIZE < 8u) result.w[first / per_thread] = word;
}
