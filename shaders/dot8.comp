#version 460
// Second step of matmul and conv of 8-bit operands: out[b, i, j] = expr(sum over l of A[b, i, l] *
// B[b, l, j]), in 32 bits, wrapping around, so any order gives the same bits. matmul_pack.comp or
// conv_pack.comp has packed four terms into each word: A is [batch][m][n_words], B is
// [batch][n_words][n]. A thread computes 8 x 4 results in registers; its columns are one workgroup
// size apart.
//
//     DOT8   uses the device's four-byte dot product; otherwise multiplications
//     CONV   for conv (A is the weights of a group, j an output position); otherwise for matmul
#include "ree.glsl"
#include "expr.glsl"
#include "dot8.glsl"
#ifdef CONV
#include "conv.glsl"
#else
#include "matmul.glsl"
#endif

layout(constant_id = 27) const bool HAS_EPILOGUE = false;
layout(constant_id = 28) const uint N_FACTORS = 2; // operands before the epilogue's tensors
layout(constant_id = 29) const bool A_SIGNED = false;
layout(constant_id = 30) const bool B_SIGNED = false;
// Packed copies in scratch memory: 1: one for all batches, 2: one per batch.
layout(constant_id = 31) const uint A_COPIES = 1;
layout(constant_id = 32) const uint B_COPIES = 1;

ReeExprState epilogue;
ReeWords out_words;

void store(const uint index, const uint sum) {
    if (HAS_EPILOGUE) {
        uvec2 value = ree_expr_result(ree_expr_epilogue(epilogue, index, sum));
        ree_store(out_words, EXPR_OUT_DTYPE, index, value);
    } else {
        out_words.w[index] = sum;
    }
}

#define ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define TM 8u
#define TN 4u

void main() {
    Params p = Params(ree_params());
#ifdef CONV
    uint m = p.m, n = p.out_size[0] * p.out_size[1] * p.out_size[2], n_batch = p.n * p.groups;
    uint n_terms = p.c * p.kernel[0] * p.kernel[1] * p.kernel[2];
#else
    uint m = p.m, n = p.n, n_batch = p.n_batch, n_terms = p.k;
#endif
    uint n_words = (n_terms + 3u) / 4u, lanes = gl_WorkGroupSize.x;
    uint tiles_j = (n + TN * lanes - 1u) / (TN * lanes), tiles_i = (m + TM - 1u) / TM;
    uint group = ree_group(), tile_j = group % tiles_j, tile_i = group / tiles_j % tiles_i;
    uint batch = group / (tiles_j * tiles_i);
    if (batch >= n_batch) return;
#ifdef CONV
    uint n_a = p.groups, a_batch = batch % p.groups, b_batch = batch;
#else
    uint n_a = A_COPIES == 2u ? n_batch : 1u;
    uint a_batch = A_COPIES == 2u ? batch : 0u, b_batch = B_COPIES == 2u ? batch : 0u;
#endif
    uint i0 = tile_i * TM, j0 = tile_j * TN * lanes + ree_local();
    ReeWords words = ree_scratch();
    uint b_at = n_a * m * n_words + b_batch * n_words * n;
    uvec4 columns = b_at + min(j0 + lanes * uvec4(0u, 1u, 2u, 3u), uvec4(n - 1u));
    // A row or column past the end is computed as the last one and not stored.
#define DECLARE(i)                                                                                 \
    uvec4 acc##i = uvec4(0u);                                                                      \
    uint row##i = (a_batch * m + min(i0 + uint(i), m - 1u)) * n_words;
    ROWS(DECLARE)
    for (uint w = 0u; w < n_words; w++) {
        uvec4 b = uvec4(words.w[columns.x], words.w[columns.y], words.w[columns.z],
                        words.w[columns.w]);
        columns += n;
        Bytes b0 = bytes_of(b.x, B_SIGNED), b1 = bytes_of(b.y, B_SIGNED),
              b2 = bytes_of(b.z, B_SIGNED), b3 = bytes_of(b.w, B_SIGNED);
#define DOT(a, b) dot8(a, b, A_SIGNED, B_SIGNED)
#define STEP(i)                                                                                    \
    {                                                                                              \
        Bytes a = bytes_of(words.w[row##i + w], A_SIGNED);                                         \
        acc##i += uvec4(DOT(a, b0), DOT(a, b1), DOT(a, b2), DOT(a, b3));                           \
    }
        ROWS(STEP)
    }
    uint n_tensors = 0u;
    if (HAS_EPILOGUE) {
        epilogue = ree_expr_begin(ReeExpr(ree_address_add(ree_params(), EPILOGUE_OFFSET)), N_FACTORS);
        [[unroll]] for (uint e = 0u; e < EXPR_N_OPERANDS; e++)
            n_tensors += ree_expr_dtype(e) < EXPR_IOTA ? 1u : 0u;
    }
    out_words = ree_operand(N_FACTORS + n_tensors);
    [[dont_unroll]] for (uint q = 0u; q < TM * TN; q++) {
        uint i = i0 + q / TN, j = j0 + q % TN * lanes;
        uvec4 row;
#define GET(r)                                                                                     \
    if (q / TN == uint(r)) row = acc##r;
        ROWS(GET)
        if (i < m && j < n) store((batch * m + i) * n + j, row[q % TN]);
    }
}
