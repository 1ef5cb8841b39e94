#version 460
// attention, last step: y = chunk-dot(w, v) over the keys of each query's sums, NUMERICS.md,
// "Attention".
//
// With TILE_STAGE 1 the shader stores the chunks' results in scratch memory,
// [n_chunks][rows][v_head_dim]; with TILE_STAGE 2 it adds them in ascending order, one thread per
// output.
//
// The rows of a tile may have sums over different chunks. All rows are summed over the union of
// these chunks: an extra chunk adds zeros, unless a value in it is infinite or NaN. A sum that is
// NaN is therefore computed again, over the row's own chunks only.
#include "ree.glsl"
#include "chunks.glsl"
#include "attention.glsl"
#ifdef NARROW
#include "factor.glsl"
#endif

#define TileColumn uint
#define TileStep uint

ReeWords v_words;
uint w_base, v_base, v_row, v_element, w_row, tile_product;

TileColumn tile_column(uint j) { return v_base + j * v_element; }
// With pages a TileStep is the number of a key; otherwise it is the offset of the key's value.
const bool IN_PAGES = PAGE_BITS != 0u && !V_COPY;
TileStep tile_step(uint k) { return IN_PAGES ? k : k * v_row; }
void tile_next(inout TileStep s) { s += IN_PAGES ? 1u : v_row; }
float tile_a(uint i, uint k) {
    return uintBitsToFloat(attention_scratch().w[w_base + i * w_row + k]);
}
float tile_b(TileStep s, TileColumn c) {
    if (IN_PAGES) s = attention_key(s) * v_row;
#ifdef NARROW
    return uintBitsToFloat(factor_load(v_words, V_DTYPE, s + c));
#else
    return uintBitsToFloat(v_words.w[s + c]);
#endif
}

uint sum_alone(uint query, uint i, uint j) {
    uint first, end;
    attention_keys(query, first, end);
    TileColumn c = tile_column(j);
    ReeChunks s = ree_chunks_begin();
    for (uint k = first; k < end; k++)
        ree_chunks_fma(s, floatBitsToUint(tile_a(i, k)), floatBitsToUint(tile_b(tile_step(k), c)));
    return ree_canon(ree_chunks_end(s));
}

void tile_store(uint i, uint j, uint bits) {
    AttentionRow r = attention_row(tile_product, i);
    if (HAS_RANGE && bits == REE_NAN) bits = sum_alone(r.query, i, j);
    uint at = r.batch * uint(p.out_strides[0]) + r.head * uint(p.out_strides[1]) +
              r.query * uint(p.out_strides[2]) + j;
    ReeWords(p.result).w[at] = bits;
}

uint chunk_base, n_columns, n_rows;
void tile_store_chunk(uint i, uint j, uint bits) {
    attention_scratch().w[chunk_base + (tile_product * n_rows + i) * n_columns + j] = bits;
}

#include "tile.glsl"

void add_chunks(uint index, uint chunks, uint n_outputs) {
    uint row = index / n_columns, j = index % n_columns, first, end, sum = 0u;
    tile_product = row / n_rows;
    row %= n_rows;
    attention_keys(attention_row(tile_product, row).query, first, end);
    for (uint c = first / REE_CHUNK; c * REE_CHUNK < end; c++) {
        uint part = attention_scratch().w[chunks + c * n_outputs + index];
        sum = c * REE_CHUNK == first ? part : ree_add(sum, part);
    }
    AttentionRow r = attention_row(tile_product, row);
    uint at = r.batch * uint(p.out_strides[0]) + r.head * uint(p.out_strides[1]) +
              r.query * uint(p.out_strides[2]) + j;
    ReeWords(p.result).w[at] = ree_canon(ree_plus_zero(sum));
}

void main() {
    attention_read();
    uint m = attention_rows(), n = p.v_head_dim;
    uint lanes = gl_WorkGroupSize.x, width = TILE_COLUMNS * lanes;
    uint tiles_j = (n + width - 1u) / width, tiles_i = (m + TM - 1u) / TM, group = ree_group();
    uint n_products = attention_products(), n_outputs = n_products * m * n;
    uint n_chunks = TILE_STAGE == 0u ? 1u : (p.kv_len + REE_CHUNK - 1u) / REE_CHUNK;
    uint scores = attention_scores(), chunks = scores + n_products * m * p.kv_len;
    n_columns = n;
    n_rows = m;
    if (TILE_STAGE == 2u) {
        if (ree_thread() < n_outputs) add_chunks(ree_thread(), chunks, n_outputs);
        return;
    }
    uint chunk = group % n_chunks;
    group /= n_chunks;
    uint tile_j = group % tiles_j, tile_i = group / tiles_j % tiles_i;
    tile_product = group / (tiles_j * tiles_i);
    if (tile_product >= n_products) return;
    AttentionRow r = attention_row(tile_product, 0u);
    uint kv_head = r.head / (p.n_heads / p.n_kv_heads), i0 = tile_i * TM, i1 = min(i0 + TM, m);
    w_base = scores + tile_product * m * p.kv_len;
    w_row = p.kv_len;
    uvec2 address = ree_block().operands[2];
    if (V_COPY) {
        address = p.scratch;
        v_base = attention_k_copy() +
                 (r.batch * p.n_kv_heads + kv_head) * p.kv_len * p.v_head_dim;
        v_row = p.v_head_dim;
        v_element = 1u;
    } else {
        v_base = uint(p.v_offset) + r.batch * uint(p.v_strides[0]) + kv_head * uint(p.v_strides[1]);
        v_row = uint(p.v_strides[2]);
        v_element = uint(p.v_strides[3]);
    }
    v_words = ReeWords(address);
    attention_use_pages(r.batch);
    // The range from the first key of the first row's sums to the last key of the last row's sums.
    // It contains the keys of all rows, because rows are ordered by query. Rows of several heads
    // (COMBINED) are not; then the range is that of all queries.
    uint k_begin, k_end, other;
    attention_keys(COMBINED ? 0u : i0, k_begin, other);
    attention_keys(COMBINED ? p.q_len - 1u : i1 - 1u, other, k_end);
    k_begin = min(k_begin, k_end);
    if (TILE_STAGE == 1u) {
        chunk_base = chunks + chunk * n_outputs;
        if (chunk * REE_CHUNK < k_begin || chunk * REE_CHUNK >= k_end) return;
        k_begin = chunk * REE_CHUNK;
        k_end = min(k_begin + REE_CHUNK, k_end);
    }
    tile_run(i0, tile_j * width + ree_local(), lanes, m, n, k_begin, k_end);
}
