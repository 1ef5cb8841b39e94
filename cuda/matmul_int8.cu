// matmul of blockwise activations and blockwise weights: the block-dot of NUMERICS.md section 3,
//
//     acc = fma(I, da * db, acc), I = the sum of a * (q - z) over a run of terms, exact
//
// a is an element of A; q is a weight's number and z its zero point; da and db are the scales.
//
// A is packed first (matmul_int8_pack): its bytes, and for each run of a row the sum of its terms
// and its scale. A tile then takes slices of 64 terms through shared memory. It computes the sum of
// a * q over the terms of a run, and I = that sum - z * (the sum of a). From sm_80 on, tensor cores
// compute the sum of a * q over 32 terms (m16n8k32; for a run of 16, B is set to zero outside the
// run). Before sm_80, dot products of four bytes compute it.
//
// In an mma, lane l holds bytes 4 t ... 4 t + 3 and 4 t + 16 ... 4 t + 19 of a row or column, where
// t = l % 4. The order of the terms in a run is free. A word of eight 4-bit weights has the
// even terms in the low halves of its bytes and the odd terms in the high halves, so an AND and a
// shift make both words of a lane from it. A is packed in the same order: of 32 terms first the
// even ones, then the odd ones.
//
// Integer sums need no conversion to float32. A sum starts at the bits of the float 1.5 * 2^23.
// After integers with the sum S were added, these are the bits of the float 1.5 * 2^23 + S if
// |S| < 2^22, which holds for runs of up to 128 terms. A subtraction then gives S - z * (the sum of
// a), exactly. The sums of runs of 256 terms start at 0 and are converted.
//
// Instructions of a warp per mma (16 x 8 results, 32 terms), counted in PTX of compute_80 for the
// product of 512 x 1024 by 1024 x 1024:
//
//     bits   blocks   zero points   counted
//     4      32       no            53
//     4      32       yes           63
//     8      32       no            54
//     4      128      no            32
//
// With blocks of 32, 12 of these instructions are the float arithmetic that the block-dot requires.
// A multiprocessor issues 4 per clock, so instructions are the limit, not the tensor cores. float32
// tiles (tile.h) take 1.5 instructions per fma, 192 for the same work.
//
// On sm_90, the tile of 64 x 64 needs 167 registers, so three blocks of 128 threads fit into a
// multiprocessor; the tile of 32 x 64 needs 113.
//
// One thread per output (matmul_int8_words): weights with columns that are not aligned to 16 bytes,
// products without terms, and A of more than 2^31 bytes when packed.
#include "bytes.h"
#include "product.h"
#include "tile.h"

#define SLICE 64u         // terms per slice
#define SLICE_WORDS 16    // words of a slice of a row of A
#define PITCH 20u         // words between vectors of bytes in shared memory: see matmul_bytes.cu
#define PITCH_4 12u       // words between vectors of 4-bit weights in shared memory
#define MAX_RUNS 4u       // runs per slice, at most
#define MAGIC 0x4B400000u // bits of 1.5 * 2^23

// The runs of a product.
struct int8_runs {
    u32 length, shift; // terms per run; its log2
    u32 n_words;       // words of a packed row
    u32 n, pitch;      // runs of a packed row; values from one run to the next, at least m
    // blocks of a row of A and of a column of B; log2 of the blocks' lengths
    u32 a_blocks, b_blocks, a_shift, b_shift;
};

REE_DEVICE struct int8_runs int8_runs_of(const struct ree_matmul_params &p) {
    struct int8_runs r;
    const u32 n_slices = (p.k + SLICE - 1u) / SLICE;
    r.length = p.a_block < p.b_block ? p.a_block : p.b_block;
    r.shift = ree_log2(r.length);
    r.a_shift = ree_log2(p.a_block);
    r.b_shift = ree_log2(p.b_block);
    r.n_words = n_slices * SLICE_WORDS;
    r.n = (n_slices * SLICE + r.length - 1u) >> r.shift;
    r.pitch = (p.m + 63u) / 64u * 64u;
    r.a_blocks = (p.k + p.a_block - 1u) >> r.a_shift;
    r.b_blocks = (p.k + p.b_block - 1u) >> r.b_shift;
    return r;
}

// Packs A in scratch memory: first its bytes, [m][n_words]; then the sums of the runs as float32,
// [run][pitch]; then their scales, [run][pitch]. Sums and scales of rows from m on are zeros. One
// thread per row and run.
REE_KERNEL(matmul_int8_pack, struct ree_cuda_matmul_params, 128) {
    const struct int8_runs runs = int8_runs_of(p.p);
    const u32 i = ree_thread();
    if (i >= runs.n * runs.pitch) return;
    const u32 row = i % runs.pitch, k0 = i / runs.pitch * runs.length;
    const u32 step = (u32)p.p.a_stride_k, base = (u32)p.p.a_offset + row * (u32)p.p.a_stride_m;
    const bool inside = row < p.p.m;
    auto x = ree_in<uint8_t>(h, 0);
    auto packed = ree_scratch<u32>(h);
    u32 sum = 0;
    REE_NO_UNROLL
    for (u32 k = k0; k < k0 + runs.length && k < runs.n_words * 4u && inside; k += 16u) {
        u32 w[4] = {0u, 0u, 0u, 0u};
        if (step == 1u && k < p.p.k && p.p.k - k >= 16u && ree_aligned(x, base + k, 16)) {
            uint4 four = ree_load<uint4>(x, base + k);
            w[0] = four.x, w[1] = four.y, w[2] = four.z, w[3] = four.w;
        } else {
            REE_UNROLL
            for (u32 e = 0; e < 16u; e++)
                if (k + e < p.p.k) w[e / 4u] |= (u32)x[base + (k + e) * step] << (e % 4u * 8u);
        }
        REE_UNROLL
        for (u32 e = 0; e < 4u; e++)
            sum = bytes_dot<true, true>(w[e], 0x01010101u, sum);
        const u32 to = row * runs.n_words + k / 4u;
        if (p.p.b_bits == 4u) {
            // 16 terms fill two of the four words of even terms, and two of the four of odd terms.
            const u32 even = to - k % 32u / 8u;
            ree_store(
                packed, even,
                make_uint2(__byte_perm(w[0], w[1], 0x6420u), __byte_perm(w[2], w[3], 0x6420u)));
            ree_store(
                packed, even + 4u,
                make_uint2(__byte_perm(w[0], w[1], 0x7531u), __byte_perm(w[2], w[3], 0x7531u)));
        } else {
            ree_store(packed, to, make_uint4(w[0], w[1], w[2], w[3]));
        }
    }
    float scale = 0.0f;
    if (inside && k0 < p.p.k)
        scale = ree_in<float>(h, matmul_n_factors(p.p) -
                                     1u)[row * runs.a_blocks + (k0 >> runs.a_shift)];
    const u32 sums = p.p.m * runs.n_words;
    auto values = ree_scratch<float>(h);
    values[sums + i] = __int2float_rn((int)sum);
    values[sums + runs.n * runs.pitch + i] = scale;
}

// Shape of a tile: SUMS_M x SUMS_N matrices of 16 x 8 sums per warp, WARPS_M x WARPS_N warps per
// block; and the layout of a stage in words. A stage has the bytes of A and B, then for each run of
// the slice the sums and scales of A's rows, the scales of B's columns, and the words that contain
// the zero points of B's columns.
template <int SUMS_M, int SUMS_N, int WARPS_M, int WARPS_N> struct int8_shape {
    static constexpr u32 sums_m = SUMS_M, sums_n = SUMS_N, warps_n = WARPS_N;
    static constexpr u32 threads = 32 * WARPS_M * WARPS_N;
    static constexpr u32 rows = 16 * SUMS_M * WARPS_M, columns = 8 * SUMS_N * WARPS_N;
    static constexpr u32 b = rows * PITCH, a_sums = b + columns * PITCH;
    static constexpr u32 a_scales = a_sums + MAX_RUNS * rows;
    static constexpr u32 b_scales = a_scales + MAX_RUNS * rows;
    static constexpr u32 b_zeros = b_scales + MAX_RUNS * columns;
    static constexpr u32 stage = b_zeros + MAX_RUNS * columns;
    // Half a warp stores 4 rows of 8 columns at a time; with this pitch they are in all 32 banks.
    static constexpr u32 result_pitch = columns + 8;
};

// Adds the products of 32 terms (part 0), or of their first 16 (part 1) or last 16 (part 2), to a
// warp's sums. The numbers in sum[i][j] are in the rows and columns that bytes_slice of
// matmul_bytes.cu describes. a, b: index in shared memory of the 32 terms in the warp's first row
// and column. narrow: weights have 4 bits.
template <class Shape>
REE_DEVICE void int8_multiply(ree_shared_t<u32> shared, u32 a, u32 b, bool narrow, u32 part,
                              u32 (&sum)[Shape::sums_m][Shape::sums_n][4]) {
    const u32 lane = threadIdx.x % 32u, pitch = narrow ? PITCH_4 : PITCH;
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
    const u32 q = lane % 4u;
    u32 fa[Shape::sums_m][4], fb[Shape::sums_n][2];
    a += lane / 4u * PITCH + q;
    b += lane / 4u * pitch + q;
    REE_UNROLL
    for (u32 i = 0; i < Shape::sums_m; i++) {
        REE_UNROLL
        for (u32 e = 0; e < 4u; e++)
            fa[i][e] = shared[a + (i * 16u + e % 2u * 8u) * PITCH + e / 2u * 4u];
    }
    if (narrow) {
        const bool none = part != 0u && (part == 1u) != (q < 2u);
        REE_UNROLL
        for (u32 j = 0; j < Shape::sums_n; j++) {
            u32 w = none ? 0u : shared[b + j * 8u * PITCH_4];
            fb[j][0] = w & 0x0F0F0F0Fu;
            fb[j][1] = w >> 4 & 0x0F0F0F0Fu;
        }
    } else {
        REE_UNROLL
        for (u32 j = 0; j < Shape::sums_n; j++) {
            fb[j][0] = part == 2u ? 0u : shared[b + j * 8u * PITCH];
            fb[j][1] = part == 1u ? 0u : shared[b + j * 8u * PITCH + 4u];
        }
    }
    REE_UNROLL
    for (u32 i = 0; i < Shape::sums_m; i++) {
        REE_UNROLL
        for (u32 j = 0; j < Shape::sums_n; j++)
            bytes_mma<true, false>(sum[i][j], fa[i], fb[j][0], fb[j][1]);
    }
#else
    const u32 n = narrow ? 4u : 8u, first = part == 2u ? n / 2u : 0u, end = part == 1u ? n / 2u : n;
    a += lane / 4u * PITCH;
    b += lane % 4u * 2u * pitch;
    REE_NO_UNROLL
    for (u32 w = first; w < end; w++) {
        u32 x[Shape::sums_m][2][2]; // [.][row][even or odd terms]
        REE_UNROLL
        for (u32 i = 0; i < Shape::sums_m; i++) {
            REE_UNROLL
            for (u32 e = 0; e < 2u; e++) {
                x[i][e][0] = shared[a + (i * 16u + e * 8u) * PITCH + w];
                x[i][e][1] = narrow ? (u32)shared[a + (i * 16u + e * 8u) * PITCH + w + 4u] : 0u;
            }
        }
        REE_UNROLL
        for (u32 j = 0; j < Shape::sums_n; j++) {
            u32 y[2] = {shared[b + j * 8u * pitch + w], shared[b + (j * 8u + 1u) * pitch + w]};
            REE_UNROLL
            for (u32 i = 0; i < Shape::sums_m; i++) {
                REE_UNROLL
                for (u32 q = 0; q < 4u; q++) {
                    u32 v = y[q % 2u], s = sum[i][j][q];
                    if (narrow) {
                        s = bytes_dot<true, true>(x[i][q / 2u][0], v & 0x0F0F0F0Fu, s);
                        s = bytes_dot<true, true>(x[i][q / 2u][1], v >> 4 & 0x0F0F0F0Fu, s);
                    } else {
                        s = bytes_dot<true, false>(x[i][q / 2u][0], v, s);
                    }
                    sum[i][j][q] = s;
                }
            }
        }
    }
#endif
}

// What a lane needs to know to end a run.
struct int8_end {
    u32 stage, run;  // index of the stage in shared memory; number of the run in the slice
    u32 row, column; // of the lane's first result in the tile
    u32 zeros, step; // byte index of the zero point of that column; distance between columns
    float zero;      // the zero point, if zero points are not an operand
};

// Ends a run: acc = fma(I, da * db, acc), and sets the sums back to their start. ZEROS: zero points
// are an operand. WIDE: runs have 256 terms, so sums start at 0 instead of MAGIC.
template <class Shape, bool ZEROS, bool WIDE>
REE_DEVICE void int8_end_run(ree_shared_t<u32> shared, const struct int8_end &end,
                             u32 (&sum)[Shape::sums_m][Shape::sums_n][4],
                             float (&acc)[Shape::sums_m][Shape::sums_n][4]) {
    const u32 a = end.stage + end.run * Shape::rows + end.row;
    const u32 b = end.stage + end.run * Shape::columns + end.column;
    const float base = WIDE ? 0.0f : ree_float(MAGIC);
    float scale[Shape::sums_n][2], less[Shape::sums_n][2];
    REE_UNROLL
    for (u32 j = 0; j < Shape::sums_n; j++) {
        float2 two = ree_load<float2>(shared, b + Shape::b_scales + j * 8u);
        scale[j][0] = two.x, scale[j][1] = two.y;
        if (!ZEROS) continue;
        uint2 words = ree_load<uint2>(shared, b + Shape::b_zeros + j * 8u);
        const u32 at = end.zeros + j * 8u * end.step;
        less[j][0] = -__uint2float_rn(words.x >> (at % 4u * 8u) & 255u);
        less[j][1] = -__uint2float_rn(words.y >> ((at + end.step) % 4u * 8u) & 255u);
    }
    REE_UNROLL
    for (u32 i = 0; i < Shape::sums_m; i++) {
        REE_UNROLL
        for (u32 e = 0; e < 2u; e++) {
            float a_sum = ree_load<float>(shared, a + Shape::a_sums + i * 16u + e * 8u);
            float a_scale = ree_load<float>(shared, a + Shape::a_scales + i * 16u + e * 8u);
            const float all = __fmaf_rn(end.zero, a_sum, base); // exact: an integer below 2^24
            REE_UNROLL
            for (u32 j = 0; j < Shape::sums_n; j++) {
                REE_UNROLL
                for (u32 c = 0; c < 2u; c++) {
                    u32 s = sum[i][j][e * 2u + c];
                    float x = WIDE ? __int2float_rn((int)s) : ree_float(s);
                    if (ZEROS)
                        x = __fmaf_rn(less[j][c], a_sum, WIDE ? x : __fsub_rn(x, base));
                    else
                        x = __fsub_rn(x, all);
                    acc[i][j][e * 2u + c] =
                        __fmaf_rn(x, __fmul_rn(a_scale, scale[j][c]), acc[i][j][e * 2u + c]);
                    sum[i][j][e * 2u + c] = WIDE ? 0u : MAGIC;
                }
            }
        }
    }
}

// Starts to copy a slice of weights. n_words: words of a column.
template <class Shape, u32 BITS>
REE_DEVICE void int8_start_b(ree_in_t<u32> weights, u32 j0, u32 n, u32 k0, u32 n_words,
                             ree_shared_t<u32> shared, u32 stage) {
    const u32 units = BITS / 2u, pitch = BITS == 4u ? PITCH_4 : PITCH; // units of 16 bytes
    REE_UNROLL
    for (u32 c = 0; c < Shape::columns * units / Shape::threads; c++) {
        const u32 e = c * Shape::threads + threadIdx.x, column = e / units, word = e % units * 4u;
        const u32 from = k0 / (32u / BITS) + word;
        ree_async_copy<16>(shared, stage + Shape::b + column * pitch + word, weights,
                           (j0 + column) * n_words + from, j0 + column < n && from < n_words);
    }
}

template <class Shape>
REE_DEVICE void int8_tile(const struct ree_cuda_header &h,
                          const struct ree_cuda_matmul_params &params, ree_shared_t<u32> shared) {
    const struct ree_matmul_params &p = params.p;
    const struct int8_runs runs = int8_runs_of(p);
    const u32 n_parts = h.extra[REE_CUDA_PRODUCT_N_PARTS];
    const u32 n_stages = h.extra[REE_CUDA_PRODUCT_N_STAGES];
    const u32 tiles_m = (p.m + Shape::rows - 1u) / Shape::rows;
    const u32 tiles_n = (p.n + Shape::columns - 1u) / Shape::columns, tiles = tiles_m * tiles_n;
    const u32 part = blockIdx.x / tiles, per_chunk = REE_CHUNK / SLICE;
    u32 i0, j0;
    tile_place(blockIdx.x % tiles, tiles_m, tiles_n, &i0, &j0);
    i0 *= Shape::rows;
    j0 *= Shape::columns;
    const u32 first = n_parts > 1u ? part * per_chunk : 0u;
    u32 n_slices = runs.n_words / SLICE_WORDS - first;
    if (n_parts > 1u && n_slices > per_chunk) n_slices = per_chunk;

    const bool narrow = p.b_bits == 4u;
    const u32 b_pitch = narrow ? PITCH_4 : PITCH;
    const u32 b_words = runs.b_blocks * p.b_block / (narrow ? 8u : 4u); // words of a column
    const u32 n_runs = runs.length < SLICE ? SLICE >> runs.shift : 1u;  // runs per slice
    const u32 sums_at = p.m * runs.n_words, scales_at = sums_at + runs.n * runs.pitch;
    auto packed = ree_scratch<u32>(h);
    auto weights = ree_in<u32>(h, 1);
    auto scales = ree_in<float>(h, 2);
    auto zeros = ree_in<u32>(h, p.has_zero_points ? 3u : 1u);
    auto start = [&](u32 s, u32 stage) {
        const u32 t = threadIdx.x, k0 = (first + s) * SLICE, run0 = k0 >> runs.shift;
        if (s < n_slices) {
            REE_UNROLL
            for (u32 c = 0; c < Shape::rows * 4u / Shape::threads; c++) {
                const u32 e = c * Shape::threads + t, row = e / 4u, word = e % 4u * 4u;
                ree_async_copy<16>(shared, stage + row * PITCH + word, packed,
                                   (i0 + row) * runs.n_words + k0 / 4u + word, i0 + row < p.m);
            }
            if (narrow)
                int8_start_b<Shape, 4>(weights, j0, p.n, k0, b_words, shared, stage);
            else
                int8_start_b<Shape, 8>(weights, j0, p.n, k0, b_words, shared, stage);
            static_assert(MAX_RUNS * Shape::rows / 4u <= Shape::threads, "one copy per thread");
            if (t < n_runs * (Shape::rows / 4u)) {
                const u32 run = t / (Shape::rows / 4u), row = t % (Shape::rows / 4u) * 4u;
                const u32 from = (run0 + run) * runs.pitch + i0 + row;
                const u32 to = stage + run * Shape::rows + row;
                ree_async_copy<16>(shared, to + Shape::a_sums, packed, sums_at + from, true);
                ree_async_copy<16>(shared, to + Shape::a_scales, packed, scales_at + from, true);
            }
            REE_NO_UNROLL
            for (u32 e = t; e < n_runs * Shape::columns; e += Shape::threads) {
                u32 c = e % Shape::columns, k = (run0 + e / Shape::columns) << runs.shift;
                // Past the end the scales are zero too: 0 times an infinite scale would be NaN.
                bool valid = j0 + c < p.n && k < p.k;
                u32 block = (j0 + c) * runs.b_blocks + (k >> runs.b_shift);
                ree_async_copy<4>(shared, stage + Shape::b_scales + e, scales, block, valid);
                if (p.has_zero_points)
                    ree_async_copy<4>(shared, stage + Shape::b_zeros + e, zeros, block / 4u, valid);
            }
        }
        ree_async_commit();
    };

    const u32 warp = threadIdx.x / 32u, lane = threadIdx.x % 32u;
    const u32 row = warp / Shape::warps_n * 16u * Shape::sums_m;
    const u32 column = warp % Shape::warps_n * 8u * Shape::sums_n;
    const bool is_wide = runs.length == REE_CHUNK, has_zeros = p.has_zero_points != 0;
    struct int8_end where;
    where.row = row + lane / 4u;
    where.column = column + lane % 4u * 2u;
    where.step = runs.b_blocks;
    where.zero = narrow ? 8.0f : 128.0f;
    u32 sum[Shape::sums_m][Shape::sums_n][4];
    float acc[Shape::sums_m][Shape::sums_n][4], total[Shape::sums_m][Shape::sums_n][4];
    REE_UNROLL
    for (u32 e = 0; e < Shape::sums_m * Shape::sums_n * 4u; e++) {
        sum[e / 4u / Shape::sums_n][e / 4u % Shape::sums_n][e % 4u] = is_wide ? 0u : MAGIC;
        acc[e / 4u / Shape::sums_n][e / 4u % Shape::sums_n][e % 4u] = 0.0f;
        total[e / 4u / Shape::sums_n][e / 4u % Shape::sums_n][e % 4u] = 0.0f;
    }
    for (u32 s = 0; s + 1u < n_stages; s++)
        start(s, s * Shape::stage);
    u32 here = 0, there = (n_stages - 1u) * Shape::stage;
    REE_NO_UNROLL
    for (u32 s = 0; s < n_slices; s++) {
        ree_async_wait_stage(n_stages);
        __syncthreads(); // slice s has arrived, and all threads have read slice s - 1
        start(s + n_stages - 1u, there);
        REE_NO_UNROLL
        for (u32 half = 0; half < SLICE / 32u; half++) {
            const u32 k = (first + s) * SLICE + half * 32u, end = k + 32u;
            const u32 a = here + row * PITCH + half * 8u;
            const u32 b = here + Shape::b + column * b_pitch + half * (narrow ? 4u : 8u);
            const bool is_16 = runs.length == 16u;
            const bool last = s + 1u == n_slices && half == 1u;
            REE_NO_UNROLL
            for (u32 part = is_16 ? 1u : 0u; part < (is_16 ? 3u : 1u); part++) {
                int8_multiply<Shape>(shared, a, b, narrow, part, sum);
                if ((end & (runs.length - 1u)) != 0u && !last) continue;
                const u32 from = k + (part == 2u ? 16u : 0u); // a term of the run
                where.stage = here;
                where.run = runs.length < SLICE ? from % SLICE >> runs.shift : 0u;
                where.zeros = (j0 + where.column) * runs.b_blocks + (from >> runs.b_shift);
                if (is_wide && has_zeros)
                    int8_end_run<Shape, true, true>(shared, where, sum, acc);
                else if (is_wide)
                    int8_end_run<Shape, false, true>(shared, where, sum, acc);
                else if (has_zeros)
                    int8_end_run<Shape, true, false>(shared, where, sum, acc);
                else
                    int8_end_run<Shape, false, false>(shared, where, sum, acc);
            }
        }
        if ((first + s) % per_chunk == per_chunk - 1u || s + 1u == n_slices) {
            REE_UNROLL
            for (u32 i = 0; i < Shape::sums_m; i++) {
                REE_UNROLL
                for (u32 j = 0; j < Shape::sums_n; j++) {
                    REE_UNROLL
                    for (u32 q = 0; q < 4u; q++) {
                        total[i][j][q] = __fadd_rn(total[i][j][q], acc[i][j][q]);
                        acc[i][j][q] = 0.0f;
                    }
                }
            }
        }
        there = here;
        here += Shape::stage;
        if (here == n_stages * Shape::stage) here = 0;
    }

    __syncthreads(); // the memory of the stages is reused for the results and the epilogue's slots
    REE_UNROLL
    for (u32 i = 0; i < Shape::sums_m; i++) {
        REE_UNROLL
        for (u32 j = 0; j < Shape::sums_n; j++) {
            u32 to = (where.row + i * 16u) * Shape::result_pitch + where.column + j * 8u;
            ree_store(shared, to, make_float2(total[i][j][0], total[i][j][1]));
            ree_store(shared, to + 8u * Shape::result_pitch,
                      make_float2(total[i][j][2], total[i][j][3]));
        }
    }
    __syncthreads();
    const bool to_scratch = h.extra[REE_CUDA_PRODUCT_FLAGS] & REE_CUDA_TO_SCRATCH;
    const u32 scratch_at = h.extra[REE_CUDA_PRODUCT_PARTS_AT] + part * (p.m * p.n);
    auto slots = shared + Shape::rows * Shape::result_pitch;
    REE_NO_UNROLL
    for (u32 e = threadIdx.x; e < Shape::rows * Shape::columns / 4u; e += Shape::threads) {
        const u32 r = e / (Shape::columns / 4u), c = e % (Shape::columns / 4u) * 4u;
        const u32 i = i0 + r, j = j0 + c;
        if (i >= p.m || j >= p.n) continue;
        float4 x = ree_load<float4>(shared, r * Shape::result_pitch + c);
        product_finish(h, params, matmul_n_factors(p), to_scratch, scratch_at, i * p.n + j,
                       p.n - j < 4u ? p.n - j : 4u, x, slots, threadIdx.x, Shape::threads);
    }
}

REE_KERNEL_BLOCKS(matmul_int8_64x64, struct ree_cuda_matmul_params, 128, 3) {
    REE_SHARED_DYNAMIC(u32, shared);
    int8_tile<int8_shape<2, 4, 2, 2>>(h, p, shared);
}
REE_KERNEL_BLOCKS(matmul_int8_32x64, struct ree_cuda_matmul_params, 128, 4) {
    REE_SHARED_DYNAMIC(u32, shared);
    int8_tile<int8_shape<1, 4, 2, 2>>(h, p, shared);
}

// Returns the sum of the chunk results of row i and column j, before step 4 of NUMERICS.md section
// 3.
REE_DEVICE float int8_word(const struct ree_cuda_header &h, const struct ree_matmul_params &p,
                           u32 i, u32 j) {
    const u32 run = p.a_block < p.b_block ? p.a_block : p.b_block;
    const u32 a_blocks = (p.k + p.a_block - 1u) / p.a_block;
    const u32 b_blocks = (p.k + p.b_block - 1u) / p.b_block;
    auto a = ree_in<int8_t>(h, 0);
    auto b = ree_in<uint8_t>(h, 1);
    auto b_scales = ree_in<float>(h, 2);
    auto a_scales = ree_in<float>(h, matmul_n_factors(p) - 1u);
    u32 from = (u32)p.a_offset + i * (u32)p.a_stride_m;
    float total = 0.0f, sum = 0.0f;
    REE_NO_UNROLL
    for (u32 k0 = 0; k0 < p.k; k0 += run) {
        const u32 block = j * b_blocks + k0 / p.b_block, end = p.k - k0 < run ? p.k - k0 : run;
        u32 at = j * (b_blocks * p.b_block) + k0, z = 1u << (p.b_bits - 1u);
        if (p.has_zero_points) z = ree_in<uint8_t>(h, 3)[block];
        int dot = 0;
        REE_NO_UNROLL
        for (u32 l = 0; l < end; l++, at++, from += (u32)p.a_stride_k) {
            u32 q = p.b_bits == 8u ? (u32)b[at] : (u32)b[at / 2u] >> (at % 2u * 4u) & 15u;
            dot += (int)a[from] * (int)(q - z);
        }
        float a_scale = a_scales[i * a_blocks + k0 / p.a_block], b_scale = b_scales[block];
        sum = __fmaf_rn(__int2float_rn(dot), __fmul_rn(a_scale, b_scale), sum);
        if ((k0 + run) % REE_CHUNK != 0u && k0 + run < p.k) continue;
        total = __fadd_rn(total, sum);
        sum = 0.0f;
    }
    return total;
}

REE_KERNEL(matmul_int8_words, struct ree_cuda_matmul_params, 128) {
    const u32 index = ree_thread();
    if (index >= p.p.m * p.p.n) return;
    float total = int8_word(h, p.p, index / p.p.n, index % p.p.n);
    if (h.extra[REE_CUDA_PRODUCT_FLAGS] & REE_CUDA_TO_SCRATCH)
        ree_scratch<float>(h)[h.extra[REE_CUDA_PRODUCT_PARTS_AT] + index] = total;
    else
        ree_out<float>(h, matmul_n_factors(p.p))[index] = ree_canon(ree_plus_zero(total));
}
