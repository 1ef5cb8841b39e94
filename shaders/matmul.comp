#version 460
// matmul: out[b, i, j] = expr(sum over l of A[b, i, l] * B[b, l, j]), summed in float32, NUMERICS.md
// section 3 (dot). Narrow types and blockwise weights become float32 as they are read.
//
// TILE_STAGE 1 leaves the chunks' results in the scratch memory, [n_chunks][n_batch * m * n], and 2
// adds them in ascending order, an output to a thread.
#include "ree.glsl"
#include "expr.glsl"

layout(constant_id = 27) const bool HAS_EPILOGUE = false;
layout(constant_id = 28) const uint BATCH_RANK = 0;
layout(constant_id = 29) const uint A_DTYPE = REE_DT_F32;
layout(constant_id = 30) const uint B_DTYPE = REE_DT_F32;
layout(constant_id = 31) const uint B_BLOCK = 0; // 0: plain B
layout(constant_id = 32) const uint B_BITS = 4;
layout(constant_id = 33) const bool HAS_ZERO_POINTS = false;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Params {
    uint dtype;
    uint a_dtype, b_dtype;
    uint m, n, k;
    int a_offset, b_offset;
    int a_stride_m, a_stride_k;
    int b_stride_k, b_stride_n;
    uint batch_rank;
    uint n_batch;
    uint batch_dims[REE_MAX_RANK];
    int a_batch_strides[REE_MAX_RANK];
    int b_batch_strides[REE_MAX_RANK];
    uint b_block, b_bits, has_zero_points;
    uint has_epilogue;
};
#define EPILOGUE_OFFSET 168u

#define TileColumn uint
#define TileStep uint

ReeWords a_words, b_words, scale_words, zero_words, out_words;
uint a_base, b_base, out_base;
uint a_stride_m, a_stride_k, b_stride_k, b_stride_n, n_columns;
ReeExprState epilogue;

TileColumn tile_column(uint j) { return b_base + j * b_stride_n; }
TileStep tile_step(uint k) { return k * b_stride_k; }
void tile_next(inout TileStep s) { s += b_stride_k; }
float load_float(ReeWords p, uint dtype, uint i) {
    uint x = ree_load(p, dtype, i).x;
    if (dtype == REE_DT_F16) x = ree_op_f16_to_f32(x);
    if (dtype == REE_DT_BF16) x = ree_op_bf16_to_f32(x);
    if (dtype == REE_DT_I8 || dtype == REE_DT_U8) x = ree_op_i32_to_f32(x);
    return uintBitsToFloat(x);
}
// Number `at` of the blocks, which lie one after another: (q - z) * scale, rounded once.
float load_block(uint at) {
    uint q = B_BITS == 8u ? ree_load8(b_words, at) : (b_words.w[at >> 3u] >> (at % 8u * 4u)) & 15u;
    uint block = at / max(B_BLOCK, 1u);
    uint z = HAS_ZERO_POINTS ? ree_load8(zero_words, block) : 1u << (B_BITS - 1u);
    return uintBitsToFloat(ree_mul(ree_op_i32_to_f32(q - z), scale_words.w[block]));
}
float tile_a(uint i, uint k) {
    return load_float(a_words, A_DTYPE, a_base + i * a_stride_m + k * a_stride_k);
}
float tile_b(TileStep s, TileColumn c) {
    return B_BLOCK > 0u ? load_block(s + c) : load_float(b_words, B_DTYPE, s + c);
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

uint chunk_base;
void tile_store_chunk(uint i, uint j, uint bits) {
    ree_scratch().w[chunk_base + out_base + i * n_columns + j] = bits;
}

#include "tile.glsl"

void add_chunks(uint index, uint n_outputs, uint n_chunks) {
    ReeWords chunks = ree_scratch();
    uint sum = chunks.w[index];
    for (uint c = 1u; c < n_chunks; c++) sum = ree_add(sum, chunks.w[c * n_outputs + index]);
    out_base = index;
    tile_store(0u, 0u, ree_canon(ree_add(sum, 0u)));
}

void main() {
    Params p = Params(ree_params());
    uint m = p.m, n = p.n, k = p.k;
    uint lanes = gl_WorkGroupSize.x;
    uint tiles_j = (n + TN * lanes - 1u) / (TN * lanes), tiles_i = (m + TM - 1u) / TM;
    uint n_outputs = p.n_batch * m * n;
    uint n_chunks = TILE_STAGE == 0u ? 1u : (k + REE_CHUNK - 1u) / REE_CHUNK;
    uint group = ree_group();
    uint chunk = group % n_chunks;
    group /= n_chunks;
    uint tile_j = group % tiles_j, tile_i = group / tiles_j % tiles_i;
    uint batch = group / (tiles_j * tiles_i);
    if (TILE_STAGE == 2u ? ree_thread() >= n_outputs : batch >= p.n_batch) return;
    a_words = ree_operand(0);
    b_words = ree_operand(1);
    uint n_factors = 2u;
    if (B_BLOCK > 0u) scale_words = ree_operand(n_factors++);
    if (B_BLOCK > 0u && HAS_ZERO_POINTS) zero_words = ree_operand(n_factors++);
    a_base = uint(p.a_offset);
    b_base = uint(p.b_offset);
    uint rest = batch;
    for (uint d = BATCH_RANK; d-- > 0u;) {
        uint c = rest % p.batch_dims[d];
        rest /= p.batch_dims[d];
        a_base += c * uint(p.a_batch_strides[d]);
        b_base += c * uint(p.b_batch_strides[d]);
    }
    a_stride_m = uint(p.a_stride_m);
    a_stride_k = uint(p.a_stride_k);
    b_stride_k = uint(p.b_stride_k);
    b_stride_n = uint(p.b_stride_n);
    n_columns = n;
    out_base = batch * m * n;
    uint n_tensors = 0u;
    if (HAS_EPILOGUE) {
        epilogue = ree_expr_begin(ReeExpr(ree_address_add(ree_params(), EPILOGUE_OFFSET)), n_factors);
        [[unroll]] for (uint i = 0u; i < EXPR_N_OPERANDS; i++)
            n_tensors += ree_expr_dtype(i) < EXPR_IOTA ? 1u : 0u;
    }
    out_words = ree_operand(n_factors + n_tensors);
    if (TILE_STAGE == 2u) {
        add_chunks(ree_thread(), n_outputs, n_chunks);
        return;
    }
    chunk_base = chunk * n_outputs;
    uint k_begin = chunk * REE_CHUNK;
    uint k_end = TILE_STAGE == 1u ? min(k_begin + REE_CHUNK, k) : k;
    tile_run(tile_i * TM, tile_j * TN * lanes + ree_local(), lanes, m, n, k_begin, k_end);
}
