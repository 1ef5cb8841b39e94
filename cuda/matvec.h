// Shared by the kernels for few rows: weights as a matvec kernel reads them, slices of 32 columns
// in shared memory, and the sum of the chunks' results. matvec.cu describes the layout.
#ifndef REE_CUDA_MATVEC_H
#define REE_CUDA_MATVEC_H

#include "product.h"

#define LANES 32u
#define ALL_LANES 0xFFFFFFFFu
// Distance in words between the scales of consecutive blocks of 32 columns: 32, plus 4 to avoid
// bank conflicts.
#define SCALE_PITCH 36u

// The product in the form that its warps compute.
struct matvec {
    u32 m, n, k;
    u32 a_base, a_stride_m, a_stride_k, a_operand, a_dtype;
    u32 b_operand, b_dtype, b_base, b_stride; // in words; b_stride is between columns
    u32 first;                                // index of the output of row 0, column 0
};

// Blockwise weights. 8-bit integers are treated as one block of scale 1.
struct matvec_blocks {
    bool blockwise, has_zero_points, words; // words: zero points are loaded four at a time
    u32 block, n_blocks, shift;             // shift: log2 of block
    u32 flip;                               // 0x80808080 for signed bytes
    u32 n_scales, scales_shift;             // per column and slice; its log2
};

REE_DEVICE struct matvec_blocks matvec_blocks_of(const struct ree_cuda_header &h,
                                                 const struct ree_matmul_params &p, u32 slice) {
    struct matvec_blocks blocks = {};
    blocks.blockwise = true;
    blocks.has_zero_points = p.has_zero_points != 0;
    blocks.block = p.b_block;
    blocks.shift = ree_log2(p.b_block);
    blocks.n_blocks = (p.k + p.b_block - 1u) >> blocks.shift;
    blocks.n_scales = slice > p.b_block ? slice >> blocks.shift : 1u;
    blocks.scales_shift = ree_log2(blocks.n_scales);
    blocks.words = blocks.has_zero_points && blocks.n_blocks % 4u == 0 &&
                   blocks.n_scales % 4u == 0 && ree_aligned(ree_in<uint8_t>(h, 3), 0, 4);
    return blocks;
}

// Starts the copies of words first ... first + n - 1 of 32 columns, each with n_words words. n: a
// power of two up to 32; shift: its log2.
REE_DEVICE void matvec_start_values(ree_in_t<u32> memory, u32 n_words, u32 first, u32 n, u32 shift,
                                    u32 column, u32 n_columns, ree_shared_t<u32> shared,
                                    u32 stage) {
    const u32 lane = threadIdx.x % LANES, s = lane & (n - 1u), step = LANES >> shift;
    u32 j = column + (lane >> shift), from = j * n_words + first + s;
    u32 to = stage + s * SCALE_PITCH + (lane >> shift);
    const u32 end = first + s < n_words ? n_columns : 0u;
    for (u32 i = 0; i < n; i++, j += step, from += step * n_words, to += step)
        ree_async_copy<4>(shared, to, memory, from, j < end);
}

// Starts the copies of a slice of 32 columns.
template <int BITS>
REE_DEVICE void matvec_start_columns(const struct ree_cuda_header &h, const struct matvec &v,
                                     const struct matvec_blocks &blocks, u32 column, u32 k0,
                                     ree_shared_t<u32> shared, u32 stage) {
    const u32 lane = threadIdx.x % LANES, unit = lane % 8u;
    const u32 unit_k = k0 + unit * (128u / BITS);
    auto b = ree_in<u32>(h, v.b_operand);
    REE_UNROLL
    for (u32 i = 0; i < 8; i++) {
        u32 c = i * 4u + lane / 8u, j = column + c;
        ree_async_copy<16>(shared, stage + c * 32u + (unit ^ (c & 7u)) * 4u, b,
                           v.b_base + j * v.b_stride + unit_k / (32u / BITS),
                           j < v.n && unit_k < v.k);
    }
    if (!blocks.blockwise) return;
    const u32 n = blocks.n_scales, block0 = k0 >> blocks.shift;
    stage += 1024u;
    matvec_start_values(ree_in<u32>(h, 2), blocks.n_blocks, block0, n, blocks.scales_shift, column,
                        v.n, shared, stage);
    if (blocks.words)
        matvec_start_values(ree_in<u32>(h, 3), blocks.n_blocks / 4u, block0 / 4u, n / 4u,
                            blocks.scales_shift - 2u, column, v.n, shared, stage + n * SCALE_PITCH);
}

// Scale and zero point of the block that has term k of the slice, in the lane's column. k0: the
// slice's first term.
REE_DEVICE float matvec_scale_of(const struct matvec_blocks &blocks, u32 k,
                                 ree_shared_t<u32> shared, u32 stage) {
    return ree_load<float>(shared,
                           stage + 1024u + (k >> blocks.shift) * SCALE_PITCH + threadIdx.x % LANES);
}
template <int BITS>
REE_DEVICE u32 matvec_zero_of(const struct ree_cuda_header &h, const struct matvec &v,
                              const struct matvec_blocks &blocks, u32 column, u32 k0, u32 k,
                              ree_shared_t<u32> shared, u32 stage) {
    const u32 lane = threadIdx.x % LANES, s = k >> blocks.shift;
    if (blocks.words) {
        u32 zeros = shared[stage + 1024u + (blocks.n_scales + s / 4u) * SCALE_PITCH + lane];
        return zeros >> (s % 4u * 8u) & 255u;
    }
    if (!blocks.has_zero_points) return 1u << (BITS - 1);
    u32 j = column + lane < v.n ? column + lane : v.n - 1u, block = (k0 + k) >> blocks.shift;
    return block < blocks.n_blocks ? (u32)ree_in<uint8_t>(h, 3)[j * blocks.n_blocks + block] : 0u;
}

// Adds the results of a block's chunks, [chunk][M rows][n_columns] at `partials` in shared memory,
// in ascending order, and finishes the sums; or stores each chunk's in scratch memory, if other
// blocks have other chunks. The chunks are n_local, from chunk0 on. The first words of shared
// memory are reused as the epilogue's slots.
template <int M>
REE_DEVICE void matvec_results(const struct ree_cuda_header &h,
                               const struct ree_cuda_matmul_params &params, const struct matvec &v,
                               u32 column, u32 n_columns, u32 chunk0, u32 n_local, u32 partials,
                               ree_shared_t<u32> shared) {
    const struct ree_matmul_params &p = params.p;
    const u32 flags = h.extra[REE_CUDA_PRODUCT_FLAGS], n_parts = h.extra[REE_CUDA_PRODUCT_N_PARTS];
    const u32 n_outputs = p.n_batch * v.m * v.n;
    const bool split = n_parts > 1u, to_scratch = flags & REE_CUDA_TO_SCRATCH;
    const u32 at = h.extra[REE_CUDA_PRODUCT_PARTS_AT];
    for (u32 e = threadIdx.x; e < v.m * (n_columns / 4u); e += blockDim.x) {
        u32 r = e / (n_columns / 4u), c = e % (n_columns / 4u) * 4u, j = column + c;
        if (j >= v.n) continue;
        u32 index = v.first + r * v.n + j, n = v.n - j < 4u ? v.n - j : 4u;
        float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (u32 chunk = 0; chunk < n_local; chunk++) {
            float4 x = ree_load<float4>(shared, partials + (chunk * M + r) * n_columns + c);
            if (split) {
                product_store(ree_scratch<float>(h), at + (chunk0 + chunk) * n_outputs + index, n,
                              x);
                continue;
            }
            total = make_float4(__fadd_rn(total.x, x.x), __fadd_rn(total.y, x.y),
                                __fadd_rn(total.z, x.z), __fadd_rn(total.w, x.w));
        }
        if (!split)
            product_finish(h, params, matmul_n_factors(p), to_scratch, at, index, n, total, shared,
                           threadIdx.x, blockDim.x);
    }
}

#endif
