#version 460
// softmax: m = max x; e = exp(x - m); s = chunk-sum(e); out = e / s, or, if LOG,
// out = (x - m) - log(s). NUMERICS.md sections 3, 4 and 7.
//
// A row is k elements, `inner` apart. GROUP: a workgroup computes each row, for few and long rows;
// otherwise one thread does, and neighbouring threads have neighbouring columns.
#include "ree.glsl"
#include "rows.glsl"

layout(constant_id = 16) const bool LOG = false;
layout(constant_id = 17) const bool GROUP = false;
layout(constant_id = 18) const bool ZERO_EMPTY = false;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Params {
    uint log;
    uint outer, k, inner;
    uint zero_empty;
};

ReeWords row_words, row_results;
uint row_start, row_stride, row_max; // the current row's first element, stride in elements, m

uint shifted(uint i) { // x - m
    return ree_sub(row_words.w[row_start + i * row_stride], row_max);
}
uint row_term(uint i) {
    uint e = ree_op_exp_f32(shifted(i));
    if (!LOG) row_results.w[row_start + i * row_stride] = e;
    return e;
}
// Stores result i. Reads e from where row_term stored it. divisor: s, or log(s) if LOG.
void finish(uint i, uint divisor) {
    uint at = row_start + i * row_stride;
    row_results.w[at] = LOG ? ree_op_sub_f32(shifted(i), divisor)
                            : ree_op_div_f32(row_results.w[at], divisor);
}

void main() {
    Params p = Params(ree_params());
    uint k = p.k, inner = p.inner, n_rows = p.outer * inner;
    uint row = GROUP ? ree_group() : ree_thread();
    row_words = ree_operand(0);
    row_results = ree_operand(1);
    if (row >= n_rows) return;
    row_start = row / inner * k * inner + row % inner;
    row_stride = inner;
    uint first = GROUP ? ree_local() : 0u, step = GROUP ? gl_WorkGroupSize.x : 1u;
    uint m = REE_INF | REE_SIGN;
    for (uint i = first; i < k; i += step)
        m = ree_soft_max(m, row_words.w[row_start + i * row_stride]);
    row_max = GROUP ? ree_row_max(m) : m;
    bool empty = ZERO_EMPTY && row_max == (REE_INF | REE_SIGN);
    if (empty) row_max = 0u;
    if (!GROUP) {
        ReeChunks s = ree_chunks_begin();
        for (uint i = 0u; i < k; i++) ree_chunks_add(s, row_term(i));
        uint sum = empty ? REE_ONE : ree_chunks_end(s);
        uint divisor = LOG ? ree_op_log_f32(sum) : sum;
        for (uint i = 0u; i < k; i++) finish(i, divisor);
        return;
    }
    uint sum = ree_row_sum(k, false);
    if (empty) sum = REE_ONE;
    uint divisor = LOG ? ree_op_log_f32(sum) : sum;
    // These loops are those of ree_row_sum, so each thread reads only the e that it stored itself.
    uint n_chunks = (k + REE_CHUNK - 1u) / REE_CHUNK;
    for (uint c0 = 0u; c0 < n_chunks; c0 += step) {
        uint at_once = min(step, n_chunks - c0), depth = ree_row_depth(at_once);
        for (uint r0 = 0u; r0 < REE_CHUNK; r0 += depth)
            for (uint j = first; j < at_once * depth; j += step) {
                uint i = ree_row_place(c0, r0, depth, j);
                if (i < k) finish(i, divisor);
            }
    }
}
