#version 460
// First steps of a matmul of blockwise activations and weights (matmul_int8.comp): arranges one
// operand by runs in scratch memory (include/matmul_int8.glsl). One thread per run of a row of A or
// of a column of B.
#include "ree.glsl"
#include "matmul.glsl"

layout(constant_id = 16) const bool IS_B = false;
layout(constant_id = 17) const uint A_BLOCK = 32;
layout(constant_id = 18) const uint B_BLOCK = 32;
layout(constant_id = 19) const uint B_BITS = 4;
layout(constant_id = 20) const bool HAS_ZERO_POINTS = false;
layout(constant_id = 21) const bool B_PACKED = false;
#include "matmul_int8.glsl"

// Packs a run of a row, with zeros past the end, in the order in which matmul_int8.comp multiplies
// the bytes or half-bytes of B's words. Also stores the run's sum and scale.
void pack_row(const Params p, const Int8Layout s, const uint index) {
    uint row = index / s.n_runs, run = index % s.n_runs;
    uint a = uint(p.a_offset) + row * uint(p.a_stride_m), step = uint(p.a_stride_k), k = p.k;
    ReeWords bytes = ree_operand(0), words = ree_scratch();
    int sum = 0;
    for (uint w = 0u; w < RUN / 4u; w++) {
        // 4 bits: two words of A belong to each word of B, one to its even numbers and one to its
        // odd numbers.
        uint first = run * RUN + (B_BITS == 4u ? w / 2u * 8u + w % 2u : w * 4u);
        uint distance = B_BITS == 4u ? 2u : 1u, packed = 0u;
        for (uint q = 0u; q < 4u; q++) {
            uint l = first + q * distance;
            uint byte = l < k ? ree_load8(bytes, a + l * step) : 0u;
            packed |= byte << (8u * q);
            sum += bitfieldExtract(int(byte), 0, 8);
        }
        words.w[index * (RUN / 4u) + w] = packed;
    }
    uint block = row * s.a_blocks + run / (A_BLOCK / RUN);
    words.w[s.a_pairs + index * 2u] = uint(sum);
    words.w[s.a_pairs + index * 2u + 1u] = ree_operand(HAS_ZERO_POINTS ? 4u : 3u).w[block];
}

// Copies a run of a column next to the same run of the neighbouring columns, because neighbouring
// threads of matmul_int8.comp read neighbouring columns.
void pack_column(const Params p, const Int8Layout s, const uint index) {
    uint n = p.n, column = index % n, run = index / n;
    ReeWords numbers = ree_operand(1), words = ree_scratch();
    uint from = column * s.column_words + run * RUN_WORDS, to = s.b + index * RUN_WORDS;
    for (uint w = 0u; w < RUN_WORDS; w++) words.w[to + w] = numbers.w[from + w];
    uint block = column * s.b_blocks + run / (B_BLOCK / RUN);
    words.w[s.b_scales + index] = ree_operand(2).w[block];
    if (HAS_ZERO_POINTS) words.w[s.b_zeros + index] = ree_load8(ree_operand(3), block);
}

void main() {
    Params p = Params(ree_params());
    Int8Layout s = int8_layout(p);
    uint index = ree_thread();
    if (index >= (IS_B ? p.n : p.m) * s.n_runs) return;
    if (IS_B)
        pack_column(p, s, index);
    else
        pack_row(p, s, index);
}
