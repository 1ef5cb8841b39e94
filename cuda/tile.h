// A tile of a float32 product: sum[i][j] = sum over k of A[i, k] * B[k, j] by the chunk scheme,
// NUMERICS.md section 3, for the rows and columns of one block. matmul.cu, conv.cu.
//
// A and B come in slices of TILE_K steps through shared memory, [k][row], copied in the background
// while the slices before are worked on. A thread has 4 x 4 results, or two by two or two by one
// such squares, far apart, so that the 16-byte loads of a warp (4 x 8 threads) meet each bank once:
// of A 4 addresses, of B 8 neighbours. The fragments of a step are loaded while the one before is
// computed.
//
// In a chunk the sum is a register; the totals of the chunks lie in shared memory, since they are
// needed once in 256 steps: 64 KiB for 128 x 128. Of 128 registers 64 are sums and 32 fragments,
// and two blocks of 256 threads fit in a multiprocessor with 164 KiB of shared memory.
//
// Work of a thread of 8 x 8 for each step: 64 fma, 4 loads of 16 bytes from shared memory; for each
// slice of 8 steps 512 fma, 32 loads, at most 8 copies of 4 bytes (2 of 16), a barrier and some 40
// instructions round them. So 512 of about 600 instructions are fma: 85 % of the float32 peak, if
// the 4 warps of each scheduler hide every latency. Shared memory gives 128 bytes a clock: a warp's
// step takes 4 wavefronts of it in the 16 clocks that its fma take of a quarter of the
// multiprocessor, so that 4 x 4 = 16 of 64 clocks' worth is used. Memory: a 128 x 128 tile reads
// 1024 bytes for 16384 fma, 8 bytes a clock and multiprocessor; from the L2 cache, mostly.
#ifndef REE_CUDA_TILE_H
#define REE_CUDA_TILE_H

#include "kernel.h"

#define TILE_K 8
#define TILE_SLICES (REE_CHUNK / TILE_K) // of a chunk

// Squares of 4 x 4 of a thread, warps of a block, down and across.
template <int SQUARES_M, int SQUARES_N, int WARPS_M, int WARPS_N> struct tile_shape {
    static constexpr int squares_m = SQUARES_M, squares_n = SQUARES_N;
    static constexpr int threads = 32 * WARPS_M * WARPS_N;
    static constexpr int step_m = 16 * WARPS_M, step_n = 32 * WARPS_N; // between squares
    static constexpr int rows = SQUARES_M * step_m, columns = SQUARES_N * step_n;
    // Of a slice, in floats. The four more spread copies of single words over the banks.
    static constexpr int a_line = rows + 4, b_line = columns + 4;
    static constexpr int stage = TILE_K * (a_line + b_line);
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

// A loader brings one factor's part of the tile, slice after slice. It has
//
//     void start(ree_shared_t<float> shared, u32 at);
//     void finish(ree_shared_t<float> shared, u32 at);
//
// start begins to bring the next slice (the first one when first called) to shared[at], element
// (k, row) to at + k * LINE + row, with zeros in rows past the edge and for k past the end; finish,
// called with the same `at` after other work, must leave it there or on its way by ree_async_copy
// (tile_run commits those between the two). The slice is read after a barrier. Both are called by
// all threads. Rows are columns where the factor is B.

// Float32 with strides. ROWS x TILE_K of them, by THREADS.
template <int ROWS, int LINE, int THREADS> struct tile_strided {
    static constexpr int copies = ROWS * TILE_K / THREADS; // of a thread, of one float
    static constexpr int units = (ROWS * TILE_K / 4 + THREADS - 1) / THREADS; // of four
    ree_in_t<float> memory;
    u32 index, index_step; // of the thread's first copy; from copy to copy
    u32 k_index;           // from slice to slice
    u32 place, place_step;
    u32 k, k_step, k_end; // of the first copy; from copy to copy
    u32 inside;           // bit i: copy i is of a row inside the matrix
    bool vectors, full;

    // Rows first_row ... of n_rows, steps k_begin ... k_end.
    REE_DEVICE_MEMBER void begin(ree_in_t<float> factor, u32 base, u32 stride_row, u32 stride_k,
                                 u32 first_row, u32 n_rows, u32 k_begin, u32 k_end_, u32 thread) {
        memory = factor;
        k_end = k_end_;
        k_index = TILE_K * stride_k;
        full = first_row + ROWS <= n_rows;
        // Four rows at a time, when every copy is at a multiple of 16 bytes.
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
        } else { // or along k
            row = thread / TILE_K;
            k = thread % TILE_K;
            row_step = THREADS / TILE_K;
            k_step = 0;
        }
        place = k * LINE + row;
        place_step = k_step * LINE + row_step;
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
                if ((i + 1) * THREADS * 4 <= ROWS * TILE_K || place < TILE_K * LINE)
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

// Bytes of dynamic shared memory: totals, then n_stages stages.
template <class Shape> REE_DEVICE u32 tile_stage_at(u32 stage) {
    return Shape::totals + stage * Shape::stage;
}

template <class Shape>
REE_DEVICE void tile_load(ree_shared_t<float> shared, u32 a_at, u32 b_at, int k,
                          float (&a)[Shape::squares_m * 4], float (&b)[Shape::squares_n * 4]) {
    REE_UNROLL
    for (int s = 0; s < Shape::squares_m; s++) {
        float4 v = ree_load<float4>(shared, a_at + (u32)(k * Shape::a_line + s * Shape::step_m));
        a[4 * s] = v.x, a[4 * s + 1] = v.y, a[4 * s + 2] = v.z, a[4 * s + 3] = v.w;
    }
    REE_UNROLL
    for (int s = 0; s < Shape::squares_n; s++) {
        float4 v = ree_load<float4>(shared, b_at + (u32)(k * Shape::b_line + s * Shape::step_n));
        b[4 * s] = v.x, b[4 * s + 1] = v.y, b[4 * s + 2] = v.z, b[4 * s + 3] = v.w;
    }
}

// Whether the sum of a row of the tile has a chunk, counted from the first slice's: those of most
// products do.
struct tile_all_chunks {
    REE_DEVICE_MEMBER bool has(u32, u32) const { return true; }
};

// Sums of a chunk to the totals. They lie [row of the thread][square][thread], four floats each.
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

// Leaves the tile's totals over n_slices slices in shared memory, each thread its own; the stages
// are free behind the next barrier. The first slice begins a chunk.
template <class Shape, class A, class B, class Chunks = struct tile_all_chunks>
REE_DEVICE void tile_run(A &a, B &b, u32 n_slices, u32 n_stages, ree_shared_t<float> shared,
                         const Chunks &chunks = Chunks()) {
    const u32 thread = threadIdx.x;
    const u32 b_offset = TILE_K * Shape::a_line;
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
        __syncthreads(); // slice s is there for all, and slice s-1 is read by all
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

// Calls store(row, column, total) for each four neighbours of this thread, rows and columns those
// of the tile.
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

// Block number `block` of tiles_m x tiles_n: eight rows of tiles are walked column by column, so
// that blocks that run together share lines of A and B in the L2 cache.
REE_DEVICE void tile_place(u32 block, u32 tiles_m, u32 tiles_n, u32 *i, u32 *j) {
    u32 group = block / (8u * tiles_n), rest = block % (8u * tiles_n);
    u32 height = tiles_m - group * 8u < 8u ? tiles_m - group * 8u : 8u;
    *i = group * 8u + rest % height;
    *j = rest / height;
}

#endif
