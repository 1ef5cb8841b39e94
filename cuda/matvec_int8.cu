// matmul of blockwise activations and blockwise weights with few rows: out[i, j] = expr(block-dot
// of A[i, .] and B[., j]), m at most 8, NUMERICS.md section 3. The time to read B once limits the
// speed.
//
// As in the columns kernels of matvec.cu, a warp computes one chunk for 32 columns, one per lane,
// slices of the weights come through shared memory, and the chunks' results are collected there. A
// is in shared memory as bytes, with the sum and the scale of each of its runs. For a run of a row,
// a lane computes
//
//     I = the sum of a * q - z * (the sum of a), in integers;  acc = fma(I, da * db, acc)
//
// with the symbols of matmul_int8.cu. A word of eight 4-bit weights has the even terms in the low
// halves of its bytes and the odd terms in the high halves. So A's bytes are stored with even and
// odd terms apart, and a word takes two dot products of four bytes, two ANDs and a shift.
//
// Instructions per weight in blocks of 32, for 4096 terms (counted in PTX of compute_80), and the
// number that the memory bandwidth of an H200 allows (matvec.cu):
//
//   bits   rows   counted   allowed
//   4      1      4.4       3.7
//   4      8      10.9      3.7
//   8      1      5.8       6.7
//
// For weights of 4 bits and one row of float32, matvec.cu needs about 10.
#include "bytes.h"
#include "matvec.h"

#define MAX_RUNS (REE_CHUNK / 16u) // runs per chunk, at most
#define A_WORDS (REE_CHUNK / 4u)   // words of a row's bytes in a chunk

// Layout of a chunk of A in shared memory, in words: the bytes, [row][64]; the sums of the runs,
// [run][row]; their scales, [run][row].
template <int M> struct int8_chunk {
    static constexpr u32 sums = M * A_WORDS, scales = sums + M * MAX_RUNS;
    static constexpr u32 words = scales + M * MAX_RUNS;
};

// The runs of a row of A.
struct int8_row_runs {
    u32 length, shift; // terms of a run; its log2
    // log2 of a_block; blocks of a row; number of the operand with the scales
    u32 a_shift, a_blocks, a_scales;
};

// Copies a chunk of A to shared memory, with zeros past its last row and its end.
template <int BITS, int M>
REE_DEVICE void int8_bring_a(const struct ree_cuda_header &h, const struct matvec &v,
                             const struct int8_row_runs &runs, u32 chunk, ree_shared_t<u32> shared,
                             u32 a) {
    const u32 lane = threadIdx.x % LANES, k = chunk * REE_CHUNK + lane * 8u;
    const u32 lanes = runs.length / 8u; // lanes per run: a lane copies eight terms
    auto x = ree_in<uint8_t>(h, 0);
    auto scales = ree_in<float>(h, runs.a_scales);
    REE_NO_UNROLL
    for (u32 r = 0; r < M; r++) {
        const u32 from = v.a_base + r * v.a_stride_m + k * v.a_stride_k;
        uint2 w = make_uint2(0u, 0u); // eight terms
        if (r < v.m && v.a_stride_k == 1u && k < v.k && v.k - k >= 8u && ree_aligned(x, from, 8)) {
            w = ree_load<uint2>(x, from);
        } else if (r < v.m) {
            REE_UNROLL
            for (u32 e = 0; e < 8u; e++) {
                u32 byte = k + e < v.k ? (u32)x[from + e * v.a_stride_k] << (e % 4u * 8u) : 0u;
                if (e < 4u)
                    w.x |= byte;
                else
                    w.y |= byte;
            }
        }
        u32 sum = bytes_dot<true, true>(w.x, 0x01010101u, 0u);
        sum = bytes_dot<true, true>(w.y, 0x01010101u, sum);
        for (u32 d = 1; d < lanes; d *= 2u)
            sum += __shfl_xor_sync(ALL_LANES, sum, (int)d);
        if ((lane & (lanes - 1u)) == 0) {
            const u32 to = (lane * 8u >> runs.shift) * M + r;
            float scale = 0.0f;
            if (r < v.m && k < v.k) scale = scales[r * runs.a_blocks + (k >> runs.a_shift)];
            shared[a + int8_chunk<M>::sums + to] = sum;
            ree_store(shared, a + int8_chunk<M>::scales + to, scale);
        }
        const u32 row = a + r * A_WORDS;
        if constexpr (BITS == 4) {
            u32 to = row + lane / 4u * 8u + lane % 4u;
            shared[to] = __byte_perm(w.x, w.y, 0x6420u);
            shared[to + 4u] = __byte_perm(w.x, w.y, 0x7531u);
        } else {
            ree_store(shared, row + lane * 2u, w);
        }
    }
}

// For each row: the sum of a * q of the current run, and the chunk's accumulator acc.
template <int M> struct int8_sums {
    u32 dot[M];
    float sum[M];
};

// Ends run number `run` of the chunk: adds it to each row's accumulator and sets dot to 0.
template <int M>
REE_DEVICE void int8_end_run(ree_shared_t<u32> shared, u32 a, u32 run, float scale, u32 zero,
                             struct int8_sums<M> &s) {
    REE_UNROLL
    for (u32 r = 0; r < M; r++) {
        u32 a_sum = shared[a + int8_chunk<M>::sums + run * M + r];
        float a_scale = ree_load<float>(shared, a + int8_chunk<M>::scales + run * M + r);
        float dot = __int2float_rn((int)(s.dot[r] - zero * a_sum));
        s.sum[r] = __fmaf_rn(dot, __fmul_rn(a_scale, scale), s.sum[r]);
        s.dot[r] = 0u;
    }
}

// Adds the products of 16 terms to a run. a, w: words of A's rows and of the lane's column. piece:
// for 4 bits, 0 or 1 for the first or second 16 of the 32 terms in these words.
template <int BITS, int M>
REE_DEVICE void int8_piece(const u32 (&a)[M][8], const u32 (&w)[4], u32 piece, u32 (&dot)[M]) {
    REE_UNROLL
    for (u32 r = 0; r < M; r++) {
        if constexpr (BITS == 4) {
            REE_UNROLL
            for (u32 i = piece * 2u; i < piece * 2u + 2u; i++) {
                dot[r] = bytes_dot<true, true>(a[r][i], w[i] & 0x0F0F0F0Fu, dot[r]);
                dot[r] = bytes_dot<true, true>(a[r][i + 4u], w[i] >> 4 & 0x0F0F0F0Fu, dot[r]);
            }
        } else {
            REE_UNROLL
            for (u32 i = 0; i < 4u; i++)
                dot[r] = bytes_dot<true, false>(a[r][i], w[i], dot[r]);
        }
    }
}

template <int BITS, int M>
REE_DEVICE void int8_compute(const struct ree_cuda_header &h, const struct matvec &v,
                             const struct matvec_blocks &blocks, const struct int8_row_runs &runs,
                             u32 column, u32 k0, ree_shared_t<u32> shared, u32 stage, u32 a,
                             struct int8_sums<M> &sums) {
    const u32 lane = threadIdx.x % LANES, per_unit = 128u / BITS, in_chunk = k0 % REE_CHUNK;
    const u32 k_end = v.k - k0;
    auto end_run = [&](u32 k) { // k: a term of the run
        int8_end_run<M>(shared, a, (in_chunk + k) >> runs.shift,
                        matvec_scale_of(blocks, k, shared, stage),
                        matvec_zero_of<BITS>(h, v, blocks, column, k0, k, shared, stage), sums);
    };
    REE_NO_UNROLL
    for (u32 u = 0; u < 8u && u * per_unit < k_end; u++) {
        const u32 k = u * per_unit, end = k + per_unit, from = a + (in_chunk + k) / 4u;
        uint4 four = ree_load<uint4>(shared, stage + lane * 32u + (u ^ (lane & 7u)) * 4u);
        const u32 w[4] = {four.x, four.y, four.z, four.w};
        u32 x[M][8];
        REE_UNROLL
        for (u32 r = 0; r < M; r++) {
            REE_UNROLL
            for (u32 i = 0; i < per_unit / 4u; i += 4u) {
                uint4 part = ree_load<uint4>(shared, from + r * A_WORDS + i);
                x[r][i] = part.x, x[r][i + 1u] = part.y;
                x[r][i + 2u] = part.z, x[r][i + 3u] = part.w;
            }
        }
        int8_piece<BITS, M>(x, w, 0, sums.dot);
        bool ends = ((in_chunk + end) & (runs.length - 1u)) == 0u || end >= k_end;
        if constexpr (BITS == 4) {
            if (runs.length == 16u) {
                end_run(k);
                ends = k + 16u < k_end; // the second half is a run if any of its terms exists
            }
            int8_piece<BITS, M>(x, w, 1, sums.dot);
        }
        if (ends) end_run(BITS == 4 ? k + 16u : k);
    }
}

// Computes 32 columns and at most extra[REE_CUDA_PRODUCT_OTHER] chunks, as matvec_block of
// matvec.cu does.
template <int BITS, int M>
REE_DEVICE void int8_block(const struct ree_cuda_header &h,
                           const struct ree_cuda_matmul_params &params, ree_shared_t<u32> shared) {
    const struct ree_matmul_params &p = params.p;
    const u32 n_stages = h.extra[REE_CUDA_PRODUCT_N_STAGES];
    const u32 per_block = h.extra[REE_CUDA_PRODUCT_OTHER];
    const u32 warp = threadIdx.x / LANES, n_warps = blockDim.x / LANES, lane = threadIdx.x % LANES;
    const u32 groups = (p.n + LANES - 1u) / LANES, n_chunks = (p.k + REE_CHUNK - 1u) / REE_CHUNK;
    const u32 column = blockIdx.x % groups * LANES, chunk0 = blockIdx.x / groups * per_block;
    const u32 n_local = n_chunks - chunk0 < per_block ? n_chunks - chunk0 : per_block;
    const u32 slice = 1024u / BITS, per_chunk = REE_CHUNK / slice;

    const struct matvec_blocks blocks = matvec_blocks_of(h, p, slice);
    struct matvec v = {};
    v.m = p.m;
    v.n = p.n;
    v.k = p.k;
    v.a_base = (u32)p.a_offset;
    v.a_stride_m = (u32)p.a_stride_m;
    v.a_stride_k = (u32)p.a_stride_k;
    v.b_operand = 1u;
    v.b_stride = blocks.n_blocks * p.b_block / (32u / BITS);
    struct int8_row_runs runs;
    runs.length = p.a_block < p.b_block ? p.a_block : p.b_block;
    runs.shift = ree_log2(runs.length);
    runs.a_shift = ree_log2(p.a_block);
    runs.a_blocks = (p.k + p.a_block - 1u) >> runs.a_shift;
    runs.a_scales = matmul_n_factors(p) - 1u;

    const u32 stage_size = 1024u + SCALE_PITCH * (blocks.n_scales + blocks.n_scales / 4u);
    const u32 warp_size = n_stages * stage_size + int8_chunk<M>::words;
    const u32 stages = warp * warp_size, a = stages + n_stages * stage_size;
    const u32 partials = n_warps * warp_size;
    const u32 n_mine = warp < n_local ? (n_local - warp + n_warps - 1u) / n_warps : 0u;
    const u32 n_slices = n_mine * per_chunk;

    auto start = [&](u32 s) {
        u32 k0 = (chunk0 + warp + s / per_chunk * n_warps) * REE_CHUNK + s % per_chunk * slice;
        if (s < n_slices && k0 < v.k)
            matvec_start_columns<BITS>(h, v, blocks, column, k0, shared,
                                       stages + s % n_stages * stage_size);
        ree_async_commit();
    };
    for (u32 s = 0; s + 1u < n_stages; s++)
        start(s);
    struct int8_sums<M> sums = {};
    REE_NO_UNROLL
    for (u32 s = 0; s < n_slices; s++) {
        ree_async_wait_stage(n_stages);
        __syncwarp(); // slice s has arrived for all lanes, and all have read slice s - 1
        start(s + n_stages - 1u);
        const u32 chunk = warp + s / per_chunk * n_warps, part = s % per_chunk;
        const u32 k0 = (chunk0 + chunk) * REE_CHUNK + part * slice;
        if (part == 0) {
            int8_bring_a<BITS, M>(h, v, runs, chunk0 + chunk, shared, a);
            __syncwarp();
            REE_UNROLL
            for (u32 r = 0; r < M; r++)
                sums.sum[r] = 0.0f;
        }
        if (k0 < v.k)
            int8_compute<BITS, M>(h, v, blocks, runs, column, k0, shared,
                                  stages + s % n_stages * stage_size, a, sums);
        if (part + 1u < per_chunk) continue;
        REE_UNROLL
        for (u32 r = 0; r < M; r++)
            ree_store(shared, partials + (chunk * M + r) * LANES + lane, sums.sum[r]);
    }
    __syncthreads(); // the memory of the stages is reused for the epilogue's slots
    matvec_results<M>(h, params, v, column, LANES, chunk0, n_local, partials, shared);
}

#define MATVEC_INT8(bits, rows)                                                                    \
    REE_KERNEL_BLOCKS(matvec_int8_##bits##_##rows, struct ree_cuda_matmul_params, 256, 2) {        \
        REE_SHARED_DYNAMIC(u32, shared);                                                           \
        int8_block<bits, rows>(h, p, shared);                                                      \
    }
MATVEC_INT8(4, 1)
MATVEC_INT8(8, 1)
MATVEC_INT8(4, 4)
MATVEC_INT8(8, 4)
MATVEC_INT8(4, 8)
MATVEC_INT8(8, 8)
