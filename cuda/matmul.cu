// matmul: out[b, i, j] = expr(sum over l of A[b, i, l] * B[b, l, j]), NUMERICS.md section 3 (dot).
//
// Sums in float32: tiles (tile.h). If there are too few tiles to fill the device, different blocks
// compute the chunks of k and store their results in scratch memory, and matmul_finish adds these
// in ascending order. Narrow operands are first converted to float32 in scratch memory
// (matmul_widen). This writes and reads 4 bytes per element; the product uses each element of A in
// n fma, each of B in m.
//
// Sums in other types: one thread per output (matmul_words). Other files have kernels for few rows
// (matvec.cu), for most products of bytes (matmul_bytes.cu), and for blockwise activations
// (matmul_int8.cu, matvec_int8.cu).
#include "finish.h"
#include "tile.h"

// Where the float32 elements of A or B are: in the operand's own memory or in scratch memory.
struct matmul_factor {
    ree_in_t<float> memory;
    u32 base, stride_row, stride_k;
};

REE_DEVICE struct matmul_factor matmul_factor_of(const struct ree_cuda_header &h,
                                                 const struct ree_cuda_matmul_params &params,
                                                 bool is_b, u32 batch) {
    const struct ree_matmul_params &p = params.p;
    const u32 flags = h.extra[REE_CUDA_PRODUCT_FLAGS];
    struct matmul_factor f;
    u32 wide = is_b ? REE_CUDA_B_WIDE : REE_CUDA_A_WIDE;
    if (!(flags & wide)) {
        u32 a, b;
        matmul_batch(p, batch, &a, &b);
        f.memory = ree_in<float>(h, is_b);
        f.base = is_b ? b : a;
        f.stride_row = (u32)(is_b ? p.b_stride_n : p.a_stride_m);
        f.stride_k = (u32)(is_b ? p.b_stride_k : p.a_stride_k);
        return f;
    }
    u32 rows = is_b ? p.n : p.m;
    bool by_k = flags & (is_b ? REE_CUDA_B_WIDE_BY_K : REE_CUDA_A_WIDE_BY_K);
    f.memory = ree_scratch<float>(h);
    f.base = flags & (is_b ? REE_CUDA_B_WIDE_BATCHED : REE_CUDA_A_WIDE_BATCHED) ? batch * rows * p.k
                                                                                : 0u;
    if (is_b && (flags & REE_CUDA_A_WIDE))
        f.base += (flags & REE_CUDA_A_WIDE_BATCHED ? p.n_batch : 1u) * p.m * p.k;
    f.stride_row = by_k ? p.k : 1u;
    f.stride_k = by_k ? 1u : rows;
    return f;
}

template <class Shape>
REE_DEVICE void matmul_tile(const struct ree_cuda_header &h,
                            const struct ree_cuda_matmul_params &params, ree_shared_t<float> shared,
                            ree_shared_t<u32> slots) {
    const struct ree_matmul_params &p = params.p;
    const u32 n_parts = h.extra[REE_CUDA_PRODUCT_N_PARTS];
    u32 tiles_m = (p.m + Shape::rows - 1u) / Shape::rows;
    u32 tiles_n = (p.n + Shape::columns - 1u) / Shape::columns, tiles = tiles_m * tiles_n;
    u32 block = blockIdx.x, batch = block / tiles, part = batch % n_parts, tile_i, tile_j;
    tile_place(block % tiles, tiles_m, tiles_n, &tile_i, &tile_j);
    batch /= n_parts;
    u32 k_begin = n_parts > 1u ? part * REE_CHUNK : 0u, k_end = p.k;
    if (n_parts > 1u && k_end - k_begin > REE_CHUNK) k_end = k_begin + REE_CHUNK;

    struct matmul_factor fa = matmul_factor_of(h, params, false, batch),
                         fb = matmul_factor_of(h, params, true, batch);
    tile_strided<Shape::rows, Shape::a_pitch, Shape::threads> a;
    tile_strided<Shape::columns, Shape::b_pitch, Shape::threads> b;
    a.begin(fa.memory, fa.base, fa.stride_row, fa.stride_k, tile_i * Shape::rows, p.m, k_begin,
            k_end, threadIdx.x);
    b.begin(fb.memory, fb.base, fb.stride_row, fb.stride_k, tile_j * Shape::columns, p.n, k_begin,
            k_end, threadIdx.x);
    tile_run<Shape>(a, b, (k_end - k_begin + TILE_K - 1u) / TILE_K,
                    h.extra[REE_CUDA_PRODUCT_N_STAGES], shared);

    __syncthreads(); // the memory of the stages is reused for the epilogue's slots
    const u32 i0 = tile_i * Shape::rows, j0 = tile_j * Shape::columns;
    const u32 first = batch * p.m * p.n;
    bool to_scratch = h.extra[REE_CUDA_PRODUCT_FLAGS] & REE_CUDA_TO_SCRATCH;
    u32 scratch_at = h.extra[REE_CUDA_PRODUCT_PARTS_AT] + part * (p.n_batch * p.m * p.n);
    tile_results<Shape>(shared, [&](u32 row, u32 column, float4 total) {
        u32 i = i0 + row, j = j0 + column;
        if (i >= p.m || j >= p.n) return;
        product_finish(h, params, matmul_n_factors(p), to_scratch, scratch_at, first + i * p.n + j,
                       p.n - j < 4u ? p.n - j : 4u, total, slots, threadIdx.x, Shape::threads);
    });
}

#define MATMUL_TILE(rows, columns, n_threads, blocks)                                              \
    REE_KERNEL_BLOCKS(matmul_##rows##x##columns, struct ree_cuda_matmul_params, n_threads,         \
                      blocks) {                                                                    \
        REE_SHARED_DYNAMIC(float, shared);                                                         \
        matmul_tile<tile_##rows##x##columns>(                                                      \
            h, p, shared, (ree_shared_t<u32>)(shared + (u32)tile_##rows##x##columns::totals));     \
    }
MATMUL_TILE(128, 128, 256, 2)
MATMUL_TILE(128, 64, 256, 2)
MATMUL_TILE(64, 64, 128, 4)
MATMUL_TILE(32, 64, 128, 4)

REE_KERNEL(matmul_finish, struct ree_cuda_matmul_params, 128) {
    REE_SHARED_DYNAMIC(u32, slots);
    finish_words(h, p, matmul_n_factors(p.p), p.p.n_batch * p.p.m * p.p.n, p.p.dtype == REE_I32,
                 slots);
}
REE_KERNEL(matmul_finish_any, struct ree_cuda_matmul_params, 128) {
    REE_SHARED_DYNAMIC(u64, slots);
    finish_any(h, p, matmul_n_factors(p.p), p.p.n_batch * p.p.m * p.p.n, p.p.dtype == REE_I32,
               slots);
}

// Returns an element of an operand as float32.
REE_DEVICE float matmul_widened(const struct ree_cuda_header &h, u32 operand, u32 dtype, u32 i) {
    u32 x = (u32)ree_load_any(h, operand, dtype, i);
    switch (dtype) {
    case REE_F16: return ree_float(ree_soft_f16_to_f32(x));
    case REE_BF16: return ree_float(x << 16);
    case REE_I8:
    case REE_U8: return __int2float_rn((int)x);
    default: return ree_float(x);
    }
}
// Returns B[k, j] of blockwise weights: (q - z) * s, rounded once (src/repops/repop.h).
REE_DEVICE float matmul_widened_block(const struct ree_cuda_header &h,
                                      const struct ree_matmul_params &p, u32 j, u32 k) {
    u32 n_blocks = (p.k + p.b_block - 1u) / p.b_block, block = j * n_blocks + k / p.b_block;
    u32 i = j * (n_blocks * p.b_block) + k;
    u32 q = p.b_bits == 8u ? ree_in<uint8_t>(h, 1)[i]
                           : ree_in<uint8_t>(h, 1)[i / 2u] >> (i % 2u * 4u) & 15u;
    u32 z = 1u << (p.b_bits - 1u);
    if (p.has_zero_points) z = ree_in<uint8_t>(h, 3)[block];
    float scale = ree_in<float>(h, 2)[block];
    return __fmul_rn(__int2float_rn((int)(q - z)), scale);
}

// Converts A (extra[REE_CUDA_PRODUCT_OTHER] is 0) or B (1) to float32 in scratch memory. One thread
// per element of the copy.
REE_KERNEL(matmul_widen, struct ree_cuda_matmul_params, 256) {
    const bool is_b = h.extra[REE_CUDA_PRODUCT_OTHER] != 0;
    const u32 flags = h.extra[REE_CUDA_PRODUCT_FLAGS];
    const u32 rows = is_b ? p.p.n : p.p.m, k = p.p.k, i = ree_thread();
    bool batched = flags & (is_b ? REE_CUDA_B_WIDE_BATCHED : REE_CUDA_A_WIDE_BATCHED);
    if (i >= (batched ? p.p.n_batch : 1u) * rows * k) return;
    u32 batch = i / (rows * k), rest = i % (rows * k), row, l;
    if (flags & (is_b ? REE_CUDA_B_WIDE_BY_K : REE_CUDA_A_WIDE_BY_K)) {
        row = rest / k;
        l = rest % k;
    } else {
        l = rest / rows;
        row = rest % rows;
    }
    float x;
    if (is_b && p.p.b_block) {
        x = matmul_widened_block(h, p.p, row, l);
    } else {
        u32 a, b;
        matmul_batch(p.p, batch, &a, &b);
        x = is_b ? matmul_widened(h, 1, p.p.b_dtype,
                                  b + row * (u32)p.p.b_stride_n + l * (u32)p.p.b_stride_k)
                 : matmul_widened(h, 0, p.p.a_dtype,
                                  a + row * (u32)p.p.a_stride_m + l * (u32)p.p.a_stride_k);
    }
    u32 at = i;
    if (is_b && (flags & REE_CUDA_A_WIDE))
        at += (flags & REE_CUDA_A_WIDE_BATCHED ? p.p.n_batch : 1u) * p.p.m * k;
    ree_scratch<float>(h)[at] = x;
}

// Returns a sum of integers, which wraps around. T is the unsigned form of the sum's type.
template <class T>
REE_DEVICE T matmul_integer(const struct ree_cuda_header &h, const struct ree_matmul_params &p,
                            u32 a, u32 b) {
    T sum = 0;
    for (u32 l = 0; l < p.k; l++, a += (u32)p.a_stride_k, b += (u32)p.b_stride_k)
        sum += (T)ree_load_any(h, 0, p.a_dtype, a) * (T)ree_load_any(h, 1, p.b_dtype, b);
    return sum;
}

// Returns the bits of a float64 sum: the chunk scheme of NUMERICS.md section 3 in binary64.
REE_DEVICE u64 matmul_double(const struct ree_cuda_header &h, const struct ree_matmul_params &p,
                             u32 a, u32 b) {
    auto x = ree_in<double>(h, 0);
    auto y = ree_in<double>(h, 1);
    double total = 0.0;
    for (u32 k0 = 0; k0 < p.k; k0 += REE_CHUNK) {
        u32 n = p.k - k0 < REE_CHUNK ? p.k - k0 : REE_CHUNK;
        double sum = 0.0;
        for (u32 l = 0; l < n; l++, a += (u32)p.a_stride_k, b += (u32)p.b_stride_k)
            sum = __fma_rn(x[a], y[b], sum);
        total = __dadd_rn(total, sum);
    }
    return ree_f64_canon((u64)__double_as_longlong(__dadd_rn(total, 0.0)));
}

REE_KERNEL(matmul_words, struct ree_cuda_matmul_params, 128) {
    const u32 n = p.p.n, m = p.p.m, index = ree_thread();
    if (index >= p.p.n_batch * m * n) return;
    u32 a, b, j = index % n, i = index / n % m;
    matmul_batch(p.p, index / n / m, &a, &b);
    a += i * (u32)p.p.a_stride_m;
    b += j * (u32)p.p.b_stride_n;
    const u32 out = matmul_n_factors(p.p);
    switch (p.p.dtype) {
    case REE_F64: ree_out<u64>(h, out)[index] = matmul_double(h, p.p, a, b); break;
    case REE_I64:
    case REE_U64: ree_out<u64>(h, out)[index] = matmul_integer<u64>(h, p.p, a, b); break;
    default:
        u32 sum = matmul_integer<u32>(h, p.p, a, b);
        if (h.extra[REE_CUDA_PRODUCT_FLAGS] & REE_CUDA_TO_SCRATCH)
            ree_scratch<u32>(h)[h.extra[REE_CUDA_PRODUCT_PARTS_AT] + index] = sum;
        else
            ree_out<u32>(h, out)[index] = sum;
    }
}
