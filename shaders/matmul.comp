#version 460
// matmul: out[b, i, j] = expr(sum over l of A[b, i, l] * B[b, l, j]), summed in float32,
// NUMERICS.md section 3 (dot).
//
// A and B are float32, or matmul_widen has stored them as float32 in scratch memory. Compiled with
// NARROW, the shader widens narrow types and blockwise weights to float32 when it reads them.
//
// With TILE_STAGE 1 the shader stores the chunks' results in scratch memory, [n_chunks][n_batch * m
// * n]; with TILE_STAGE 2 it adds them in ascending order, one thread per output.
#include "ree.glsl"
#include "expr.glsl"
#include "matmul.glsl"
#ifdef NARROW
#include "factor.glsl"
#endif

layout(constant_id = 27) const bool HAS_EPILOGUE = false;
layout(constant_id = 28) const uint BATCH_RANK = 0;
layout(constant_id = 29) const uint N_FACTORS = 2; // operands before the epilogue's tensors
#ifdef NARROW
layout(constant_id = 30) const uint A_DTYPE = REE_DT_F32;
layout(constant_id = 31) const uint B_DTYPE = REE_DT_F32;
layout(constant_id = 32) const uint B_BLOCK = 0; // 0: plain B
layout(constant_id = 33) const uint B_BITS = 4;
layout(constant_id = 34) const bool HAS_ZERO_POINTS = false;
#else
// Copies in scratch memory: 0: none, 1: one for all batches, 2: one per batch.
layout(constant_id = 30) const uint A_COPIES = 0;
layout(constant_id = 31) const uint B_COPIES = 0;
#endif

#define TileColumn uint
#define TileStep uint

ReeWords a_words, b_words, out_words;
#ifdef NARROW
ReeWords scale_words, zero_words;
#endif
uint a_base, b_base, out_base;
uint a_stride_m, a_stride_k, b_stride_k, b_stride_n, n_columns;
ReeExprState epilogue;

TileColumn tile_column(uint j) { return b_base + j * b_stride_n; }
TileStep tile_step(uint k) { return k * b_stride_k; }
void tile_next(inout TileStep s) { s += b_stride_k; }
float tile_a(uint i, uint k) {
    uint at = a_base + i * a_stride_m + k * a_stride_k;
#ifdef NARROW
    return uintBitsToFloat(factor_load(a_words, A_DTYPE, at));
#else
    return uintBitsToFloat(a_words.w[at]);
#endif
}
float tile_b(TileStep s, TileColumn c) {
#ifdef NARROW
    if (B_BLOCK > 0u)
        return uintBitsToFloat(factor_load_block(b_words, scale_words, zero_words, B_BLOCK, B_BITS,
                                                 HAS_ZERO_POINTS, s + c));
    return uintBitsToFloat(factor_load(b_words, B_DTYPE, s + c));
#else
    return uintBitsToFloat(b_words.w[s + c]);
#endif
}
void tile_store(uint i, uint j, uint bits) {
    uint index = out_base + i * n_columns + j;
    if (HAS_EPILOGUE) {
        uvec2 value = ree_expr_result(ree_expr_epilogue(epilogue, index, bits));
        ree_store(out_words, EXPR_OUT_DTYPE, index, value);
    } else {
        out_words.w[index] = bits;
    }
}

// Returns the words that the copies of A and B occupy in scratch memory. The chunks' results follow
// them.
uint copied_words(uint m, uint n, uint k, uint n_batch) {
#ifdef NARROW
    return 0u;
#else
    return (A_COPIES == 2u ? n_batch : A_COPIES) * m * k + (B_COPIES == 2u ? n_batch : B_COPIES) * k * n;
#endif
}
uint chunk_base;
void tile_store_chunk(uint i, uint j, uint bits) {
    ree_scratch().w[chunk_base + out_base + i * n_columns + j] = bits;
}

#include "tile.glsl"

void add_chunks(uint index, uint n_outputs, uint n_chunks) {
    ReeWords chunks = ree_scratch();
    uint at = chunk_base + index, sum = chunks.w[at];
    for (uint c = 1u; c < n_chunks; c++) sum = ree_add(sum, chunks.w[at + c * n_outputs]);
    out_base = index;
    tile_store(0u, 0u, sum == REE_SIGN ? 0u : ree_canon(sum)); // + 0: -0 becomes +0
}

void main() {
    Params p = Params(ree_params());
    uint m = p.m, n = p.n, k = p.k;
    uint lanes = gl_WorkGroupSize.x;
    uint width = TILE_COLUMNS * lanes;
    uint tiles_j = (n + width - 1u) / width, tiles_i = (m + TM - 1u) / TM;
    uint n_outputs = p.n_batch * m * n;
    uint n_chunks = TILE_STAGE == 0u ? 1u : (k + REE_CHUNK - 1u) / REE_CHUNK;
    uint group = ree_group();
    uint chunk = TILE_STAGE == 2u ? 0u : group % n_chunks;
    group /= n_chunks;
    uint tile_j = group % tiles_j, tile_i = group / tiles_j % tiles_i;
    uint batch = group / (tiles_j * tiles_i);
    matmul_batch(p, BATCH_RANK, batch, a_base, b_base);
    a_stride_m = uint(p.a_stride_m);
    a_stride_k = uint(p.a_stride_k);
    b_stride_k = uint(p.b_stride_k);
    b_stride_n = uint(p.b_stride_n);
    uvec2 a_address = ree_block().operands[0], b_address = ree_block().operands[1];
#ifdef NARROW
    scale_words = ree_operand(2);
    zero_words = ree_operand(3);
    if (B_BLOCK > 0u) { // the numbers of a column are contiguous
        b_stride_k = 1u;
        b_stride_n = (k + B_BLOCK - 1u) / B_BLOCK * B_BLOCK;
    }
#else
    if (A_COPIES > 0u) {
        a_address = ree_block().scratch;
        a_base = A_COPIES == 1u ? 0u : batch * m * k;
        a_stride_m = k;
        a_stride_k = 1u;
    }
    if (B_COPIES > 0u) {
        b_address = ree_block().scratch;
        b_base = (A_COPIES == 2u ? p.n_batch : A_COPIES) * m * k;
        b_base += B_COPIES == 1u ? 0u : batch * k * n;
        b_stride_k = n;
        b_stride_n = 1u;
    }
#endif
    a_words = ReeWords(a_address);
    b_words = ReeWords(b_address);
    n_columns = n;
    out_base = batch * m * n;
    uint n_tensors = 0u;
    if (HAS_EPILOGUE) {
        epilogue = ree_expr_begin(ReeExpr(ree_address_add(ree_params(), EPILOGUE_OFFSET)), N_FACTORS);
        [[unroll]] for (uint i = 0u; i < EXPR_N_OPERANDS; i++)
            n_tensors += ree_expr_dtype(i) < EXPR_IOTA ? 1u : 0u;
    }
    out_words = ree_operand(N_FACTORS + n_tensors);
    chunk_base = copied_words(m, n, k, p.n_batch) + chunk * n_outputs;
    if (TILE_STAGE == 2u ? ree_thread() >= n_outputs : batch >= p.n_batch) return;
    if (TILE_STAGE == 2u) {
        add_chunks(ree_thread(), n_outputs, n_chunks);
        return;
    }
    uint k_begin = chunk * REE_CHUNK;
    uint k_end = TILE_STAGE == 1u ? min(k_begin + REE_CHUNK, k) : k;
    tile_run(tile_i * TM, tile_j * width + ree_local(), lanes, m, n, k_begin, k_end);
}
