#version 460
// norm: m = chunk-sum(x) / n; d = x - m (RMS: x); v = chunk-dot(d, d) / n;
// out = (d / sqrt(v + eps)) * scale + bias, each step rounded. NUMERICS.md sections 3 and 7.
//
// GROUP: a workgroup computes each row, for few and long rows; otherwise one thread does.
#include "ree.glsl"
#include "rows.glsl"

layout(constant_id = 16) const bool RMS = false;
layout(constant_id = 17) const bool HAS_SCALE = false;
layout(constant_id = 18) const bool HAS_BIAS = false;
layout(constant_id = 19) const bool GROUP = false;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Params {
    uint rms;
    uint rows, cols;
    uint epsilon; // bits of the float32
    uint has_scale, has_bias;
    uint scale_row_div, scale_row_mod, scale_row_stride, scale_col_stride;
};

ReeWords row_words;
uint row_start, row_mean; // of the current row: index of its first element, m
bool row_is_centred;      // row_term returns d instead of x

uint row_term(uint i) {
    uint x = row_words.w[row_start + i];
    return row_is_centred ? ree_sub(x, row_mean) : x;
}

// Returns the chunk-sum of the row's n terms, or with `squares` the chunk-dot of (term, term).
uint row_sum(uint n, bool squares) {
    if (GROUP) return ree_row_sum(n, squares);
    ReeChunks s = ree_chunks_begin();
    for (uint i = 0u; i < n; i++) {
        uint x = row_term(i);
        if (squares) ree_chunks_fma(s, x, x);
        else ree_chunks_add(s, x);
    }
    return ree_chunks_end(s);
}

void main() {
    Params p = Params(ree_params());
    uint n = p.cols, n_rows = p.rows, epsilon = p.epsilon;
    uint row = GROUP ? ree_group() : ree_thread();
    uint at = row / p.scale_row_div % p.scale_row_mod * p.scale_row_stride;
    uint scale_stride = p.scale_col_stride;
    const uint bias_operand = HAS_SCALE ? 2u : 1u;
    ReeWords scale = ree_operand(1), bias = ree_operand(bias_operand);
    ReeWords result = ree_operand(bias_operand + (HAS_BIAS ? 1u : 0u));
    row_words = ree_operand(0);
    if (row >= n_rows) return;
    uint count = ree_op_u32_to_f32(n);
    row_start = row * n;
    row_is_centred = false;
    if (!RMS) {
        row_mean = ree_div(row_sum(n, false), count);
        row_is_centred = true;
    }
    uint variance = ree_div(row_sum(n, true), count);
    uint deviation = ree_sqrt(ree_add(variance, epsilon));
    uint first = GROUP ? ree_local() : 0u, step = GROUP ? gl_WorkGroupSize.x : 1u;
    for (uint i = first; i < n; i += step) {
        uint y = ree_div(row_term(i), deviation), w = at + i * scale_stride;
        if (HAS_SCALE) y = ree_mul(y, scale.w[w]);
#if REE_PLANT == REE_PLANT_CONTRACTS
        if (HAS_SCALE && HAS_BIAS && REE_FORM_ADD != REE_INTEGER)
            y = ree_soft_fma(ree_div(row_term(i), deviation), scale.w[w], bias.w[w]);
        else
#endif
        if (HAS_BIAS) y = ree_add(y, bias.w[w]);
        result.w[row_start + i] = ree_canon(y);
    }
}
