// attention for prompts: both products, queries by keys and weights by values, are computed with
// the tiles of tile.h. The softmax between them is attention_weights of attention.cu. Scores and
// weights are in scratch memory as in attention.cu, [row][kv_len]. NUMERICS.md, "Attention".
//
// A tile is 64 queries of one head by 64 keys, or by 64 elements of the values. Both products skip
// the chunks of keys that no query of the tile uses: with causality this saves about half of the
// work of a prompt. The kernels need 117 registers and 33 KiB of shared memory, so 4 blocks fit
// into a multiprocessor, as with the 64 x 64 tiles of matmul.
//
// extra[2]: number of pipeline stages of the tiles in shared memory.
#include "attention.h"
#include "tile.h"

typedef tile_64x64 shape;

// 64 queries of one head, and the union of the chunks that their sums include.
struct attention_tile {
    u32 batch, head, kv, scores; // scores: index in scratch memory of the head's first row
    u32 first_query, first_chunk, end_chunk;
};

// Returns row number `query` of the tile's head.
REE_DEVICE struct attention_row attention_query(const struct ree_cuda_header &h,
                                                const struct ree_attention_params &p,
                                                const struct attention_tile &tile, u32 query) {
    const u32 group = p.n_heads / p.n_kv_heads;
    return attention_row_of(h, p, tile.kv, tile.head % group * p.q_len + query);
}

REE_DEVICE struct attention_tile attention_tile_of(const struct ree_cuda_header &h,
                                                   const struct ree_attention_params &p,
                                                   u32 product, u32 tile_i) {
    struct attention_tile tile;
    const u32 group = p.n_heads / p.n_kv_heads;
    tile.batch = product / p.n_heads;
    tile.head = product % p.n_heads;
    tile.kv = tile.batch * p.n_kv_heads + tile.head / group;
    tile.scores = (tile.kv * group + tile.head % group) * p.q_len * p.kv_len;
    tile.first_query = tile_i * shape::rows;
    u32 last = tile.first_query + shape::rows, unused;
    last = last < p.q_len ? last - 1u : p.q_len - 1u;
    // Positions ascend with the queries, and so do both ends of a query's chunk range. The union
    // therefore begins with the first query's chunks and ends with the last query's.
    attention_chunks(p, attention_query(h, p, tile, tile.first_query), &tile.first_chunk, &unused);
    attention_chunks(p, attention_query(h, p, tile, last), &unused, &tile.end_chunk);
    if (tile.first_chunk > tile.end_chunk) tile.first_chunk = tile.end_chunk;
    return tile;
}

// Grid: [batch * n_heads][tiles].
REE_KERNEL_BLOCKS(attention_tile_scores, struct ree_attention_params, 128, 4) {
    REE_SHARED_DYNAMIC(float, shared);
    const u32 tiles_m = (p.q_len + shape::rows - 1u) / shape::rows;
    const u32 tiles_n = (p.kv_len + shape::columns - 1u) / shape::columns;
    u32 tile_i, tile_j;
    tile_place(blockIdx.x % (tiles_m * tiles_n), tiles_m, tiles_n, &tile_i, &tile_j);
    const struct attention_tile tile =
        attention_tile_of(h, p, blockIdx.x / (tiles_m * tiles_n), tile_i);
    const u32 j0 = tile_j * shape::columns, chunk = j0 / REE_CHUNK;
    // No query of the tile uses this chunk, so its scores are never read.
    if (chunk < tile.first_chunk || chunk >= tile.end_chunk) return;

    tile_strided<shape::rows, shape::a_pitch, shape::threads> a;
    a.begin(ree_in<float>(h, 0),
            (u32)p.q_offset + tile.batch * (u32)p.q_strides[0] + tile.head * (u32)p.q_strides[1],
            (u32)p.q_strides[2], (u32)p.q_strides[3], tile.first_query, p.q_len, 0, p.head_dim,
            threadIdx.x);
    tile_strided<shape::columns, shape::b_pitch, shape::threads> b;
    b.begin(ree_in<float>(h, 1),
            (u32)p.k_offset + tile.batch * (u32)p.k_strides[0] +
                tile.kv % p.n_kv_heads * (u32)p.k_strides[1],
            (u32)p.k_strides[2], (u32)p.k_strides[3], j0, p.kv_len, 0, p.head_dim, threadIdx.x);
    tile_run<shape>(a, b, (p.head_dim + TILE_K - 1u) / TILE_K, h.extra[2], shared);

    const struct attention_operands at = attention_operands_of(p);
    const int64_t n_keys = attention_n_keys(h, p, at, tile.batch);
    auto scratch = ree_scratch<float>(h);
    tile_results<shape>(shared, [&](u32 row, u32 column, float4 total) {
        const u32 query = tile.first_query + row, j = j0 + column;
        if (query >= p.q_len) return;
        const struct attention_row r = attention_query(h, p, tile, query);
        const float sums[4] = {total.x, total.y, total.z, total.w};
        REE_UNROLL
        for (u32 e = 0; e < 4u; e++)
            if (j + e < p.kv_len)
                scratch[tile.scores + query * p.kv_len + j + e] =
                    attention_score(h, p, at, r, j + e, n_keys, sums[e]);
    });
}

// Tells tile_run which chunks the sums of each row include. In a chunk that only other rows of the
// tile use, scratch memory holds the row's scores instead of weights, so its products must not
// count. (Weights of 0 would not suffice: 0 times infinity is NaN.)
struct attention_own_chunks {
    const struct ree_cuda_header *h;
    const struct ree_attention_params *p;
    const struct attention_tile *tile;
    REE_DEVICE_MEMBER bool has(u32 row, u32 chunk) const {
        const u32 query = tile->first_query + row;
        return query < p->q_len && attention_has_chunk(*p, attention_query(*h, *p, *tile, query),
                                                       tile->first_chunk + chunk);
    }
};

// Grid: [batch * n_heads][tiles].
REE_KERNEL_BLOCKS(attention_tile_values, struct ree_attention_params, 128, 4) {
    REE_SHARED_DYNAMIC(float, shared);
    const u32 tiles_m = (p.q_len + shape::rows - 1u) / shape::rows;
    const u32 tiles_n = (p.v_head_dim + shape::columns - 1u) / shape::columns;
    u32 tile_i, tile_j;
    tile_place(blockIdx.x % (tiles_m * tiles_n), tiles_m, tiles_n, &tile_i, &tile_j);
    const struct attention_tile tile =
        attention_tile_of(h, p, blockIdx.x / (tiles_m * tiles_n), tile_i);
    const u32 d0 = tile_j * shape::columns, first = tile.first_chunk * REE_CHUNK;
    const u32 end = tile.end_chunk * REE_CHUNK < p.kv_len ? tile.end_chunk * REE_CHUNK : p.kv_len;

    tile_strided<shape::rows, shape::a_pitch, shape::threads> a;
    a.begin(ree_scratch<float>(h), tile.scores, p.kv_len, 1, tile.first_query, p.q_len, first, end,
            threadIdx.x);
    tile_strided<shape::columns, shape::b_pitch, shape::threads> b;
    b.begin(ree_in<float>(h, 2),
            (u32)p.v_offset + tile.batch * (u32)p.v_strides[0] +
                tile.kv % p.n_kv_heads * (u32)p.v_strides[1],
            (u32)p.v_strides[3], (u32)p.v_strides[2], d0, p.v_head_dim, first, end, threadIdx.x);
    const struct attention_own_chunks chunks = {&h, &p, &tile};
    const u32 n_slices = end > first ? (end - first + TILE_K - 1u) / TILE_K : 0u;
    tile_run<shape>(a, b, n_slices, h.extra[2], shared, chunks);

    auto out = ree_out<float>(h, attention_operands_of(p).out);
    const u32 base = tile.batch * (u32)p.out_strides[0] + tile.head * (u32)p.out_strides[1] + d0;
    tile_results<shape>(shared, [&](u32 row, u32 column, float4 total) {
        const u32 query = tile.first_query + row;
        if (query >= p.q_len) return;
        const float sums[4] = {total.x, total.y, total.z, total.w};
        REE_UNROLL
        for (u32 e = 0; e < 4u; e++)
            if (d0 + column + e < p.v_head_dim)
                out[base + query * (u32)p.out_strides[2] + column + e] =
                    ree_canon(ree_plus_zero(sums[e]));
    });
}
