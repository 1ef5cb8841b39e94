#version 460
// conv of 8-bit integers: out[b, g*M + i, o] = expr(sum over (c, k) of x[b, g*C + c, o*stride +
// k*dilation - pad] * w[g*M + i, c, k]), in 32 bits, wrapping around. Positions outside x have the
// pad value, or 0 if there is none. One thread per result.
#include "ree.glsl"
#include "expr.glsl"
#include "conv.glsl"

layout(constant_id = 27) const bool HAS_EPILOGUE = false;
layout(constant_id = 28) const uint X_DTYPE = REE_DT_U8;
layout(constant_id = 29) const uint W_DTYPE = REE_DT_I8;
layout(constant_id = 30) const bool HAS_PAD_VALUE = false;

void main() {
    Params p = Params(ree_params());
    uvec3 in_size = uvec3(p.in_size[0], p.in_size[1], p.in_size[2]);
    uvec3 kernel = uvec3(p.kernel[0], p.kernel[1], p.kernel[2]);
    uvec3 out_size = uvec3(p.out_size[0], p.out_size[1], p.out_size[2]);
    ivec3 dilation = ivec3(p.dilation[0], p.dilation[1], p.dilation[2]);
    uint n_out = out_size.x * out_size.y * out_size.z, n_channels = p.groups * p.m;
    uint index = ree_thread();
    if (index >= p.n * n_channels * n_out) return;
    uint o = index % n_out, channel = index / n_out % n_channels, image = index / n_out / n_channels;
    ivec3 origin = ivec3(o / out_size.z / out_size.y, o / out_size.z % out_size.y, o % out_size.z) *
                       ivec3(p.stride[0], p.stride[1], p.stride[2]) -
                   ivec3(p.pad[0], p.pad[1], p.pad[2]);
    uint in_count = in_size.x * in_size.y * in_size.z;
    uint x_at = (image * p.groups + channel / p.m) * p.c * in_count;
    uint w_at = channel * p.c * kernel.x * kernel.y * kernel.z;
    ReeWords x_words = ree_operand(0), w_words = ree_operand(1);
    uint n_factors = HAS_PAD_VALUE ? 3u : 2u;
    uint pad_value = HAS_PAD_VALUE ? ree_load(ree_operand(2), X_DTYPE, 0u).x : 0u;
    uint acc = 0u;
    for (uint c = p.c; c > 0u; c--, x_at += in_count) {
        for (uint z = 0u; z < kernel.x; z++) {
            for (uint y = 0u; y < kernel.y; y++) {
                for (uint x = 0u; x < kernel.z; x++, w_at++) {
                    // a negative coordinate becomes a large uint
                    uvec3 at = uvec3(origin + ivec3(z, y, x) * dilation);
                    uint value = pad_value;
                    if (all(lessThan(at, in_size)))
                        value = ree_load(x_words, X_DTYPE,
                                         x_at + (at.x * in_size.y + at.y) * in_size.z + at.z).x;
                    acc += value * ree_load(w_words, W_DTYPE, w_at).x;
                }
            }
        }
    }
    if (HAS_EPILOGUE) {
        ReeExprState epilogue =
            ree_expr_begin(ReeExpr(ree_address_add(ree_params(), EPILOGUE_OFFSET)), n_factors);
        uint n_tensors = 0u;
        [[unroll]] for (uint e = 0u; e < EXPR_N_OPERANDS; e++)
            n_tensors += ree_expr_dtype(e) < EXPR_IOTA ? 1u : 0u;
        uvec2 value = ree_expr_result(ree_expr_epilogue(epilogue, index, acc));
        ree_store(ree_operand(n_factors + n_tensors), EXPR_OUT_DTYPE, index, value);
    } else {
        ree_operand(n_factors).w[index] = acc;
    }
}
