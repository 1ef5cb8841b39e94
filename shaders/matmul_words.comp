#version 460
// matmul of integers: out[b, i, j] = expr(sum over l of A[b, i, l] * B[b, l, j]), wrapping around,
// in 32 or 64 bits. 8-bit operands are extended to 32 bits. One thread per result.
//
// Compiled with DOUBLE, the shader computes products of float64 instead: sums by the chunk scheme
// of NUMERICS.md section 3, emulated in integers.
#include "ree.glsl"
#include "expr.glsl"
#include "matmul.glsl"

layout(constant_id = 27) const bool HAS_EPILOGUE = false;
layout(constant_id = 28) const uint BATCH_RANK = 0;
layout(constant_id = 29) const bool WIDE = false; // the sum is i64 or u64
layout(constant_id = 30) const uint A_DTYPE = REE_DT_I32;
layout(constant_id = 31) const uint B_DTYPE = REE_DT_I32;

void main() {
    Params p = Params(ree_params());
    uint index = ree_thread(), m = p.m, n = p.n;
    if (index >= m * n * p.n_batch) return;
    uint j = index % n, i = index / n % m, batch = index / n / m;
    uint a, b;
    matmul_batch(p, BATCH_RANK, batch, a, b);
    a += i * uint(p.a_stride_m);
    b += j * uint(p.b_stride_n);
    uint step_a = uint(p.a_stride_k), step_b = uint(p.b_stride_k), n_k = p.k;
    ReeWords a_words = ree_operand(0), b_words = ree_operand(1);
#ifdef DOUBLE
    uvec2 total = uvec2(0u), chunk = uvec2(0u);
    for (uint l = 0u; l < n_k; l++, a += step_a, b += step_b) {
        if (l > 0u && l % REE_CHUNK == 0u) {
            total = l == REE_CHUNK ? chunk : ree_f64_soft_add(total, chunk);
            chunk = uvec2(0u);
        }
        chunk = ree_f64_soft_fma(ree_load64(a_words, a), ree_load64(b_words, b), chunk);
    }
    if (n_k > REE_CHUNK) chunk = ree_f64_soft_add(total, chunk);
    if (chunk == uvec2(0u, REE_SIGN)) chunk = uvec2(0u); // + 0: -0 becomes +0
    ree_store64(ree_operand(2), index, ree_f64_canon(chunk));
    return;
#endif
    if (WIDE) {
        uvec2 acc = uvec2(0u);
        for (uint l = 0u; l < n_k; l++, a += step_a, b += step_b)
            acc = u64_add(acc, u64_mul(ree_load64(a_words, a), ree_load64(b_words, b)));
        ree_store64(ree_operand(2), index, acc);
        return;
    }
    uint acc = 0u;
    for (uint l = 0u; l < n_k; l++, a += step_a, b += step_b)
        acc += ree_load(a_words, A_DTYPE, a).x * ree_load(b_words, B_DTYPE, b).x;
    if (HAS_EPILOGUE) {
        ReeExprState epilogue =
            ree_expr_begin(ReeExpr(ree_address_add(ree_params(), EPILOGUE_OFFSET)), 2u);
        uint n_tensors = 0u;
        [[unroll]] for (uint e = 0u; e < EXPR_N_OPERANDS; e++)
            n_tensors += ree_expr_dtype(e) < EXPR_IOTA ? 1u : 0u;
        uvec2 value = ree_expr_result(ree_expr_epilogue(epilogue, index, acc));
        ree_store(ree_operand(2u + n_tensors), EXPR_OUT_DTYPE, index, value);
    } else {
        ree_operand(2).w[index] = acc;
    }
}
