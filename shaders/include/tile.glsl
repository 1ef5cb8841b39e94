// The product of matmul and conv: out[i, j] = sum over k of A[i, k] * B[k, j] by the chunk scheme,
// NUMERICS.md section 3. The shader that includes this file defines where the elements are:
//
//     TileColumn tile_column(uint j)            what loads of column j share
//     TileStep tile_step(uint k)                what loads of B at k share
//     void tile_next(inout TileStep s)          from k to k + 1
//     float tile_a(uint i, uint k)
//     float tile_b(TileStep s, TileColumn c)
//     void tile_store(uint i, uint j, uint bits)
//     void tile_store_chunk(uint i, uint j, uint bits)   one chunk's result, TILE_STAGE 1
//
// and is compiled for one form of fma and one way of loading:
//
//     TILE_FORM   0 native, 1 float64, 2 float32, 3 integer (REE_NATIVE, ...)
//     TM          rows of a thread; it computes TM x 4 results in registers
//     TILE_SUBGROUP  the threads of a group share the rows of A, each loading one k for all
//     TILE_SHARED    the threads of a group share parts of A and B in shared memory
//
// Rows are variables made by macros and columns the components of a vec4: arrays and loops would
// read better, but not every driver unrolls.
//
// The emulated forms of fma leave out what is seldom needed: they note whether a row's results of
// this chunk are in doubt, and whether the operands leave the range in which the form is right. Then
// the row's chunk is done again, with the whole emulation, or in integers.
#ifndef REE_GLSL_TILE
#define REE_GLSL_TILE

#ifdef TILE_SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(constant_id = 40) const uint SUBGROUP = 1; // its size, a divisor of REE_CHUNK
#endif

// 0: a thread does all chunks. 1: one chunk, for products too small to fill the device otherwise.
layout(constant_id = 41) const uint TILE_STAGE = 0;

#if TM == 16
#define TILE_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) \
    X(14) X(15)
#elif TM == 8
#define TILE_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#elif TM == 4
#define TILE_ROWS(X) X(0) X(1) X(2) X(3)
#else
#define TILE_ROWS(X) X(0)
#endif
#define TN 4u

// Of 2 * |x| over the operands: the smallest nonzero one less 1, and the largest.
struct TileRange {
    uint low, high;
};
void tile_range_add(inout TileRange r, float x) {
    uint bits = floatBitsToUint(x) << 1u;
    r.low = min(r.low, bits - 1u); // zero becomes the largest number
    r.high = max(r.high, bits);
}
void tile_range_add4(inout TileRange r, const vec4 x) {
    tile_range_add(r, x.x);
    tile_range_add(r, x.y);
    tile_range_add(r, x.z);
    tile_range_add(r, x.w);
}
// Every nonzero intermediate is a multiple of 2^(ea + eb - 300), biased exponents of the smallest
// operands: with that at 2^-126 or more nothing is subnormal, so it does not matter whether the
// device flushes subnormals, conversions from float64 included. Above, sums of 256 products stay
// below overflow. float32: the halves of an operand are not subnormal either.
bool tile_in_range(const TileRange a, const TileRange b) {
    uint ha = a.high >> 24u, hb = b.high >> 24u;
    if (ha > 247u || hb > 247u || ha + hb > 360u) return false;
    if (a.high == 0u || b.high == 0u) return true; // all products are zero
    uint ea = (a.low + 1u) >> 24u, eb = (b.low + 1u) >> 24u;
    const uint smallest = TILE_FORM == 1 ? 1u : 24u;
    return ea >= smallest && eb >= smallest && ea + eb >= 174u;
}

#if TILE_FORM == 0
#define TILE_NOTE_A(a)
#define TILE_B(b)
#define TILE_FMA(i, a)                                                                             \
    {                                                                                              \
        precise vec4 r = fma(vec4(a), b, acc##i);                                                  \
        acc##i = r;                                                                                \
    }
#elif TILE_FORM == 1
// primitives.glsl, ree_fma_float64
#define TILE_DOUBT uint       // 0: in doubt
#define TILE_SURE 0xFFFFFFFFu
#define TILE_IS_SURE (doubt != 0u)
#define TILE_EXACT_FMA(a, b, c) ree_fma_float64(a, b, c)
#define TILE_NOTE_A(a) tile_range_add(range_a, a);
#define TILE_B(b)                                                                                  \
    dvec4 wide = dvec4(b);                                                                         \
    tile_range_add4(range_b, b);
#if REE_PLANT == REE_PLANT_ROUNDING
#define TILE_WIDE_ACC(i) wide_acc##i
#define TILE_ROUNDED(i, s) vec4(wide_acc##i = s)
#else
#define TILE_WIDE_ACC(i) dvec4(acc##i)
#define TILE_ROUNDED(i, s) ree_rounded(vec4(s))
#endif
#define TILE_LOW(value) ((unpackDouble2x32(value).x ^ 0x10000000u) << 3u)
#define TILE_FMA(i, a)                                                                             \
    {                                                                                              \
        precise dvec4 p = double(a) * wide;                                                        \
        precise dvec4 s = p + TILE_WIDE_ACC(i);                                                    \
        acc##i = TILE_ROUNDED(i, s);                                                               \
        doubt##i = min(doubt##i, min(min(TILE_LOW(s.x), TILE_LOW(s.y)),                            \
                                     min(TILE_LOW(s.z), TILE_LOW(s.w))));                          \
    }
#elif TILE_FORM == 2
// primitives.glsl, ree_fma_float32. The last step is cheaper: r + d * (1 + 2^-23) differs from r when
// d is half an ulp, and seldom else.
#define TILE_DOUBT uvec4 // not 0: in doubt
#define TILE_SURE uvec4(0u)
#define TILE_IS_SURE (doubt[q % TN] == 0u)
#define TILE_EXACT_FMA(a, b, c) ree_fma_float32(a, b, c)
#define TILE_NOTE_A(a) tile_range_add(range_a, a);
#define TILE_B(b)                                                                                  \
    precise vec4 bh = uintBitsToFloat(floatBitsToUint(b) & 0xFFFFF000u);                           \
    precise vec4 bl = b - bh;                                                                      \
    tile_range_add4(range_b, b);
#define TILE_FMA(i, a)                                                                             \
    {                                                                                              \
        float ah = ree_high_half(a), al = ree_low_half(a, ah);                                     \
        precise vec4 p = a * b;                                                                    \
        precise vec4 e = ((ah * bh - p) + ah * bl) + al * bh;                                      \
        e = e + al * bl;                                                                           \
        precise vec4 s = p + acc##i;                                                               \
        precise vec4 c = s - p;                                                                    \
        precise vec4 t = (p - (s - c)) + (acc##i - c);                                             \
        precise vec4 v = t + e;                                                                    \
        precise vec4 r = s + v;                                                                    \
        precise vec4 d = v - (r - s);                                                              \
        precise vec4 w = r + d * uintBitsToFloat(0x3F800001u);                                     \
        doubt##i |= floatBitsToUint(w) ^ floatBitsToUint(r);                                         \
        acc##i = r;                                                                                \
    }
#endif

#if TILE_FORM == 1 || TILE_FORM == 2
#define TILE_DECLARE_DOUBT(i) TILE_DOUBT doubt##i = TILE_SURE;
#define TILE_GET_DOUBT(i)                                                                          \
    if (q / TN == i) doubt = doubt##i;
#endif
#if TILE_FORM == 1 && REE_PLANT == REE_PLANT_ROUNDING
#define TILE_DECLARE(i) vec4 total##i = vec4(0.0), acc##i; dvec4 wide_acc##i;
#define TILE_ZERO(i) acc##i = vec4(0.0); wide_acc##i = dvec4(0.0);
#else
#define TILE_DECLARE(i) vec4 total##i = vec4(0.0), acc##i;
#define TILE_ZERO(i) acc##i = vec4(0.0);
#endif
#define TILE_FIRST(i) total##i = acc##i;
#define TILE_SUM(i) sum##i = tile_add4(total##i, acc##i, slow);
#define TILE_DECLARE_SUM(i) vec4 sum##i;
#define TILE_TAKE_SUM(i) total##i = sum##i;
// Result q of the thread is component q % 4 of row q / 4.
#define TILE_GET_ACC(i)                                                                            \
    if (q / TN == i) row = acc##i;
#define TILE_GET_TOTAL(i)                                                                          \
    if (q / TN == i) row = total##i;
#define TILE_PUT_ACC(i)                                                                            \
    if (q / TN == i) acc##i = tile_replace(acc##i, q % TN, bits);
#define TILE_PUT_SUM(i)                                                                            \
    if (q / TN == i) sum##i = tile_replace(sum##i, q % TN, bits);

vec4 tile_replace(const vec4 v, const uint c, const uint bits) {
    bvec4 here = equal(uvec4(c), uvec4(0u, 1u, 2u, 3u));
    return uintBitsToFloat(mix(floatBitsToUint(v), uvec4(bits), here));
}

// a + b in the device's arithmetic, and whether that may not be right.
vec4 tile_add4(const vec4 a, const vec4 b, inout bool slow) {
    if (REE_FORM_ADD == REE_FLOAT32) {
        uvec4 x = floatBitsToUint(a) << 1u, y = floatBitsToUint(b) << 1u;
        // Right of zero and of biased exponents from 27 to 253. No comparison with zero: some
        // drivers make one of floats of it, in which subnormals are zero.
        const uvec4 low = uvec4((27u << 24u) - 1u), high = uvec4(254u << 24u);
        slow = slow || any(lessThan(x - 1u, low)) || any(lessThan(y - 1u, low)) ||
               any(greaterThanEqual(x, high)) || any(greaterThanEqual(y, high));
    } else if (REE_FORM_ADD != REE_NATIVE) {
        slow = true;
    }
    precise vec4 r = a + b;
    return r;
}

// One result of one chunk again.
uint tile_chunk_integer(uint i, TileColumn column, uint k0, uint k1) {
    uint acc = 0u;
    TileStep s = tile_step(k0);
    [[dont_unroll]] for (uint k = k0; k < k1; k++) {
        acc = ree_soft_fma(floatBitsToUint(tile_a(i, k)), floatBitsToUint(tile_b(s, column)), acc);
        tile_next(s);
    }
    return acc;
}
#ifdef TILE_EXACT_FMA
uint tile_chunk_exact(uint i, TileColumn column, uint k0, uint k1) {
    float acc = 0.0;
    TileStep s = tile_step(k0);
    [[dont_unroll]] for (uint k = k0; k < k1; k++) {
        acc = TILE_EXACT_FMA(tile_a(i, k), tile_b(s, column), acc);
        tile_next(s);
    }
    return floatBitsToUint(acc);
}
#endif

// The thread's results are rows i0, i0 + 1, ... and columns j0, j0 + dj, ...; rows and columns
// beyond m and n are computed from others and not stored. Terms from k_begin, a multiple of
// REE_CHUNK, to k_end.
void tile_run(uint i0, uint j0, uint dj, uint m, uint n, uint k_begin, uint k_end) {
    TileColumn c0 = tile_column(min(j0, n - 1u)), c1 = tile_column(min(j0 + dj, n - 1u)),
               c2 = tile_column(min(j0 + 2u * dj, n - 1u)),
               c3 = tile_column(min(j0 + 3u * dj, n - 1u));
    TILE_ROWS(TILE_DECLARE)
    [[dont_unroll]] for (uint k0 = k_begin; k0 < k_end; k0 += REE_CHUNK) {
        uint k1 = min(k0 + REE_CHUNK, k_end);
        TILE_ROWS(TILE_ZERO)
#if TILE_FORM != 3
        TileRange range_a = TileRange(0xFFFFFFFFu, 0u), range_b = range_a;
#if TILE_FORM != 0
        TILE_ROWS(TILE_DECLARE_DOUBT)
#endif
#if defined(TILE_SUBGROUP)
        TileStep s = tile_step(k0);
        [[dont_unroll]] for (uint k = k0; k < k1; k += SUBGROUP) {
            uint mine = k + gl_SubgroupInvocationID;
#define TILE_LOAD_A(i)                                                                             \
    uint mine##i##_bits = mine < k1 ? floatBitsToUint(tile_a(min(i0 + i, m - 1u), mine)) : 0u;     \
    float mine##i = uintBitsToFloat(mine##i##_bits);                                               \
    TILE_NOTE_A(mine##i)
            TILE_ROWS(TILE_LOAD_A)
            [[unroll]] for (uint q = 0u; q < SUBGROUP; q++) {
                // past the end both factors are zero, which changes no sum
                vec4 b = vec4(0.0);
                if (k + q < k1) b = vec4(tile_b(s, c0), tile_b(s, c1), tile_b(s, c2), tile_b(s, c3));
                TILE_B(b)
#define TILE_STEP(i) TILE_FMA(i, subgroupBroadcast(mine##i, q))
                TILE_ROWS(TILE_STEP)
                tile_next(s);
            }
        }
        // the ranges of A that the other threads saw are this one's too
        range_a.low = subgroupMin(range_a.low);
        range_a.high = subgroupMax(range_a.high);
#else
        TileStep s = tile_step(k0);
        [[dont_unroll]] for (uint k = k0; k < k1; k++) {
            vec4 b = vec4(tile_b(s, c0), tile_b(s, c1), tile_b(s, c2), tile_b(s, c3));
            TILE_B(b)
#define TILE_STEP(i)                                                                               \
    {                                                                                              \
        float a = tile_a(min(i0 + i, m - 1u), k);                                                  \
        TILE_NOTE_A(a)                                                                             \
        TILE_FMA(i, a)                                                                             \
    }
            TILE_ROWS(TILE_STEP)
            tile_next(s);
        }
#endif
#endif
#if TILE_FORM != 0
        [[dont_unroll]] for (uint q = 0u; q < TM * TN; q++) {
            uint i = i0 + q / TN, j = j0 + q % TN * dj;
#if TILE_FORM == 3
            bool in_range = false, sure = false;
#else
            bool in_range = tile_in_range(range_a, range_b);
            TILE_DOUBT doubt;
            TILE_ROWS(TILE_GET_DOUBT)
            bool sure = TILE_IS_SURE;
#endif
            if (i >= m || j >= n || in_range && sure) continue;
            uint bits = 0u;
            if (!in_range) bits = tile_chunk_integer(i, tile_column(j), k0, k1);
#ifdef TILE_EXACT_FMA
            if (in_range) bits = tile_chunk_exact(i, tile_column(j), k0, k1);
#endif
            TILE_ROWS(TILE_PUT_ACC)
        }
#endif
        if (k0 == k_begin) {
            TILE_ROWS(TILE_FIRST)
        } else {
            bool slow = false;
            TILE_ROWS(TILE_DECLARE_SUM)
            TILE_ROWS(TILE_SUM)
            if (slow) {
                [[dont_unroll]] for (uint q = 0u; q < TM * TN; q++) {
                    vec4 row;
                    TILE_ROWS(TILE_GET_TOTAL)
                    uint x = floatBitsToUint(row[q % TN]);
                    TILE_ROWS(TILE_GET_ACC)
                    uint bits = ree_soft_add(x, floatBitsToUint(row[q % TN]));
                    TILE_ROWS(TILE_PUT_SUM)
                }
            }
            TILE_ROWS(TILE_TAKE_SUM)
        }
    }
    [[dont_unroll]] for (uint q = 0u; q < TM * TN; q++) {
        uint i = i0 + q / TN, j = j0 + q % TN * dj;
        vec4 row;
        TILE_ROWS(TILE_GET_TOTAL)
        uint bits = floatBitsToUint(row[q % TN]);
        if (i >= m || j >= n) continue;
        if (TILE_STAGE == 1u)
            tile_store_chunk(i, j, bits);
        else
            tile_store(i, j, bits == REE_SIGN ? 0u : ree_canon(bits)); // + 0: never -0
    }
}

#endif
