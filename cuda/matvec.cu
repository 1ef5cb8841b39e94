// matmul with few rows: out[i, j] = expr(sum over l of A[i, l] * B[l, j]), m at most 8, NUMERICS.md
// section 3 (dot). The time to read B once limits the speed.
//
// A warp computes one chunk of 256 terms for some columns; each lane has its own columns. The
// chunks' results are collected in shared memory (or in scratch memory, if there are more chunks
// than one block should compute) and added in ascending order. A is in shared memory, one chunk for
// each warp; all lanes read the same address.
//
//   columns  B[., j] is contiguous (b_stride_k = 1, or blockwise): 32 columns, one per lane.
//            Slices of 128 bytes per column, 4 KiB together, come through shared memory by
//            asynchronous copies. 8 lanes copy one column, so that whole cache lines are read.
//            16-byte unit u of column c is stored at position u ^ (c & 7), so that the 16-byte
//            loads of 8 lanes use each bank once.
//   rows     B[l, .] is contiguous (b_stride_n = 1): 128 columns, four neighbours per lane; slices
//            of 4 KiB too. A lane reads what it copied itself.
//
// An H200 reads 4.8 TB/s: about 21 bytes per clock and multiprocessor. A multiprocessor issues 128
// instructions (counted per lane) per clock. To cover 0.8 us of latency, 29 KB must be in flight; 8
// warps with two slices of 4 KiB each have 64 KB. Instructions per weight for one row of 4096
// terms, as nvcc compiles them (tools/BENCHMARKS.md, counted), and the number that the memory
// bandwidth allows:
//
//   type            counted   allowed
//   float32         10.3      24 (4 bytes)
//   bf16            8.7       12
//   8 bits          12.4      6.7 (blocks of 32)
//   4 bits          10.0      3.7 (blocks of 32)
//
// Memory is therefore the limit for 32 and 16 bits, and the issue of instructions for 8 and 4 bits.
// Only 1 or 2 of these instructions are fma; most of the others are indices of copies, bounds, and
// choices between types.
//
// A weight of 4 or 8 bits is b = (q - z) * s, rounded once (src/repops/repop.h). For 4 bits: the
// bits of q stay at their position in the word w, x = w & (15 << 4i), with i at most 5. Read as a
// float32, x has an exponent field of 0 or 1 and is q * 2^(4i - 149), without a conversion. Then
//
//     b' = fma(x, s * 2^(119 - 4i), -z * s * 2^-30) = (q - z) * s * 2^-30, rounded once,
//
// if z * s is exact. It is always exact for z = 2^(bits - 1), and for scales that were float16. If
// it is not exact,
//
//     d = fma(x, 2^(119 - 4i), -z * 2^-30), exact;  b' = d * s.
//
// For 8 bits, 8i replaces 4i, and i is at most 2. Bits at higher positions are shifted down by 8
// first. A is stored as a * 2^30, so that the products a * b are unchanged.
//
// These factors make no value subnormal or infinite if s is 0 or 2^-96 <= |s| < 2^8, and if
// |a| < 2^97 for every finite a. Other chunks and blocks are computed word by word as repop.h
// defines. The sign of a zero b is lost: it changes no sum (section 3, step 4).
#include "matvec.h"

#define A_SCALE ree_float(0x4E800000u)   // 2^30
#define A_UNSCALE ree_float(0x30800000u) // 2^-30

// Values for the current block of a column. The file's opening comment explains the symbols.
struct matvec_scale {
    float factor[6]; // s * 2^(119 - 4i); for bytes s * 2^(119 - 8i)
    float s, c, z;   // the scale; -(zero point) * s * 2^-30; -(zero point) * 2^-30
    u32 zero;        // the zero point
    // How to compute the weights, the same in all lanes. 0: b' by one fma; 1: d and b'; 2: as
    // repop.h defines.
    u32 way;
};

REE_DEVICE float power_of_two(u32 exponent) { // returns 2^(exponent - 127)
    return ree_float(exponent << 23);
}

template <int BITS> REE_DEVICE void matvec_set_scale(struct matvec_scale &q, float s, u32 zero) {
    const u32 bits = __float_as_uint(s) << 1;
    bool usual = bits == 0 || bits - (31u << 24) < (104u << 24); // 0, or 2^-96 <= |s| < 2^8
    float z = __uint2float_rn(zero), zs = __fmul_rn(z, s);
    bool exact = __fmaf_rn(z, s, -zs) == 0.0f;
    q.s = s;
    q.zero = zero;
    q.z = __fmul_rn(-z, A_UNSCALE);
    q.c = __fmul_rn(-zs, A_UNSCALE);
    REE_UNROLL
    for (u32 i = 0; i < (BITS == 4 ? 6u : 3u); i++)
        q.factor[i] = __fmul_rn(s, power_of_two(127u + 119u - BITS * i));
    q.way = !__all_sync(ALL_LANES, usual) ? 2u : !__all_sync(ALL_LANES, exact) ? 1u : 0u;
}

// Expands a word of 4- or 8-bit weights to their values b'. FUSED: way 0, otherwise way 1.
template <int BITS, bool FUSED>
REE_DEVICE void matvec_expand(u32 w, const struct matvec_scale &q, float (&b)[32 / BITS]) {
    const u32 in_place = BITS == 4 ? 6u : 3u, mask = (1u << BITS) - 1u;
    const u32 moved = w >> 8;
    REE_UNROLL
    for (u32 t = 0; t < 32u / BITS; t++) {
        u32 i = t < in_place ? t : t - 8u / BITS;
        float x = ree_float((t < in_place ? w : moved) & (mask << (BITS * i)));
        if (FUSED)
            b[t] = __fmaf_rn(x, q.factor[i], q.c);
        else
            b[t] = __fmul_rn(__fmaf_rn(x, power_of_two(127u + 119u - BITS * i), q.z), q.s);
    }
}
// Expands two 16-bit weights.
REE_DEVICE void matvec_expand_half(u32 w, bool is_bf16, float *b) {
    if (is_bf16) {
        b[0] = ree_float(w << 16);
        b[1] = ree_float(w & 0xFFFF0000u);
        return;
    }
#ifdef __CUDACC__
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"
        : "=f"(b[0]), "=f"(b[1])
        : "r"(w));
#else
    b[0] = ree_float(ree_soft_f16_to_f32(w & 0xFFFFu));
    b[1] = ree_float(ree_soft_f16_to_f32(w >> 16));
#endif
}

// sum[r] = fma(a, b, sum[r]) for N terms. a: index in shared memory of the first term of row 0.
template <int N, int M>
REE_DEVICE void matvec_terms(ree_shared_t<u32> shared, u32 a, const float (&b)[N],
                             float (&sum)[M]) {
    REE_UNROLL
    for (int g = 0; g < N; g += 4) {
        REE_UNROLL
        for (int r = 0; r < M; r++) {
            float4 x = ree_load<float4>(shared, a + (u32)(r * REE_CHUNK + g));
            sum[r] = __fmaf_rn(x.x, b[g], sum[r]);
            sum[r] = __fmaf_rn(x.y, b[g + 1], sum[r]);
            sum[r] = __fmaf_rn(x.z, b[g + 2], sum[r]);
            sum[r] = __fmaf_rn(x.w, b[g + 3], sum[r]);
        }
    }
}
// Does what matvec_terms does for one word of 4- or 8-bit weights, computed as repop.h defines (way
// 2). Only the first n_terms terms count. scaled: A is stored as a * 2^30.
template <int BITS, int M>
REE_DEVICE void matvec_terms_slow(ree_shared_t<u32> shared, u32 a, u32 w, float s, u32 zero,
                                  bool scaled, u32 n_terms, float (&sum)[M]) {
    const float unscale = scaled ? A_UNSCALE : 1.0f;
    REE_NO_UNROLL
    for (u32 t = 0; t < 32u / BITS && t < n_terms; t++) {
        u32 q = w >> (BITS * t) & ((1u << BITS) - 1u);
        float b = __fmul_rn(__int2float_rn((int)(q - zero)), s);
        REE_UNROLL
        for (int r = 0; r < M; r++) {
            float x = ree_load<float>(shared, a + (u32)r * REE_CHUNK + t);
            sum[r] = __fmaf_rn(__fmul_rn(x, unscale), b, sum[r]);
        }
    }
}

// Adds the products of sixteen weights of 4 or 8 bits, by way 0 (FUSED) or 1.
template <int BITS, bool FUSED, int M>
REE_DEVICE void matvec_piece(ree_shared_t<u32> shared, u32 a, const u32 (&words)[BITS / 2],
                             const struct matvec_scale &q, float (&sum)[M]) {
    REE_UNROLL
    for (u32 i = 0; i < BITS / 2u; i++) {
        float b[32 / BITS];
        matvec_expand<BITS, FUSED>(words[i], q, b);
        matvec_terms<32 / BITS>(shared, a + i * (32u / BITS), b, sum);
    }
}

REE_DEVICE float matvec_load_a(const struct ree_cuda_header &h, const struct matvec &v, u32 i) {
    if (v.a_dtype == REE_F32) return ree_in<float>(h, v.a_operand)[i];
    u32 x = (u32)ree_load_any(h, v.a_operand, v.a_dtype, i);
    if (v.a_dtype == REE_F16) return ree_float(ree_soft_f16_to_f32(x));
    if (v.a_dtype == REE_BF16) return ree_float(x << 16);
    return __int2float_rn((int)x);
}

// Copies a chunk of A to shared memory, with zeros past its last row and its end. If `scale` is set
// and all finite values are below 2^97 in magnitude, multiplies them by 2^30 and returns true.
// Otherwise returns false.
template <int M>
REE_DEVICE bool matvec_bring_a(const struct ree_cuda_header &h, const struct matvec &v, u32 chunk,
                               bool scale, ree_shared_t<u32> shared, u32 a) {
    const u32 lane = threadIdx.x % LANES, k0 = chunk * REE_CHUNK;
    u32 largest = 0;
    REE_NO_UNROLL
    for (u32 r = 0; r < M; r++) {
        float x[REE_CHUNK / LANES];
        REE_UNROLL
        for (u32 e = 0; e < REE_CHUNK / LANES; e++) {
            u32 k = k0 + e * LANES + lane;
            x[e] = 0.0f;
            if (r < v.m && k < v.k)
                x[e] = matvec_load_a(h, v, v.a_base + r * v.a_stride_m + k * v.a_stride_k);
        }
        REE_UNROLL
        for (u32 e = 0; e < REE_CHUNK / LANES; e++) {
            u32 bits = __float_as_uint(x[e]) & ~REE_SIGN;
            if (bits < REE_INF && bits > largest) largest = bits;
            ree_store(shared, a + r * REE_CHUNK + e * LANES + lane, x[e]);
        }
    }
    if (!scale) return false;
    if (!__all_sync(ALL_LANES, largest < (127u + 97u) << 23)) return false;
    REE_NO_UNROLL
    for (u32 i = lane; i < M * REE_CHUNK; i += LANES) // only elements that this lane wrote
        ree_store(shared, a + i, __fmul_rn(ree_load<float>(shared, a + i), A_SCALE));
    return true;
}

template <int BITS, int M>
REE_DEVICE void matvec_compute_columns(const struct ree_cuda_header &h, const struct matvec &v,
                                       const struct matvec_blocks &blocks, bool is_scaled,
                                       u32 column, u32 k0, ree_shared_t<u32> shared, u32 stage,
                                       u32 a, struct matvec_scale &q, float (&sum)[M]) {
    const u32 lane = threadIdx.x % LANES;
    const u32 start = stage + lane * 32u, per_unit = 128u / BITS;
    const u32 k_end = v.k - k0;
    REE_NO_UNROLL
    for (u32 u = 0; u < 8u && u * per_unit < k_end; u++) {
        uint4 four = ree_load<uint4>(shared, start + (u ^ (lane & 7u)) * 4u);
        u32 w[4] = {four.x, four.y, four.z, four.w};
        u32 at = a + u * per_unit;
        if constexpr (BITS == 32) {
            float b[4] = {ree_float(w[0]), ree_float(w[1]), ree_float(w[2]), ree_float(w[3])};
            matvec_terms<4>(shared, at, b, sum);
        } else if constexpr (BITS == 16) {
            float b[8];
            REE_UNROLL
            for (int i = 0; i < 4; i++)
                matvec_expand_half(w[i], v.b_dtype == REE_BF16, b + 2 * i);
            matvec_terms<8>(shared, at, b, sum);
        } else {
            // Sixteen weights at a time: they are in one block, since blocks have at least 16.
            const u32 n_words = BITS / 2, per_word = 32 / BITS;
            REE_UNROLL
            for (u32 first = 0; first < 4; first += n_words) {
                u32 k = u * per_unit + first * per_word;
                if (blocks.blockwise && ((k0 + k) & (blocks.block - 1u)) == 0) {
                    matvec_set_scale<BITS>(
                        q, matvec_scale_of(blocks, k, shared, stage),
                        matvec_zero_of<BITS>(h, v, blocks, column, k0, k, shared, stage));
                }
                u32 piece[BITS / 2], from = at + first * per_word;
                REE_UNROLL
                for (u32 i = 0; i < n_words; i++)
                    piece[i] = w[first + i] ^ blocks.flip;
                // Ways 0 and 1 include terms past the end: A is zero there and b finite.
                if (is_scaled && q.way == 0u) {
                    matvec_piece<BITS, true>(shared, from, piece, q, sum);
                } else if (is_scaled && q.way == 1u) {
                    matvec_piece<BITS, false>(shared, from, piece, q, sum);
                } else {
                    REE_NO_UNROLL
                    for (u32 i = 0; i < n_words && k + i * per_word < k_end; i++) {
                        u32 word = i == 0 ? piece[0] : i == 1 ? piece[1] : piece[BITS / 2 - 1];
                        if (BITS == 8 && i == 2) word = piece[2];
                        matvec_terms_slow<BITS>(shared, from + i * per_word, word, q.s, q.zero,
                                                is_scaled, k_end - k - i * per_word, sum);
                    }
                }
            }
        }
    }
}

// Starts to copy a slice of 128 columns: 8, 16 or 32 rows of B.
template <int BITS>
REE_DEVICE void matvec_start_rows(const struct ree_cuda_header &h, const struct matvec &v,
                                  u32 column, u32 k0, ree_shared_t<u32> shared, u32 stage) {
    const u32 n_words = BITS / 8, lane = threadIdx.x % LANES;
    const u32 j = column + lane * 4u;
    auto b = ree_in<u32>(h, v.b_operand);
    u32 from = v.b_base + j / (32u / BITS) + k0 * v.b_stride;
    REE_UNROLL
    for (u32 i = 0; i < 256u / BITS; i++)
        ree_async_copy<BITS / 2>(shared, stage + (i * LANES + lane) * n_words, b,
                                 from + i * v.b_stride, j < v.n && k0 + i < v.k);
}

// Adds the products of a slice. sum[4 r + c]: row r, column c of the lane.
template <int BITS, int M>
REE_DEVICE void matvec_compute_rows(const struct matvec &v, const struct matvec_blocks &blocks,
                                    bool is_scaled, u32 k0, ree_shared_t<u32> shared, u32 stage,
                                    u32 a, const struct matvec_scale &q, float (&sum)[4 * M]) {
    const u32 n_words = BITS / 8, lane = threadIdx.x % LANES;
    const u32 k_end = v.k - k0;
    REE_NO_UNROLL
    for (u32 k = 0; k < 256u / BITS && k < k_end; k += 4) {
        float b[4][4]; // [row][column]
        REE_UNROLL
        for (u32 i = 0; i < 4; i++) {
            u32 from = stage + ((k + i) * LANES + lane) * n_words;
            if constexpr (BITS == 32) {
                float4 x = ree_load<float4>(shared, from);
                b[i][0] = x.x, b[i][1] = x.y, b[i][2] = x.z, b[i][3] = x.w;
            } else if constexpr (BITS == 16) {
                uint2 x = ree_load<uint2>(shared, from);
                matvec_expand_half(x.x, v.b_dtype == REE_BF16, b[i]);
                matvec_expand_half(x.y, v.b_dtype == REE_BF16, b[i] + 2);
            } else {
                u32 word = shared[from] ^ blocks.flip;
                if (is_scaled) {
                    matvec_expand<8, true>(word, q, b[i]);
                } else {
                    REE_UNROLL
                    for (u32 c = 0; c < 4; c++)
                        b[i][c] = __int2float_rn((int)((word >> (8u * c) & 255u) - q.zero));
                }
            }
        }
        REE_UNROLL
        for (int r = 0; r < M; r++) {
            float4 x = ree_load<float4>(shared, a + (u32)r * REE_CHUNK + k);
            REE_UNROLL
            for (int c = 0; c < 4; c++) {
                float s = __fmaf_rn(x.x, b[0][c], sum[4 * r + c]);
                s = __fmaf_rn(x.y, b[1][c], s);
                s = __fmaf_rn(x.z, b[2][c], s);
                sum[4 * r + c] = __fmaf_rn(x.w, b[3][c], s);
            }
        }
    }
}

// A block computes 32 (BY_ROWS: 128) columns and at most extra[REE_CUDA_PRODUCT_OTHER] chunks. Its
// shared memory has, for each warp, the stages and a chunk of A; then the chunks' results,
// [chunk][row][column].
template <int BITS, int M, bool BY_ROWS>
REE_DEVICE void matvec_block(const struct ree_cuda_header &h,
                             const struct ree_cuda_matmul_params &params,
                             ree_shared_t<u32> shared) {
    const struct ree_matmul_params &p = params.p;
    const u32 flags = h.extra[REE_CUDA_PRODUCT_FLAGS];
    const u32 n_stages = h.extra[REE_CUDA_PRODUCT_N_STAGES];
    const u32 per_block = h.extra[REE_CUDA_PRODUCT_OTHER];
    const bool swapped = flags & REE_CUDA_SWAPPED;
    const u32 n_columns = BY_ROWS ? 128u : 32u;
    const u32 warp = threadIdx.x / LANES, n_warps = blockDim.x / LANES, lane = threadIdx.x % LANES;

    struct matvec v;
    v.m = swapped ? p.n : p.m;
    v.n = swapped ? p.m : p.n;
    v.k = p.k;
    const u32 groups = (v.n + n_columns - 1u) / n_columns;
    const u32 n_chunks = (v.k + REE_CHUNK - 1u) / REE_CHUNK;
    const u32 splits = (n_chunks + per_block - 1u) / per_block;
    const u32 column = blockIdx.x % groups * n_columns, batch = blockIdx.x / groups / splits;
    const u32 chunk0 = blockIdx.x / groups % splits * per_block;
    const u32 n_local = n_chunks - chunk0 < per_block ? n_chunks - chunk0 : per_block;
    u32 a_base, b_base;
    matmul_batch(p, batch, &a_base, &b_base);
    v.a_base = swapped ? b_base : a_base;
    v.a_stride_m = (u32)(swapped ? p.b_stride_n : p.a_stride_m);
    v.a_stride_k = (u32)(swapped ? p.b_stride_k : p.a_stride_k);
    v.a_operand = swapped ? 1u : 0u;
    v.a_dtype = swapped ? p.b_dtype : p.a_dtype;
    v.b_operand = swapped ? 0u : 1u;
    v.b_dtype = swapped ? p.a_dtype : p.b_dtype;
    v.b_base = (swapped ? a_base : b_base) / (32u / BITS);
    if (BY_ROWS)
        v.b_stride = (u32)(swapped ? p.a_stride_k : p.b_stride_k) / (32u / BITS);
    else
        v.b_stride = (u32)(swapped ? p.a_stride_m : p.b_stride_n) / (32u / BITS);
    v.first = batch * v.m * v.n;

    struct matvec_blocks blocks = {};
    struct matvec_scale q = {};
    u32 stage_size = 1024u;
    if constexpr (BITS <= 8) {
        const u32 slice = BY_ROWS ? REE_CHUNK : 1024u / BITS;
        if (p.b_block) {
            blocks = matvec_blocks_of(h, p, slice);
            v.b_stride = blocks.n_blocks * p.b_block / (32u / BITS);
            stage_size += SCALE_PITCH * (blocks.n_scales + blocks.n_scales / 4u);
        } else {
            u32 zero = v.b_dtype == REE_I8 ? 128u : 0u;
            blocks.flip = zero * 0x01010101u;
            matvec_set_scale<BITS>(q, 1.0f, zero);
        }
    }
    const u32 warp_size = n_stages * stage_size + M * REE_CHUNK;
    const u32 stages = warp * warp_size, a = stages + n_stages * stage_size;
    const u32 partials = n_warps * warp_size;
    const u32 slice = BY_ROWS ? 256u / BITS : 1024u / BITS, per_chunk = REE_CHUNK / slice;
    const u32 n_mine = warp < n_local ? (n_local - warp + n_warps - 1u) / n_warps : 0u;
    const u32 n_slices = n_mine * per_chunk;

    auto start = [&](u32 s) {
        u32 k0 = (chunk0 + warp + s / per_chunk * n_warps) * REE_CHUNK + s % per_chunk * slice;
        u32 stage = stages + s % n_stages * stage_size;
        if (s < n_slices && k0 < v.k) {
            if constexpr (BY_ROWS)
                matvec_start_rows<BITS>(h, v, column, k0, shared, stage);
            else
                matvec_start_columns<BITS>(h, v, blocks, column, k0, shared, stage);
        }
        ree_async_commit();
    };
    for (u32 s = 0; s + 1u < n_stages; s++)
        start(s);
    float sum[BY_ROWS ? 4 * M : M] = {};
    bool is_scaled = false;
    REE_NO_UNROLL
    for (u32 s = 0; s < n_slices; s++) {
        ree_async_wait_stage(n_stages);
        __syncwarp(); // slice s has arrived for all lanes, and all have read slice s - 1
        start(s + n_stages - 1u);
        const u32 chunk = warp + s / per_chunk * n_warps, part = s % per_chunk;
        const u32 k0 = (chunk0 + chunk) * REE_CHUNK + part * slice;
        if (part == 0) {
            is_scaled = matvec_bring_a<M>(h, v, chunk0 + chunk, BITS <= 8, shared, a);
            __syncwarp();
            REE_UNROLL
            for (int r = 0; r < (BY_ROWS ? 4 * M : M); r++)
                sum[r] = 0.0f;
        }
        u32 stage = stages + s % n_stages * stage_size;
        if (k0 < v.k) {
            if constexpr (BY_ROWS)
                matvec_compute_rows<BITS, M>(v, blocks, is_scaled, k0, shared, stage,
                                             a + part * slice, q, sum);
            else
                matvec_compute_columns<BITS, M>(h, v, blocks, is_scaled, column, k0, shared, stage,
                                                a + part * slice, q, sum);
        }
        if (part + 1u < per_chunk) continue;
        REE_UNROLL
        for (u32 r = 0; r < M; r++) {
            u32 to = partials + (chunk * M + r) * n_columns;
            if constexpr (BY_ROWS)
                ree_store(shared, to + lane * 4u,
                          make_float4(sum[4 * r], sum[4 * r + 1], sum[4 * r + 2], sum[4 * r + 3]));
            else
                ree_store(shared, to + lane, sum[r]);
        }
    }
    __syncthreads(); // the memory of the stages is reused for the epilogue's slots

    matvec_results<M>(h, params, v, column, n_columns, chunk0, n_local, partials, shared);
}

#define MATVEC(name, bits, rows, by_rows)                                                          \
    REE_KERNEL_BLOCKS(matvec_##name##_##rows, struct ree_cuda_matmul_params, 256, 2) {             \
        REE_SHARED_DYNAMIC(u32, shared);                                                           \
        matvec_block<bits, rows, by_rows>(h, p, shared);                                           \
    }
#define MATVEC_ALL(rows)                                                                           \
    MATVEC(columns_32, 32, rows, false)                                                            \
    MATVEC(columns_16, 16, rows, false)                                                            \
    MATVEC(columns_8, 8, rows, false)                                                              \
    MATVEC(columns_4, 4, rows, false)                                                              \
    MATVEC(rows_32, 32, rows, true)                                                                \
    MATVEC(rows_16, 16, rows, true)                                                                \
    MATVEC(rows_8, 8, rows, true)
MATVEC_ALL(1)
MATVEC_ALL(4)
MATVEC_ALL(8)
