// matmul of 8-bit integers: out[b, i, j] = expr(sum over l of A[b, i, l] * B[b, l, j]), in 32 bits,
// wrapping around (NUMERICS.md section 3, integers), so any order gives the same bits. From sm_80
// on, tensor cores compute the sums (m16n8k32), otherwise four-byte dot products.
//
// A vector is a row of A or a column of B. Vectors are staged in shared memory, 64 bytes at a time,
// [vector][80 bytes]: with 20 words per vector the eight rows of an ldmatrix matrix are in
// different banks. An operand is packed first (matmul_pack) unless its vectors are contiguous,
// aligned to 16 bytes, and a multiple of 64 bytes long; packing pads them with zeros.
//
// Tiles of 128 x 128: 8 warps of 64 x 32. Per slice (64 values of k) a warp executes 32 mma and 12
// ldmatrix, and a block reads 16 KiB for 128 * 128 * 64 multiplications, 1 byte per 64. If the
// tensor cores of an H200 do 10^15 multiplications per second, the whole device reads 16 TB/s from
// the L2 cache. The L2 cache provides a few TB/s: this limits large products; memory limits others.
//
// Few rows: one warp per column, 512 bytes of it at a time. Reading B limits the speed.
#include "bytes.h"
#include "product.h"

#define PITCH 20u // words from one vector to the next in shared memory
#define SLICE 64u // bytes of a vector, and values of k
#define ALL_LANES 0xFFFFFFFFu

// Shape of a tile: SUMS_M x SUMS_N matrices of 16 x 8 sums per warp, WARPS_M x WARPS_N warps per
// block.
template <int SUMS_M, int SUMS_N, int WARPS_M, int WARPS_N> struct bytes_shape {
    static constexpr u32 sums_m = SUMS_M, sums_n = SUMS_N, warps_n = WARPS_N;
    static constexpr u32 threads = 32 * WARPS_M * WARPS_N;
    static constexpr u32 rows = 16 * SUMS_M * WARPS_M, columns = 8 * SUMS_N * WARPS_N;
    static constexpr u32 stage = (rows + columns) * PITCH; // in words
};

#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
// Loads four 8 x 16-byte matrices; lane l provides the address of row l % 8 of matrix l / 8.
REE_DEVICE void bytes_load(const u32 *at, u32 (&x)[4]) {
    u32 address = (u32)__cvta_generic_to_shared(at);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address)
                 : "memory");
}
#endif

// Adds the products of one slice to a warp's sums. A lane holds four numbers of matrix (i, j) in
// sum[i][j]: two neighbours in row lane / 4, from column lane % 4 * 2 on, then two in row
// lane / 4 + 8. a, b: index in shared memory of the warp's first row and column.
template <class Shape, bool A_SIGNED, bool B_SIGNED>
REE_DEVICE void bytes_slice(ree_shared_t<u32> shared, u32 a, u32 b,
                            u32 (&sum)[Shape::sums_m][Shape::sums_n][4]) {
    const u32 lane = threadIdx.x % 32u;
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
    a += lane % 16u * PITCH + lane / 16u * 4u;
    b += (lane / 16u * 8u + lane % 8u) * PITCH + lane / 8u % 2u * 4u;
    REE_UNROLL
    for (u32 k = 0; k < SLICE / 32u; k++) {
        u32 fa[Shape::sums_m][4], fb[Shape::sums_n / 2][4];
        REE_UNROLL
        for (u32 i = 0; i < Shape::sums_m; i++)
            bytes_load(shared + a + i * 16u * PITCH + k * 8u, fa[i]);
        REE_UNROLL
        for (u32 j = 0; j < Shape::sums_n / 2u; j++)
            bytes_load(shared + b + j * 16u * PITCH + k * 8u, fb[j]);
        REE_UNROLL
        for (u32 i = 0; i < Shape::sums_m; i++) {
            REE_UNROLL
            for (u32 j = 0; j < Shape::sums_n; j++)
                bytes_mma<A_SIGNED, B_SIGNED>(sum[i][j], fa[i], fb[j / 2][j % 2 * 2],
                                              fb[j / 2][j % 2 * 2 + 1]);
        }
    }
#else
    a += lane / 4u * PITCH;
    b += lane % 4u * 2u * PITCH;
    REE_NO_UNROLL
    for (u32 w = 0; w < SLICE / 4u; w++) {
        u32 x[Shape::sums_m][2];
        REE_UNROLL
        for (u32 i = 0; i < Shape::sums_m; i++) {
            x[i][0] = shared[a + i * 16u * PITCH + w];
            x[i][1] = shared[a + (i * 16u + 8u) * PITCH + w];
        }
        REE_UNROLL
        for (u32 j = 0; j < Shape::sums_n; j++) {
            u32 y[2] = {shared[b + j * 8u * PITCH + w], shared[b + (j * 8u + 1u) * PITCH + w]};
            REE_UNROLL
            for (u32 i = 0; i < Shape::sums_m; i++) {
                REE_UNROLL
                for (u32 q = 0; q < 4; q++)
                    sum[i][j][q] =
                        bytes_dot<A_SIGNED, B_SIGNED>(x[i][q / 2u], y[q % 2u], sum[i][j][q]);
            }
        }
    }
#endif
}

// The vectors of one operand.
struct bytes_factor {
    ree_in_t<uint8_t> memory;
    u32 base, stride, n; // base and stride in bytes; n vectors
};

// Returns the bytes of a packed vector in scratch memory.
REE_DEVICE u32 bytes_padded(u32 k) {
    return (k + SLICE - 1u) / SLICE * SLICE;
}

REE_DEVICE struct bytes_factor bytes_factor_of(const struct ree_cuda_header &h,
                                               const struct ree_matmul_params &p, bool is_b,
                                               u32 batch) {
    const u32 flags = h.extra[REE_CUDA_PRODUCT_FLAGS], vector_bytes = bytes_padded(p.k);
    struct bytes_factor f;
    f.n = is_b ? p.n : p.m;
    if (flags & (is_b ? REE_CUDA_B_WIDE : REE_CUDA_A_WIDE)) {
        f.memory = ree_scratch<uint8_t>(h);
        f.stride = vector_bytes;
        f.base = flags & (is_b ? REE_CUDA_B_WIDE_BATCHED : REE_CUDA_A_WIDE_BATCHED)
                     ? batch * f.n * vector_bytes
                     : 0u;
        if (is_b && (flags & REE_CUDA_A_WIDE))
            f.base += (flags & REE_CUDA_A_WIDE_BATCHED ? p.n_batch : 1u) * p.m * vector_bytes;
        return f;
    }
    u32 a, b;
    matmul_batch(p, batch, &a, &b);
    f.memory = ree_in<uint8_t>(h, is_b);
    f.base = is_b ? b : a;
    f.stride = (u32)(is_b ? p.b_stride_n : p.a_stride_m);
    return f;
}

// Starts to copy a slice, 64 bytes from byte k0 on, of VECTORS vectors from vector `first` on.
template <u32 VECTORS, u32 THREADS>
REE_DEVICE void bytes_bring(const struct bytes_factor &f, u32 first, u32 k0,
                            ree_shared_t<u32> shared, u32 at) {
    REE_UNROLL
    for (u32 e = 0; e < VECTORS * 4u / THREADS; e++) {
        u32 unit = e * THREADS + threadIdx.x, vector = unit / 4u, part = unit % 4u;
        ree_async_copy<16>(shared, at + vector * PITCH + part * 4u, f.memory,
                           f.base + (first + vector) * f.stride + k0 + part * 16u,
                           first + vector < f.n);
    }
}

template <class Shape>
REE_DEVICE void bytes_tile(const struct ree_cuda_header &h,
                           const struct ree_cuda_matmul_params &params, ree_shared_t<u32> shared) {
    const struct ree_matmul_params &p = params.p;
    const u32 tiles_m = (p.m + Shape::rows - 1u) / Shape::rows;
    const u32 tiles_n = (p.n + Shape::columns - 1u) / Shape::columns;
    const u32 block = blockIdx.x % (tiles_m * tiles_n), batch = blockIdx.x / (tiles_m * tiles_n);
    // Tiles are traversed in the order of tile_place in tile.h.
    const u32 group = block / (8u * tiles_n), rest = block % (8u * tiles_n);
    const u32 height = tiles_m - group * 8u < 8u ? tiles_m - group * 8u : 8u;
    const u32 i0 = (group * 8u + rest % height) * Shape::rows, j0 = rest / height * Shape::columns;
    const struct bytes_factor a = bytes_factor_of(h, p, false, batch),
                              b = bytes_factor_of(h, p, true, batch);
    const u32 warp = threadIdx.x / 32u, lane = threadIdx.x % 32u;
    const u32 row = warp / Shape::warps_n * 16u * Shape::sums_m;
    const u32 column = warp % Shape::warps_n * 8u * Shape::sums_n;
    const u32 b_at = Shape::rows * PITCH, n_slices = (p.k + SLICE - 1u) / SLICE;
    const u32 n_stages = h.extra[REE_CUDA_PRODUCT_N_STAGES];
    const u32 kind = (p.a_dtype == REE_I8 ? 2u : 0u) + (p.b_dtype == REE_I8 ? 1u : 0u);

    u32 sum[Shape::sums_m][Shape::sums_n][4];
    REE_UNROLL
    for (u32 i = 0; i < Shape::sums_m; i++) {
        REE_UNROLL
        for (u32 j = 0; j < Shape::sums_n; j++)
            sum[i][j][0] = sum[i][j][1] = sum[i][j][2] = sum[i][j][3] = 0u;
    }
    auto start = [&](u32 s, u32 stage) {
        if (s < n_slices) {
            bytes_bring<Shape::rows, Shape::threads>(a, i0, s * SLICE, shared, stage);
            bytes_bring<Shape::columns, Shape::threads>(b, j0, s * SLICE, shared, stage + b_at);
        }
        ree_async_commit();
    };
    for (u32 s = 0; s + 1u < n_stages; s++)
        start(s, s * Shape::stage);
    u32 here = 0, there = (n_stages - 1u) * Shape::stage;
    REE_NO_UNROLL
    for (u32 s = 0; s < n_slices; s++) {
        if (n_stages == 2u)
            ree_async_wait<0>();
        else if (n_stages == 3u)
            ree_async_wait<1>();
        else
            ree_async_wait<2>();
        __syncthreads();
        start(s + n_stages - 1u, there);
        u32 a_at = here + row * PITCH, b_from = here + b_at + column * PITCH;
        if (kind == 3u)
            bytes_slice<Shape, true, true>(shared, a_at, b_from, sum);
        else if (kind == 2u)
            bytes_slice<Shape, true, false>(shared, a_at, b_from, sum);
        else if (kind == 1u)
            bytes_slice<Shape, false, true>(shared, a_at, b_from, sum);
        else
            bytes_slice<Shape, false, false>(shared, a_at, b_from, sum);
        there = here;
        here += Shape::stage;
        if (here == n_stages * Shape::stage) here = 0;
    }

    const bool to_scratch = h.extra[REE_CUDA_PRODUCT_FLAGS] & REE_CUDA_TO_SCRATCH;
    const u32 first = batch * p.m * p.n;
    const u32 i1 = i0 + row + lane / 4u, j1 = j0 + column + lane % 4u * 2u;
    if (!p.has_epilogue || to_scratch) {
        auto out = to_scratch ? ree_scratch<u32>(h) : ree_out<u32>(h, 2);
        const u32 at = first + (to_scratch ? h.extra[REE_CUDA_PRODUCT_PARTS_AT] : 0u);
        REE_UNROLL
        for (u32 i = 0; i < Shape::sums_m; i++) {
            REE_UNROLL
            for (u32 q = 0; q < 2u; q++) {
                u32 r = i1 + i * 16u + q * 8u;
                REE_UNROLL
                for (u32 j = 0; j < Shape::sums_n; j++) {
                    u32 c = j1 + j * 8u, index = at + r * p.n + c;
                    u32 x0 = sum[i][j][2u * q], x1 = sum[i][j][2u * q + 1u];
                    if (r >= p.m || c >= p.n) continue;
                    if (c + 1u < p.n && ree_aligned(out, index, 8)) {
                        ree_store(out, index, make_uint2(x0, x1));
                    } else {
                        out[index] = x0;
                        if (c + 1u < p.n) out[index + 1u] = x1;
                    }
                }
            }
        }
        return;
    }
    __syncthreads(); // the memory of the stages is reused for the sums and the epilogue's slots
    REE_UNROLL
    for (u32 i = 0; i < Shape::sums_m; i++) {
        REE_UNROLL
        for (u32 j = 0; j < Shape::sums_n; j++)
            ree_store(shared, ((i * Shape::sums_n + j) * Shape::threads + threadIdx.x) * 4u,
                      make_uint4(sum[i][j][0], sum[i][j][1], sum[i][j][2], sum[i][j][3]));
    }
    auto slots = shared + Shape::rows * Shape::columns;
    REE_NO_UNROLL
    for (u32 e = 0; e < 2u * Shape::sums_m * Shape::sums_n; e++) {
        u32 i = e / 2u / Shape::sums_n, j = e / 2u % Shape::sums_n, q = e % 2u;
        u32 r = i1 + i * 16u + q * 8u, c = j1 + j * 8u;
        if (r >= p.m || c >= p.n) continue;
        uint2 x = ree_load<uint2>(shared, (e / 2u * Shape::threads + threadIdx.x) * 4u + q * 2u);
        product_epilogue(h, params.epilogue, 2, first + r * p.n + c, p.n - c < 2u ? 1u : 2u,
                         make_float4(ree_float(x.x), ree_float(x.y), 0.0f, 0.0f), slots,
                         threadIdx.x, Shape::threads);
    }
}

REE_KERNEL_BLOCKS(matmul_bytes_128x128, struct ree_cuda_matmul_params, 256, 2) {
    REE_SHARED_DYNAMIC(u32, shared);
    bytes_tile<bytes_shape<4, 4, 2, 4>>(h, p, shared);
}
REE_KERNEL_BLOCKS(matmul_bytes_64x64, struct ree_cuda_matmul_params, 128, 4) {
    REE_SHARED_DYNAMIC(u32, shared);
    bytes_tile<bytes_shape<2, 4, 2, 2>>(h, p, shared);
}

// Packs the vectors of A (extra[REE_CUDA_PRODUCT_OTHER] is 0) or B (1) in scratch memory. One
// thread per word. Neighbouring threads pack neighbouring words of a vector or, if vectors are one
// byte apart in memory, the same word of neighbouring vectors.
REE_KERNEL(matmul_pack, struct ree_cuda_matmul_params, 256) {
    const bool is_b = h.extra[REE_CUDA_PRODUCT_OTHER] != 0;
    const u32 flags = h.extra[REE_CUDA_PRODUCT_FLAGS];
    const u32 n = is_b ? p.p.n : p.p.m, n_words = bytes_padded(p.p.k) / 4u, i = ree_thread();
    bool batched = flags & (is_b ? REE_CUDA_B_WIDE_BATCHED : REE_CUDA_A_WIDE_BATCHED);
    if (i >= (batched ? p.p.n_batch : 1u) * n * n_words) return;
    const u32 batch = i / (n * n_words), rest = i % (n * n_words);
    const u32 stride = (u32)(is_b ? p.p.b_stride_n : p.p.a_stride_m);
    const u32 step = (u32)(is_b ? p.p.b_stride_k : p.p.a_stride_k);
    const u32 vector = stride == 1 ? rest % n : rest / n_words;
    const u32 word = stride == 1 ? rest / n : rest % n_words;
    u32 a, b, packed = 0;
    matmul_batch(p.p, batch, &a, &b);
    const u32 from = (is_b ? b : a) + vector * stride;
    auto x = ree_in<uint8_t>(h, is_b);
    REE_UNROLL
    for (u32 e = 0; e < 4; e++) {
        u32 k = word * 4u + e;
        if (k < p.p.k) packed |= (u32)x[from + k * step] << (8u * e);
    }
    u32 to = (batch * n + vector) * n_words + word;
    if (is_b && (flags & REE_CUDA_A_WIDE))
        to += (flags & REE_CUDA_A_WIDE_BATCHED ? p.p.n_batch : 1u) * p.p.m * n_words;
    ree_scratch<u32>(h)[to] = packed;
}

// Adds to sum[r] this lane's products of row r (up to eight rows) and one column. a, b: index of
// row 0 and of the column, in bytes. Vectors of both operands are read 16 bytes at a time.
template <bool A_SIGNED, bool B_SIGNED>
REE_DEVICE void bytes_rows(const struct ree_cuda_header &h, const struct ree_matmul_params &p,
                           u32 a, u32 b, u32 (&sum)[8]) {
    auto x = ree_in<uint8_t>(h, 0);
    auto y = ree_in<uint8_t>(h, 1);
    const u32 lane_k = threadIdx.x % 32u * 16u;
    REE_NO_UNROLL
    for (u32 k0 = 0; k0 < p.k; k0 += 2048u) {
        uint4 w[4]; // all loads are in flight before the first value is needed
        REE_UNROLL
        for (u32 e = 0; e < 4u; e++) {
            u32 k = k0 + e * 512u + lane_k;
            w[e] = k < p.k ? ree_load<uint4>(y, b + k) : make_uint4(0, 0, 0, 0);
        }
        REE_UNROLL
        for (u32 e = 0; e < 4u; e++) {
            u32 k = k0 + e * 512u + lane_k;
            if (k >= p.k) continue;
            REE_UNROLL
            for (u32 r = 0; r < 8u; r++) {
                if (r >= p.m) break;
                uint4 v = ree_load<uint4>(x, a + r * (u32)p.a_stride_m + k);
                sum[r] = bytes_dot<A_SIGNED, B_SIGNED>(v.x, w[e].x, sum[r]);
                sum[r] = bytes_dot<A_SIGNED, B_SIGNED>(v.y, w[e].y, sum[r]);
                sum[r] = bytes_dot<A_SIGNED, B_SIGNED>(v.z, w[e].z, sum[r]);
                sum[r] = bytes_dot<A_SIGNED, B_SIGNED>(v.w, w[e].w, sum[r]);
            }
        }
    }
}

// For at most eight rows: one warp per column.
REE_KERNEL(matmul_bytes_rows, struct ree_cuda_matmul_params, 256) {
    // not ree_thread() / 32, because the launch may have more than 2^32 threads
    const u32 lane = threadIdx.x % 32u, at = blockIdx.x * (blockDim.x / 32u) + threadIdx.x / 32u;
    if (at >= p.p.n_batch * p.p.n) return;
    const u32 j = at % p.p.n, batch = at / p.p.n;
    u32 a, b, sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    matmul_batch(p.p, batch, &a, &b);
    b += j * (u32)p.p.b_stride_n;
    if (p.p.a_dtype == REE_I8 && p.p.b_dtype == REE_I8)
        bytes_rows<true, true>(h, p.p, a, b, sum);
    else if (p.p.a_dtype == REE_I8)
        bytes_rows<true, false>(h, p.p, a, b, sum);
    else if (p.p.b_dtype == REE_I8)
        bytes_rows<false, true>(h, p.p, a, b, sum);
    else
        bytes_rows<false, false>(h, p.p, a, b, sum);
    const bool to_scratch = h.extra[REE_CUDA_PRODUCT_FLAGS] & REE_CUDA_TO_SCRATCH;
    auto out = to_scratch ? ree_scratch<u32>(h) : ree_out<u32>(h, 2);
    const u32 first =
        batch * p.p.m * p.p.n + j + (to_scratch ? h.extra[REE_CUDA_PRODUCT_PARTS_AT] : 0u);
    REE_UNROLL
    for (u32 r = 0; r < 8u; r++) {
        if (r >= p.p.m) break;
        REE_UNROLL
        for (int d = 16; d > 0; d /= 2)
            sum[r] += __shfl_xor_sync(ALL_LANES, sum[r], d);
        if (lane == 0) out[first + r * p.p.n] = sum[r];
    }
}
