#version 460
// copy: dst[dst_offset + sum(i * dst_stride)] = src[src_offset + sum(i * src_stride)]. Moves bytes
// without arithmetic.
//
// DENSE: the written part of dst is contiguous and starts at a word. If elements have 1 or 2 bytes,
// a thread then writes a whole word. The last word may contain other data, which must not change;
// if it is not full, its elements are written one by one. In all other cases a thread moves one
// element.
#include "ree.glsl"

layout(constant_id = 16) const uint ELEM_SIZE = 4;
layout(constant_id = 17) const uint RANK = 1;
layout(constant_id = 18) const bool DENSE = true;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Params {
    uint elem_size;
    uint rank;
    uint n_elements;
    int src_offset, dst_offset;
    uint dims[REE_MAX_RANK];
    int src_strides[REE_MAX_RANK];
    int dst_strides[REE_MAX_RANK];
};

void main() {
    Params p = Params(ree_params());
    ReeWords src = ree_operand(0), dst = ree_operand(1);
    const uint per_thread = DENSE && ELEM_SIZE < 4u ? 4u / ELEM_SIZE : 1u;
    uint first = ree_thread() * per_thread, n = p.n_elements;
    // Read once, before the first branch (shaders/README.md).
    uint src_offset = uint(p.src_offset), dst_offset = uint(p.dst_offset);
    uint dims[REE_MAX_RANK], src_strides[REE_MAX_RANK], dst_strides[REE_MAX_RANK];
    [[unroll]] for (uint d = 0u; d < RANK; d++) {
        dims[d] = p.dims[d];
        src_strides[d] = uint(p.src_strides[d]);
        dst_strides[d] = uint(p.dst_strides[d]);
    }
    if (first >= n) return;
    uint word = 0u;
    for (uint e = 0u; e < per_thread; e++) {
        uint rest = min(first + e, n - 1u);
        uint from = src_offset, to = dst_offset;
        [[unroll]] for (uint k = 1u; k < RANK; k++) {
            uint d = RANK - k, i = rest % dims[d];
            rest /= dims[d];
            from += i * src_strides[d];
            to += i * dst_strides[d];
        }
        from += rest * src_strides[0];
        to += rest * dst_strides[0];
        uvec2 value = ree_load_size(src, ELEM_SIZE, from);
        if (per_thread == 1u || first + per_thread > n) {
            if (first + e < n) ree_store_size(dst, ELEM_SIZE, to, value);
        } else {
            word |= value.x << (e * ELEM_SIZE * 8u);
        }
    }
    if (per_thread > 1u && first + per_thread <= n)
        dst.w[(dst_offset + first) / per_thread] = word;
}
