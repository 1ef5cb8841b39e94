// Softmax and norm over rows, in blocks of 256 threads: maxima of rows, and sums of rows by the
// scheme of NUMERICS.md, section 3.
//
// The terms of a chunk are added in sequence, so one thread computes a chunk. But memory access is
// efficient only if neighbouring threads read neighbouring elements. Therefore a tile in shared
// memory lies between the two. The distance between chunks in the tile is an odd multiple of 16
// bytes, so that threads that read 16 bytes each, of neighbouring chunks, have no bank conflicts.
//
// Short rows (struct ree_cuda_rows): the tile of a block holds several whole rows. Long rows
// (ree_long_sum): a block has one row, and its tile holds 32 terms of each of up to 256 chunks at a
// time.
#ifndef REE_CUDA_ROWS_H
#define REE_CUDA_ROWS_H

#include "chunks.h"

#define REE_ROWS_THREADS 256u

// Access number j to the rows of a block: WIDTH neighbouring elements. In every pass over the rows,
// a thread makes the accesses threadIdx.x, threadIdx.x + 256, ...
struct ree_rows_item {
    u32 row;   // index of the row within the block
    u32 i;     // index within the row of the access's first element
    u32 place; // index within the tile of the access's first element
};
template <int WIDTH>
REE_DEVICE struct ree_rows_item ree_rows_item_of(const struct ree_cuda_rows &rows, u32 j) {
    struct ree_rows_item item;
    u32 rest;
    item.row = ree_divide(j, rows.items, &rest);
    item.i = rest * (u32)WIDTH;
    item.place = (item.row * rows.n_chunks + item.i / REE_CHUNK) * rows.stride + item.i % REE_CHUNK;
    return item;
}

// Copies n_rows rows to the tile; the first begins at element `start` of x. Until the next barrier,
// a thread may read only what it copied itself.
template <int WIDTH>
REE_DEVICE void ree_rows_stage(const struct ree_cuda_rows &rows, ree_in_t<float> x, u32 start,
                               u32 n_rows, ree_shared_t<float> tile) {
    u32 n = n_rows * rows.items.d;
    for (u32 j = threadIdx.x; j < n; j += REE_ROWS_THREADS) {
        struct ree_rows_item item = ree_rows_item_of<WIDTH>(rows, j);
        ree_async_copy<WIDTH * 4>(tile, item.place, x, start + item.row * rows.n + item.i, true);
    }
    ree_async_commit();
    ree_async_wait<0>();
}

// Returns the maximum of the keys (ree_max_key) of all threads of the block to every thread.
REE_DEVICE int ree_block_max(int key) {
    REE_SHARED(int, warps, REE_ROWS_THREADS / 32u);
    REE_UNROLL
    for (int by = 16; by > 0; by /= 2)
        key = max(key, __shfl_xor_sync(0xFFFFFFFFu, key, by));
    if (threadIdx.x % 32u == 0) warps[threadIdx.x / 32u] = key;
    __syncthreads();
    REE_UNROLL
    for (u32 w = 0; w < REE_ROWS_THREADS / 32u; w++)
        key = max(key, (int)warps[w]);
    return key;
}

// Writes the maximum of each row of the tile to results[row]. The caller must place a barrier
// before the call, and another before it reads results.
REE_DEVICE void ree_rows_max(const struct ree_cuda_rows &rows, u32 n_rows, ree_shared_t<float> tile,
                             ree_shared_t<float> results) {
    u32 group = REE_ROWS_THREADS / rows.at_once; // threads per row
    u32 row = threadIdx.x / group, lane = threadIdx.x % group;
    int key = REE_KEY_LOWEST;
    if (row < n_rows) {
        u32 first = row * rows.n_chunks * rows.stride;
        for (u32 i = lane * 4u; i < rows.n; i += group * 4u) {
            u32 at = first + i / REE_CHUNK * rows.stride + i % REE_CHUNK;
            if (i + 4u <= rows.n) {
                float v[4];
                ree_load_run<4>(tile, at, v);
                REE_UNROLL
                for (int e = 0; e < 4; e++)
                    key = max(key, ree_max_key(v[e]));
            } else {
                for (u32 e = 0; i + e < rows.n; e++)
                    key = max(key, ree_max_key(tile[at + e]));
            }
        }
    }
    if (group == REE_ROWS_THREADS) {
        key = ree_block_max(key);
    } else if (group > 32u) { // two or four warps
        REE_SHARED(int, warps, REE_ROWS_THREADS / 32u);
        REE_UNROLL
        for (int by = 16; by > 0; by /= 2)
            key = max(key, __shfl_xor_sync(0xFFFFFFFFu, key, by));
        if (threadIdx.x % 32u == 0) warps[threadIdx.x / 32u] = key;
        __syncthreads();
        for (u32 w = 0; w < group / 32u; w++)
            key = max(key, (int)warps[row * (group / 32u) + w]);
    } else {
        for (int by = (int)group / 2; by > 0; by /= 2)
            key = max(key, __shfl_xor_sync(0xFFFFFFFFu, key, by));
    }
    if (lane == 0 && row < n_rows) results[row] = ree_of_max_key(key);
}

// Sums the n_rows rows of the tile. For each term x of a chunk, acc = step(row)(acc, x), from +0.
// The chunk results of a row are added, and one thread calls finish(row, sum). The caller must
// place a barrier before the call, and another before it reads what `finish` wrote. results:
// REE_ROWS_THREADS floats of shared memory, overwritten.
template <class Step, class Finish>
REE_DEVICE void ree_rows_sum(const struct ree_cuda_rows &rows, u32 n_rows, ree_shared_t<float> tile,
                             ree_shared_t<float> results, Step step, Finish finish) {
    u32 c = threadIdx.x;
    if (c < n_rows * rows.n_chunks) {
        u32 row = c / rows.n_chunks, first = c % rows.n_chunks * REE_CHUNK;
        u32 n = rows.n - first < REE_CHUNK ? rows.n - first : REE_CHUNK;
        results[c] = ree_walk(tile, c * rows.stride, n, 0.0f, step(row));
    }
    __syncthreads();
    if (c < n_rows) {
        float total = 0.0f;
        for (u32 i = 0; i < rows.n_chunks; i++)
            total = ree_add(total, results[c * rows.n_chunks + i]);
        finish(c, ree_plus_zero(total));
    }
}

#define REE_LONG_DEPTH 32u
#define REE_LONG_STRIDE 36u
#define REE_LONG_TILE (REE_ROWS_THREADS * REE_LONG_STRIDE)

// Returns the sum of a row of n terms to every thread of the block.
// - term(i, v): computes the WIDTH terms from index i on; n must be a multiple of WIDTH. It is
//   called once for each of these i, in every call of ree_long_sum by the same thread.
// - step(acc, x): returns the accumulator of a chunk after term x.
// - tile: REE_LONG_TILE floats of shared memory.
// - results: REE_ROWS_THREADS floats of shared memory.
template <int WIDTH, class Term, class Step>
REE_DEVICE float ree_long_sum(u32 n, ree_shared_t<float> tile, ree_shared_t<float> results,
                              Term term, Step step) {
    const u32 per_chunk = REE_LONG_DEPTH / (u32)WIDTH;
    u32 n_chunks = (n + REE_CHUNK - 1u) / REE_CHUNK;
    float total = 0.0f;
    for (u32 c0 = 0; c0 < n_chunks; c0 += REE_ROWS_THREADS) {
        u32 at_once = n_chunks - c0 < REE_ROWS_THREADS ? n_chunks - c0 : REE_ROWS_THREADS;
        float acc = 0.0f;
        for (u32 r0 = 0; r0 < REE_CHUNK; r0 += REE_LONG_DEPTH) {
            for (u32 j = threadIdx.x; j < at_once * per_chunk; j += REE_ROWS_THREADS) {
                u32 chunk = j / per_chunk, r = j % per_chunk * (u32)WIDTH;
                u32 i = (c0 + chunk) * REE_CHUNK + r0 + r;
                if (i >= n) continue;
                float v[WIDTH];
                term(i, v);
                ree_store_run<WIDTH>(tile, chunk * REE_LONG_STRIDE + r, v);
            }
            __syncthreads();
            u32 first = (c0 + threadIdx.x) * REE_CHUNK + r0;
            if (threadIdx.x < at_once && first < n)
                acc = ree_walk(tile, threadIdx.x * REE_LONG_STRIDE,
                               n - first < REE_LONG_DEPTH ? n - first : REE_LONG_DEPTH, acc, step);
            __syncthreads();
        }
        results[threadIdx.x] = acc;
        __syncthreads();
        for (u32 c = 0; c < at_once; c++)
            total = ree_add(total, results[c]);
        __syncthreads();
    }
    return ree_plus_zero(total);
}
// Calls f(i) for each index i for which ree_long_sum calls term(i, v) in this thread, in the same
// order.
template <int WIDTH, class F> REE_DEVICE void ree_long_each(u32 n, F f) {
    const u32 per_chunk = REE_LONG_DEPTH / (u32)WIDTH;
    u32 n_chunks = (n + REE_CHUNK - 1u) / REE_CHUNK;
    for (u32 c0 = 0; c0 < n_chunks; c0 += REE_ROWS_THREADS) {
        u32 at_once = n_chunks - c0 < REE_ROWS_THREADS ? n_chunks - c0 : REE_ROWS_THREADS;
        for (u32 r0 = 0; r0 < REE_CHUNK; r0 += REE_LONG_DEPTH)
            for (u32 j = threadIdx.x; j < at_once * per_chunk; j += REE_ROWS_THREADS) {
                u32 i = (c0 + j / per_chunk) * REE_CHUNK + r0 + j % per_chunk * (u32)WIDTH;
                if (i < n) f(i);
            }
    }
}

// Defines a kernel for rows that do not fit into shared memory, one row per block. It calls
// row<WIDTH>(h, p, tile, results) with the width that the encoder chose (p.rows.width, 4 or 1).
#define REE_LONG_ROWS_KERNEL(name, params, row)                                                    \
    REE_KERNEL(name, params, 256) {                                                                \
        REE_SHARED(float, tile, REE_LONG_TILE);                                                    \
        REE_SHARED(float, results, REE_ROWS_THREADS);                                              \
        if (p.rows.width == 4)                                                                     \
            row<4>(h, p, tile, results);                                                           \
        else                                                                                       \
            row<1>(h, p, tile, results);                                                           \
    }

#endif
