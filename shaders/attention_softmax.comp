#version 460
// attention, second step, in place in scratch memory: m = max(t, sink); e = exp(t - m); z =
// chunk-sum(e) + exp(sink - m); w = e / z. NUMERICS.md, "Attention".
//
// GROUP: a workgroup computes each row, for few and long rows; otherwise one thread does.
#include "ree.glsl"
#include "rows.glsl"
#include "attention.glsl"

layout(constant_id = 32) const bool GROUP = false;

uint row_start, row_max; // of the current row: its index in scratch memory, m

uint row_term(uint i) {
    ReeWords scores = attention_scratch();
    uint e = ree_op_exp_f32(ree_sub(scores.w[row_start + i], row_max));
    scores.w[row_start + i] = e;
    return e;
}
void finish(uint i, uint sum) {
    ReeWords weights = attention_scratch();
    weights.w[row_start + i] = ree_op_div_f32(weights.w[row_start + i], sum);
}

uint sink_of(uint row) {
    if (!HAS_SINK) return REE_INF | REE_SIGN;
    uint query = row % p.q_len, head = row / p.q_len % p.n_heads, batch = row / p.q_len / p.n_heads;
    uint at = uint(p.sink_offset) + batch * uint(p.sink_strides[0]) +
              head * uint(p.sink_strides[1]) + query * uint(p.sink_strides[2]);
    return ReeWords(p.sink).w[at];
}

void main() {
    attention_read();
    uint k = p.kv_len;
    uint row = GROUP ? ree_group() : ree_thread();
    if (row >= p.batch * p.n_heads * p.q_len) return;
    row_start = attention_scores() + row * k;
    uint first = GROUP ? ree_local() : 0u, step = GROUP ? gl_WorkGroupSize.x : 1u;
    uint sink = sink_of(row), m = sink;
    for (uint i = first; i < k; i += step)
        m = ree_soft_max(m, attention_scratch().w[row_start + i]);
    row_max = GROUP ? ree_row_max(m) : m;
    bool empty = ZERO_EMPTY && row_max == (REE_INF | REE_SIGN);
    if (empty) row_max = 0u;
    uint sum;
    if (GROUP) {
        sum = ree_row_sum(k, false);
    } else {
        ReeChunks s = ree_chunks_begin();
        for (uint i = 0u; i < k; i++) ree_chunks_add(s, row_term(i));
        sum = ree_chunks_end(s);
    }
    if (HAS_SINK) sum = ree_add(sum, ree_op_exp_f32(ree_sub(sink, row_max)));
    if (empty) sum = REE_ONE;
    if (!GROUP) {
        for (uint i = 0u; i < k; i++) finish(i, sum);
        return;
    }
    // These loops are those of ree_row_sum, so each thread reads only the e that it stored itself.
    uint n_chunks = (k + REE_CHUNK - 1u) / REE_CHUNK;
    for (uint c0 = 0u; c0 < n_chunks; c0 += step) {
        uint at_once = min(step, n_chunks - c0), depth = ree_row_depth(at_once);
        for (uint r0 = 0u; r0 < REE_CHUNK; r0 += depth)
            for (uint j = first; j < at_once * depth; j += step) {
                uint i = ree_row_place(c0, r0, depth, j);
                if (i < k) finish(i, sum);
            }
    }
}
