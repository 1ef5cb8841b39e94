#version 460
// First step of a matmul whose operands are narrow and used many times: converts one operand to
// dense float32 in scratch memory. A is [batch][m][k] at the start, B is [batch][k][n] after A. An
// operand that all batches share is stored once.
#include "ree.glsl"
#include "primitives.glsl"
#include "matmul.glsl"
#include "factor.glsl"

layout(constant_id = 16) const bool IS_B = false;
layout(constant_id = 17) const uint BATCH_RANK = 0;
layout(constant_id = 18) const bool SHARED = false;
layout(constant_id = 19) const uint FACTOR_DTYPE = REE_DT_F16;
// Copies of A in scratch memory: 0: none, 1: one for all batches, 2: one per batch.
layout(constant_id = 20) const uint A_COPIES = 0;
layout(constant_id = 21) const uint B_BLOCK = 0; // 0: plain B
layout(constant_id = 22) const uint B_BITS = 4;
layout(constant_id = 23) const bool HAS_ZERO_POINTS = false;

void main() {
    Params p = Params(ree_params());
    uint index = ree_thread();
    uint rows = IS_B ? p.k : p.m, columns = IS_B ? p.n : p.k;
    uint size = rows * columns;
    if (index >= (SHARED ? 1u : p.n_batch) * size) return;
    uint batch = index / size, row = index % size / columns, column = index % columns;
    uint a_base, b_base;
    matmul_batch(p, BATCH_RANK, batch, a_base, b_base);
    uint value;
    if (IS_B && B_BLOCK > 0u) {
        uint n_k = (p.k + B_BLOCK - 1u) / B_BLOCK * B_BLOCK;
        value = factor_load_block(ree_operand(1), ree_operand(2), ree_operand(3), B_BLOCK, B_BITS,
                                  HAS_ZERO_POINTS, column * n_k + row);
    } else if (IS_B) {
        value = factor_load(ree_operand(1), FACTOR_DTYPE,
                            b_base + row * uint(p.b_stride_k) + column * uint(p.b_stride_n));
    } else {
        value = factor_load(ree_operand(0), FACTOR_DTYPE,
                            a_base + row * uint(p.a_stride_m) + column * uint(p.a_stride_k));
    }
    uint begin = IS_B ? (A_COPIES == 2u ? p.n_batch : A_COPIES) * p.m * p.k : 0u;
    ree_scratch().w[begin + index] = value;
}
