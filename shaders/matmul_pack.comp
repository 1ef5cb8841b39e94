#version 460
// First step of a matmul of 8-bit operands; dot8.comp is the second. Packs four neighbours along k
// of one operand into one word in scratch memory, with zeros past the end. A is [batch][m][k / 4]
// at the start, B is [batch][k / 4][n] after A. An operand that all batches share is stored once.
// One thread per word.
#include "ree.glsl"
#include "matmul.glsl"

layout(constant_id = 16) const bool IS_B = false;
layout(constant_id = 17) const uint BATCH_RANK = 0;
layout(constant_id = 18) const bool SHARED = false;
layout(constant_id = 19) const uint A_COPIES = 1; // of A: 1: one for all batches, 2: one per batch

void main() {
    Params p = Params(ree_params());
    uint index = ree_thread(), n_words = (p.k + 3u) / 4u;
    uint size = n_words * (IS_B ? p.n : p.m);
    if (index >= (SHARED ? 1u : p.n_batch) * size) return;
    uint batch = index / size, at = index % size;
    uint a, b;
    matmul_batch(p, BATCH_RANK, batch, a, b);
    uint word = IS_B ? at / p.n : at % n_words;
    uint vector = IS_B ? at % p.n : at / n_words; // a column of B, a row of A
    uint from = IS_B ? b + vector * uint(p.b_stride_n) : a + vector * uint(p.a_stride_m);
    uint step = uint(IS_B ? p.b_stride_k : p.a_stride_k);
    ReeWords bytes = ReeWords(ree_block().operands[IS_B ? 1 : 0]);
    uint packed = 0u;
    for (uint q = 0u; q < 4u; q++) {
        uint k = word * 4u + q;
        if (k < p.k) packed |= ree_load8(bytes, from + k * step) << (8u * q);
    }
    uint begin = IS_B ? (A_COPIES == 2u ? p.n_batch : 1u) * p.m * n_words : 0u;
    ree_scratch().w[begin + index] = packed;
}
