// The reduction scheme of NUMERICS.md, section 3: the terms are cut into chunks of 256; each chunk
// is accumulated in order from +0; the chunk results are added in order; then +0 is added.
//
// Here, totals start at +0 instead of at the first chunk's result. This makes the last step (+ 0) a
// no-op: +0 + p is p except for p = -0, where it is +0, and a total that starts at +0 never becomes
// -0. Totals of products start at 1, and 1 * p is p.
#ifndef REE_CUDA_CHUNKS_H
#define REE_CUDA_CHUNKS_H

#include "kernel.h"

REE_DEVICE float ree_add(float a, float b) {
    return __fadd_rn(a, b);
}
REE_DEVICE double ree_add(double a, double b) {
    return __dadd_rn(a, b);
}
REE_DEVICE u32 ree_add(u32 a, u32 b) {
    return a + b;
}
REE_DEVICE u64 ree_add(u64 a, u64 b) {
    return a + b;
}
REE_DEVICE float ree_mul(float a, float b) {
    return __fmul_rn(a, b);
}
REE_DEVICE double ree_mul(double a, double b) {
    return __dmul_rn(a, b);
}
REE_DEVICE u32 ree_mul(u32 a, u32 b) {
    return a * b;
}
REE_DEVICE u64 ree_mul(u64 a, u64 b) {
    return a * b;
}
REE_DEVICE float ree_fma(float a, float b, float c) {
    return __fmaf_rn(a, b, c);
}
REE_DEVICE double ree_fma(double a, double b, double c) {
    return __fma_rn(a, b, c);
}
// Returns the value to store for a result: NaN becomes the canonical NaN.
REE_DEVICE float ree_final(float x) {
    return ree_canon(x);
}
REE_DEVICE double ree_final(double x) {
    return ree_from_double_bits(ree_double_result(x));
}
REE_DEVICE u32 ree_final(u32 x) {
    return x;
}
REE_DEVICE u64 ree_final(u64 x) {
    return x;
}

// Returns the accumulator of a chunk after term x. KIND is SUM, SUM_SQ (adds x * x), SUM_ABS (adds
// |x|) or PROD of enum ree_reduce_kind.
template <u32 KIND, class T> REE_DEVICE T ree_chunk_step(T acc, T x) {
    if constexpr (KIND == REE_REDUCE_PROD) return ree_mul(acc, x);
    if constexpr (KIND == REE_REDUCE_SUM_SQ) return ree_fma(x, x, acc);
    if constexpr (KIND == REE_REDUCE_SUM_ABS) return ree_add(acc, x < 0 ? -x : x);
    return ree_add(acc, x);
}
// Combines the result of a chunk with `total`, the combined results of the chunks before it.
template <u32 KIND, class T> REE_DEVICE T ree_chunk_join(T total, T chunk) {
    return KIND == REE_REDUCE_PROD ? ree_mul(total, chunk) : ree_add(total, chunk);
}
template <u32 KIND, class T> REE_DEVICE T ree_chunk_start() {
    return KIND == REE_REDUCE_PROD ? (T)1 : (T)0;
}

// ree_max_key maps floats to integers that have the order of max (NUMERICS.md, section 2): -0 is
// below +0, and NaN, made canonical, is above all numbers. ree_of_max_key is the inverse.
#define REE_KEY_LOWEST ((int)0x807FFFFF) // key of -inf
REE_DEVICE int ree_max_key(float x) {
    int bits = __float_as_int(ree_canon(x));
    return bits ^ (bits >> 31 & 0x7FFFFFFF);
}
REE_DEVICE float ree_of_max_key(int key) {
    return __int_as_float(key ^ (key >> 31 & 0x7FFFFFFF));
}

// ree_load_run and ree_store_run access WIDTH (1 or 4) floats from index i on in one access. If
// WIDTH is 4, their address must be a multiple of 16 bytes.
template <int WIDTH, class M> REE_DEVICE void ree_load_run(M memory, u32 i, float (&v)[WIDTH]) {
    if constexpr (WIDTH == 4) {
        float4 four = ree_load<float4>(memory, i);
        v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
    } else {
        v[0] = memory[i];
    }
}
template <int WIDTH, class M>
REE_DEVICE void ree_store_run(M memory, u32 i, const float (&v)[WIDTH]) {
    if constexpr (WIDTH == 4)
        ree_store(memory, i, make_float4(v[0], v[1], v[2], v[3]));
    else
        memory[i] = v[0];
}

// Applies acc = step(acc, x) to the n terms x = tile[at], tile[at + 1], ... in ascending order and
// returns acc. `at` must be a multiple of 4.
template <class Step>
REE_DEVICE float ree_walk(ree_shared_t<float> tile, u32 at, u32 n, float acc, Step step) {
    u32 i = 0;
    for (; i + 16u <= n; i += 16u) {
        float v[4][4];
        REE_UNROLL
        for (int q = 0; q < 4; q++)
            ree_load_run<4>(tile, at + i + 4u * (u32)q, v[q]);
        REE_UNROLL
        for (int q = 0; q < 4; q++) {
            REE_UNROLL
            for (int e = 0; e < 4; e++)
                acc = step(acc, v[q][e]);
        }
    }
    REE_NO_UNROLL
    for (; i < n; i++)
        acc = step(acc, tile[at + i]);
    return acc;
}

#endif
