#version 460
// resize: out[o, j, i] = chunk-dot over the taps t of (w[j, t], x[o, index[j, t], i]); if index[j,
// 0] is -1, the extrapolation value. NUMERICS.md sections 3 and 7.
//
// A thread computes one output.
#include "ree.glsl"
#include "chunks.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Params {
    uint outer, k_in, k_out, inner, taps;
    uint extrapolation; // bits of the float32
};

void main() {
    Params p = Params(ree_params());
    uint inner = p.inner, k_in = p.k_in, taps = p.taps, o = ree_thread();
    if (o >= p.outer * p.k_out * inner) return;
    ReeWords x = ree_operand(0), index = ree_operand(1), w = ree_operand(2);
    ReeWords result = ree_operand(3);
    uint first = o / inner % p.k_out * taps;
    uint start = o / inner / p.k_out * k_in * inner + o % inner;
    if (taps > 0u && index.w[first] == 0xFFFFFFFFu) {
        result.w[o] = ree_canon(p.extrapolation);
        return;
    }
    ReeChunks s = ree_chunks_begin();
    for (uint t = first; t < first + taps; t++) {
        uint i = index.w[t];
        if (i >= k_in) {
            ree_fault(i, uint(int(i) >> 31));
            return;
        }
        ree_chunks_fma(s, w.w[t], x.w[start + i * inner]);
    }
    result.w[o] = ree_canon(ree_chunks_end(s));
}
