#version 460
// First step of a conv of 8-bit operands; dot8.comp is the second. Packs four neighbouring terms,
// in the order (c, kz, ky, kx), into one word in scratch memory, with zeros past the end. The
// weights are at the start, [groups * M][terms / 4]. The inputs under the kernel follow,
// [images * groups][terms / 4][output positions]. Positions outside x have the pad value, or 0 if
// there is none. One thread per word.
#include "ree.glsl"
#include "conv.glsl"

layout(constant_id = 16) const bool IS_X = false;
layout(constant_id = 17) const bool HAS_PAD_VALUE = false;

void main() {
    Params p = Params(ree_params());
    uvec3 in_size = uvec3(p.in_size[0], p.in_size[1], p.in_size[2]);
    uvec3 kernel = uvec3(p.kernel[0], p.kernel[1], p.kernel[2]);
    uvec3 out_size = uvec3(p.out_size[0], p.out_size[1], p.out_size[2]);
    uint kernel_size = kernel.x * kernel.y * kernel.z, n_terms = p.c * kernel_size;
    uint n_words = (n_terms + 3u) / 4u, n_rows = p.groups * p.m, index = ree_thread(), packed = 0u;
    if (!IS_X) {
        if (index >= n_rows * n_words) return;
        uint row = index / n_words, first = index % n_words * 4u;
        for (uint q = 0u; q < 4u && first + q < n_terms; q++)
            packed |= ree_load8(ree_operand(1), row * n_terms + first + q) << (8u * q);
        ree_scratch().w[index] = packed;
        return;
    }
    uint n_out = out_size.x * out_size.y * out_size.z;
    if (index >= p.n * p.groups * n_words * n_out) return;
    uint o = index % n_out, first = index / n_out % n_words * 4u, plane = index / n_out / n_words;
    ivec3 origin = ivec3(o / out_size.z / out_size.y, o / out_size.z % out_size.y, o % out_size.z) *
                       ivec3(p.stride[0], p.stride[1], p.stride[2]) -
                   ivec3(p.pad[0], p.pad[1], p.pad[2]);
    ivec3 dilation = ivec3(p.dilation[0], p.dilation[1], p.dilation[2]);
    uint in_count = in_size.x * in_size.y * in_size.z;
    uint pad_value = HAS_PAD_VALUE ? ree_load8(ree_operand(2), 0u) : 0u;
    for (uint q = 0u; q < 4u && first + q < n_terms; q++) {
        uint c = (first + q) / kernel_size, rest = (first + q) % kernel_size;
        ivec3 k = ivec3(rest / kernel.z / kernel.y, rest / kernel.z % kernel.y, rest % kernel.z);
        uvec3 at = uvec3(origin + k * dilation); // a negative coordinate becomes a large uint
        uint value = pad_value;
        if (all(lessThan(at, in_size)))
            value = ree_load8(ree_operand(0), (plane * p.c + c) * in_count +
                                                  (at.x * in_size.y + at.y) * in_size.z + at.z);
        packed |= value << (8u * q);
    }
    ree_scratch().w[n_rows * n_words + index] = packed;
}
