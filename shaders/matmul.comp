#version 460
// matmul: out[b, i, j] = expr(sum over l of A[b, i, l] * B[b, l, j]), float32, NUMERICS.md
// section 3 (dot).
//
// TILE_STAGE 1 leaves the chunks' results in the scratch memory, [n_chunks][n_batch * m * n], and 2
// adds them in ascending order, an output to a thread.
#include "ree.glsl"
#include "expr.glsl"

layout(constant_id = 27) const bool HAS_EPILOGUE = false;
layout(constant_id = 28) const uint BATCH_RANK = 0;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Params {
    uint dtype;
    uint m, n, k;
    int a_offset, b_offset;
    int a_stride_m, a_stride_k;
    int b_stride_k, b_stride_n;
    uint batch_rank;
    uint n_batch;
    uint batch_dims[REE_MAX_RANK];
    int a_batch_strides[REE_MAX_RANK];
    int b_batch_strides[REE_MAX_RANK];
    uint has_epilogue;
};
#define EPILOGUE_OFFSET 148u

#define TileColumn uint
#define TileStep uint

ReeWords a_words, b_words, out_words;
uint a_base, b_base, out_base;
uint a_stride_m, a_stride_k, b_stride_k, b_stride_n, n_columns;
ReeExprState epilogue;

TileColumn tile_column(uint j) { return b_base + j * b_stride_n; }
TileStep tile_step(uint k) { return k * b_stride_k; }
void tile_next(inout TileStep s) { s += b_stride_k; }
float tile_a(uint i, uint k) {
    return uintBitsToFloat(a_words.w[a_base + i * a_stride_m + k * a_stride_k]);
}
float tile_b(TileStep s, TileColumn c) { return uintBitsToFloat(b_words.w[s + c]); }
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
        epilogue = ree_expr_begin(ReeExpr(ree_address_add(ree_params(), EPILOGUE_OFFSET)), 2u);
        [[unroll]] for (uint i = 0u; i < EXPR_N_OPERANDS; i++)
            n_tensors += ree_expr_dtype(i) < EXPR_IOTA ? 1u : 0u;
    }
    out_words = ree_operand(2u + n_tensors);
    if (TILE_STAGE == 2u) {
        add_chunks(ree_thread(), n_outputs, n_chunks);
        return;
    }
    chunk_base = chunk * n_outputs;
    uint k_begin = chunk * REE_CHUNK;
    uint k_end = TILE_STAGE == 1u ? min(k_begin + REE_CHUNK, k) : k;
    tile_run(tile_i * TM, tile_j * TN * lanes + ree_local(), lanes, m, n, k_begin, k_end);
}
