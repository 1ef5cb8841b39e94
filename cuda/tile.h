// A tile of a float32 product: sum[i][j] = sum over k of A[i, k] * B[k, j] by the chunk scheme,
// NUMERICS.md section 3, for the rows i and columns j that one block computes. Used by matmul.cu,
// conv.cu and attention_tiles.cu. A step is one value of k.
//
// A and B pass through shared memory in slices of TILE_K steps with the layout [k][row], for B
// [k][column]. Slices are copied asynchronously while earlier slices are computed. A thread has 1,
// 2 or 4 squares of 4 x 4 results (1 x 1, 2 x 1 or 2 x 2 squares). Its squares are far apart, so
// that the 16-byte loads of a warp (4 x 8 threads) use each bank once: 4 addresses of A, 8
// neighbouring ones of B. The fragments of a step (the values of A and B that a thread multiplies)
// are loaded into registers while the previous step is computed.
//
// The sums of the current chunk are in registers. The totals of the chunks before it are in shared
// memory, since they are needed only once in 256 steps: 64 KiB for a tile of 128 x 128. Of the 128
// registers of a thread, 64 hold sums and 32 hold fragments. Two blocks of 256 threads fit into a
// multiprocessor with 164 KiB of shared memory.
//
// Work of a thread with 8 x 8 results:
// - per step: 64 fma and 4 loads of 16 bytes from shared memory;
// - per slice of 8 steps: 512 fma, 32 loads, at most 8 copies of 4 bytes (2 of 16), a barrier, and
//   indices, bounds and branches.
//
// nvcc's code has 1.5 instructions per fma (counted, see tools/BENCHMARKS.md), so the rate at which
// instructions are issued allows 0.7 of the float32 peak. Shared memory provides one wavefront of
// 128 bytes per clock. A 16-byte load of a warp takes 4 wavefronts, unless hardware merges equal
// addresses. Each of the 4 schedulers issues one fma per clock. For one step of 4 warps, one warp
// on each scheduler:
//
//     results of a thread   clocks for fma   loads of each warp   wavefronts, clocks
//     8 x 8                 64               4                    64
//     8 x 4                 32               3                    48
//
// Memory: a 128 x 128 tile reads 1024 bytes per 16384 fma, 8 bytes per clock and multiprocessor,
// mostly from the L2 cache.
#ifndef REE_CUDA_TILE_H
#define REE_CUDA_TILE_H

#include "kernel.h"

#define TILE_K 8
#define TILE_SLICES (REE_CHUNK / TILE_K) // slices per chunk

// Shape of a tile. A thread has SQUARES_M x SQUARES_N squares of 4 x 4 results; a block has WARPS_M
// x WARPS_N warps. M counts along rows i, N along columns j.
template <int SQUARES_M, int SQUARES_N, int WARPS_M, int WARPS_N> struct tile_shape {
    static constexpr int squares_m = SQUARES_M, squares_n = SQUARES_N;
    static constexpr int threads = 32 * WARPS_M * WARPS_N;
    // Distance between neighbouring squares (4 x 4 results) of a thread, in rows and in columns.
    static constexpr int step_m = 16 * WARPS_M, step_n = 32 * WARPS_N;
    static constexpr int rows = SQUARES_M * step_m, columns = SQUARES_N * step_n;
    // Distance between two steps k of a slice in shared memory, in floats. The four extra floats
    // spread copies of single words over the banks.
    static constexpr int a_pitch = rows + 4, b_pitch = columns + 4;
    static constexpr int stage = TILE_K * (a_pitch + b_pitch);
    static constexpr int totals = rows * columns;

    static REE_DEVICE_MEMBER u32 row(u32 thread) {
        return thread / 32u / WARPS_N * 16u + thread % 32u / 8u * 4u;
    }
    static REE_DEVICE_MEMBER u32 column(u32 thread) {
        return thread / 32u % WARPS_N * 32u + thread % 8u * 4u;
    }
};
typedef tile_shape<2, 2, 4, 2> tile_128x128;
typedef tile_shape<2, 1, 4, 2> tile_128x64;
typedef tile_shape<2, 1, 2, 2> tile_64x64;
typedef tile_shape<1, 1, 2, 2> tile_32x64;

// A loader copies the rows of A, or the columns of B, that a tile needs, slice by slice. It has two
// functions, which all threads call:
//
//     void start(ree_shared_t<float> shared, u32 at);
//     void finish(ree_shared_t<float> shared, u32 at);
//
// start begins to copy the next slice (at the first call, the first slice) to shared[at]. Element
// (k, row) of the slice goes to at + k * PITCH + row; for B, "row" is a column. Rows past the edge
// and k past the end become zeros. start may use ree_async_copy; tile_run commits these copies and
// waits for them.
//
// finish is called after start with the same `at`, possibly after other work. It completes the
// slice, except for asynchronous copies, and must not begin any. A slice is read after the next
// barrier.

// Loader for a float32 matrix with strides. THREADS threads copy slices of ROWS x TILE_K elements.
// PITCH: distance between two steps k in shared memory, in floats.
template <int ROWS, int PITCH, int THREADS> struct tile_strided {
    // number of one-float copies that each thread makes per slice
    static constexpr int copies = ROWS * TILE_K / THREADS;
    // number of four-float copies that each thread makes per slice, rounded up
    static constexpr int units = (ROWS * TILE_K / 4 + THREADS - 1) / THREADS;
    ree_in_t<float> memory;
    // Index in `memory` of the element that the thread copies next; distance from there to the
    // element that it copies after that, in the same slice.
    u32 index, index_step;
    u32 k_index; // distance in `memory` from a slice to the next
    u32 place, place_step;
    // k of the next copy; distance to the copy after it; the first k past the end
    u32 k, k_step, k_end;
    u32 inside; // bit i: the row of copy i is inside the matrix
    bool vectors, full;

    // Prepares to copy rows first_row ... n_rows - 1 (at most ROWS of them) and steps k_begin ...
    // k_end_ - 1. Element (row, k) of the matrix is factor[base + row * stride_row + k * stride_k].
    // thread: index of the calling thread below THREADS.
    REE_DEVICE_MEMBER void begin(ree_in_t<float> factor, u32 base, u32 stride_row, u32 stride_k,
                                 u32 first_row, u32 n_rows, u32 k_begin, u32 k_end_, u32 thread) {
        memory = factor;
        k_end = k_end_;
        k_index = TILE_K * stride_k;
        full = first_row + ROWS <= n_rows;
        // Copy four rows at a time if every such copy is aligned to 16 bytes and inside the matrix.
        vectors = stride_row == 1 && n_rows % 4u == 0 && stride_k % 4u == 0 &&
                  ree_aligned(memory, base, 16);
        u32 row;
        u32 row_step;
        if (vectors) {
            row = thread % (ROWS / 4) * 4u;
            k = thread / (ROWS / 4);
            row_step = 0;
            k_step = THREADS / (ROWS / 4);
        } else if (stride_row == 1) { // a warp copies along rows
            row = thread % ROWS;
            k = thread / ROWS;
            row_step = 0;
            k_step = THREADS / ROWS;
        } else { // a warp copies along k
            row = thread / TILE_K;
            k = thread % TILE_K;
            row_step = THREADS / TILE_K;
            k_step = 0;
        }
        place = k * PITCH + row;
        place_step = k_step * PITCH + row_step;
        inside = 0;
        REE_UNROLL
        for (int i = 0; i < copies; i++)
            if (first_row + row + (u32)i * row_step < n_rows) inside |= 1u << i;
        k += k_begin;
        index = base + (first_row + row) * stride_row + k * stride_k;
        index_step = row_step * stride_row + k_step * stride_k;
    }
    REE_DEVICE_MEMBER void start(ree_shared_t<float> shared, u32 at) {
        at += place;
        if (vectors) {
            REE_UNROLL
            for (int i = 0; i < units; i++)
                if ((i + 1) * THREADS * 4 <= ROWS * TILE_K || place < TILE_K * PITCH)
                    ree_async_copy<16>(shared, at + (u32)i * place_step, memory,
                                       index + (u32)i * index_step,
                                       (inside & 1u) && k + (u32)i * k_step < k_end);
        } else if (full && k - k % TILE_K + TILE_K <= k_end) {
            REE_UNROLL
            for (int i = 0; i < copies; i++)
                ree_async_copy<4>(shared, at + (u32)i * place_step, memory,
                                  index + (u32)i * index_step, true);
        } else {
            REE_UNROLL
            for (int i = 0; i < copies; i++)
                ree_async_copy<4>(shared, at + (u32)i * place_step, memory,
                                  index + (u32)i * index_step,
                                  (inside >> i & 1u) && k + (u32)i * k_step < k_end);
        }
        index += k_index;
        k += TILE_K;
    }
    REE_DEVICE_MEMBER void finish(ree_shared_t<float>, u32) {}
};

// Returns the index, in floats, of a stage in dynamic shared memory, which holds the totals and
// then n_stages stages.
template <class Shape> REE_DEVICE u32 tile_stage_at(u32 stage) {
    return Shape::totals + stage * Shape::stage;
}

template <class Shape>
REE_DEVICE void tile_load(ree_shared_t<float> shared, u32 a_at, u32 b_at, int k,
                          float (&a)[Shape::squares_m * 4], float (&b)[Shape::squares_n * 4]) {
    REE_UNROLL
    for (int s = 0; s < Shape::squares_m; s++) {
        float4 v = ree_load<float4>(shared, a_at + (u32)(k * Shape::a_pitch + s * Shape::step_m));
        a[4 * s] = v.x, a[4 * s + 1] = v.y, a[4 * s + 2] = v.z, a[4 * s + 3] = v.w;
    }
    REE_UNROLL
    for (int s = 0; s < Shape::squares_n; s++) {
        float4 v = ree_load<float4>(shared, b_at + (u32)(k * Shape::b_pitch + s * Shape::step_n));
        b[4 * s] = v.x, b[4 * s + 1] = v.y, b[4 * s + 2] = v.z, b[4 * s + 3] = v.w;
    }
}

// has(row, chunk) returns whether the sums of a row of the tile include a chunk. Chunks are counted
// from the chunk of the first slice. This default includes all chunks.
struct tile_all_chunks {
    REE_DEVICE_MEMBER bool has(u32, u32) const { return true; }
};

// Adds the sums of chunk number `chunk` to the totals in shared memory and sets the sums to 0.
// Layout of the totals: [row][square][thread], four neighbouring columns each. "row" counts the
// rows of a thread, "square" its squares from left to right.
template <class Shape, class Chunks>
REE_DEVICE void tile_fold(ree_shared_t<float> shared, u32 thread, u32 chunk, const Chunks &chunks,
                          float (&sum)[Shape::squares_m * 4][Shape::squares_n * 4]) {
    REE_UNROLL
    for (int i = 0; i < Shape::squares_m * 4; i++) {
        REE_UNROLL
        for (int s = 0; s < Shape::squares_n; s++) {
            u32 at = ((u32)(i * Shape::squares_n + s) * Shape::threads + thread) * 4u;
            float *x = &sum[i][4 * s];
            if (!chunks.has(Shape::row(thread) + (u32)(i / 4 * Shape::step_m + i % 4), chunk))
                x[0] = x[1] = x[2] = x[3] = 0.0f;
            float4 v = make_float4(x[0], x[1], x[2], x[3]);
            if (chunk > 0) {
                float4 total = ree_load<float4>(shared, at);
                v = make_float4(__fadd_rn(total.x, x[0]), __fadd_rn(total.y, x[1]),
                                __fadd_rn(total.z, x[2]), __fadd_rn(total.w, x[3]));
            }
            ree_store(shared, at, v);
            x[0] = x[1] = x[2] = x[3] = 0.0f;
        }
    }
}

// Computes the tile's totals over n_slices slices and leaves them in shared memory, where each
// thread reads its own with tile_results. n_stages: number of slices that shared memory holds (2 to
// 4). The first slice must begin a chunk. The caller may overwrite the stages after the next
// barrier.
template <class Shape, class A, class B, class Chunks = struct tile_all_chunks>
REE_DEVICE void tile_run(A &a, B &b, u32 n_slices, u32 n_stages, ree_shared_t<float> shared,
                         const Chunks &chunks = Chunks()) {
    const u32 thread = threadIdx.x;
    const u32 b_offset = TILE_K * Shape::a_pitch;
    float sum[Shape::squares_m * 4][Shape::squares_n * 4];
    REE_UNROLL
    for (int i = 0; i < Shape::squares_m * 4; i++) {
        REE_UNROLL
        for (int j = 0; j < Shape::squares_n * 4; j++)
            sum[i][j] = 0.0f;
    }
    REE_NO_UNROLL
    for (u32 s = 0; s + 1u < n_stages; s++) {
        u32 at = tile_stage_at<Shape>(s);
        if (s < n_slices) {
            a.start(shared, at);
            b.start(shared, at + b_offset);
            a.finish(shared, at);
            b.finish(shared, at + b_offset);
        }
        ree_async_commit();
    }
    u32 here = tile_stage_at<Shape>(0), there = tile_stage_at<Shape>(n_stages - 1u);
    const u32 end = tile_stage_at<Shape>(n_stages);
    u32 chunk = 0;
    REE_NO_UNROLL
    for (u32 s = 0; s < n_slices; s++) {
        ree_async_wait_stage(n_stages);
        __syncthreads(); // slice s has arrived for all threads, and all have read slice s-1
        bool more = s + n_stages <= n_slices;
        if (more) {
            a.start(shared, there);
            b.start(shared, there + b_offset);
        }
        ree_async_commit();

        u32 a_at = here + Shape::row(thread), b_at = here + b_offset + Shape::column(thread);
        float fa[2][Shape::squares_m * 4], fb[2][Shape::squares_n * 4];
        tile_load<Shape>(shared, a_at, b_at, 0, fa[0], fb[0]);
        REE_UNROLL
        for (int k = 0; k < TILE_K; k++) {
            if (k + 1 < TILE_K)
                tile_load<Shape>(shared, a_at, b_at, k + 1, fa[(k + 1) & 1], fb[(k + 1) & 1]);
            REE_UNROLL
            for (int i = 0; i < Shape::squares_m * 4; i++) {
                REE_UNROLL
                for (int j = 0; j < Shape::squares_n * 4; j++)
                    sum[i][j] = __fmaf_rn(fa[k & 1][i], fb[k & 1][j], sum[i][j]);
            }
        }
        if (more) {
            a.finish(shared, there);
            b.finish(shared, there + b_offset);
        }
        there = here;
        here += Shape::stage;
        if (here == end) here = tile_stage_at<Shape>(0);
        if (s % TILE_SLICES == TILE_SLICES - 1u && s + 1u < n_slices) {
            tile_fold<Shape>(shared, thread, chunk, chunks, sum);
            chunk++;
        }
    }
    tile_fold<Shape>(shared, thread, chunk, chunks, sum);
}

// Calls store(row, column, total) for each group of four neighbouring results of this thread: total
// has the columns from `column` on. Rows and columns are relative to the tile.
template <class Shape, class Store>
REE_DEVICE void tile_results(ree_shared_t<float> shared, Store store) {
    const u32 thread = threadIdx.x;
    REE_NO_UNROLL
    for (u32 q = 0; q < Shape::squares_m * 4u * Shape::squares_n; q++) {
        u32 i = q / Shape::squares_n, s = q % Shape::squares_n;
        float4 total = ree_load<float4>(shared, (q * Shape::threads + thread) * 4u);
        store(Shape::row(thread) + i / 4u * Shape::step_m + i % 4u,
              Shape::column(thread) + s * Shape::step_n, total);
    }
}

// Computes which tile (*i, *j) of a grid of tiles_m x tiles_n tiles block number `block` computes.
// Groups of eight rows of tiles are traversed column by column, so that blocks that run at the same
// time share lines of A and B in the L2 cache.
REE_DEVICE void tile_place(u32 block, u32 tiles_m, u32 tiles_n, u32 *i, u32 *j) {
    u32 group = block / (8u * tiles_n), rest = block % (8u * tiles_n);
    u32 height = tiles_m - group * 8u < 8u ? tiles_m - group * 8u : 8u;
    *i = group * 8u + rest % height;
    *j = rest / height;
}

#endif
