// Unsigned 64-bit arithmetic for the scalar source: native words in C and CUDA, pairs of 32-bit
// words in GLSL, with the same results. Shift counts must be below 64, except where a comment says
// "any n".
#ifndef REE_SCALAR_U64_H
#define REE_SCALAR_U64_H

#include "repops/scalar/lang.h"

// Returns the number of leading zeros; 32 for 0.
REE_FN u32 ree_clz32(u32 x) {
#ifdef REE_GLSL
    return REE_U32(31 - findMSB(x));
#elif defined(__CUDACC__)
    return (u32)__clz((int)x);
#else
    return x == 0u ? 32u : (u32)__builtin_clz(x);
#endif
}

#ifdef REE_SCALAR_LIMBS

REE_FN u32 u64_lo(u64 a) {
    return a.x;
}
REE_FN u32 u64_hi(u64 a) {
    return a.y;
}

REE_FN u64 u64_mul32(u32 a, u32 b) {
#ifdef REE_GLSL
    uint hi, lo;
    umulExtended(a, b, hi, lo);
    return uvec2(lo, hi);
#else
    uint64_t p = (uint64_t)a * b;
    return REE_U64((u32)(p >> 32), (u32)p);
#endif
}

REE_FN u64 u64_add(u64 a, u64 b) {
    u32 lo = a.x + b.x;
    return REE_U64(a.y + b.y + (lo < a.x ? 1u : 0u), lo);
}
REE_FN u64 u64_sub(u64 a, u64 b) {
    return REE_U64(a.y - b.y - (a.x < b.x ? 1u : 0u), a.x - b.x);
}
REE_FN bool u64_eq(u64 a, u64 b) {
    return a.x == b.x && a.y == b.y;
}
REE_FN bool u64_lt(u64 a, u64 b) {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}
REE_FN u64 u64_and(u64 a, u64 b) {
    return REE_U64(a.y & b.y, a.x & b.x);
}
REE_FN u64 u64_or(u64 a, u64 b) {
    return REE_U64(a.y | b.y, a.x | b.x);
}
REE_FN u64 u64_xor(u64 a, u64 b) {
    return REE_U64(a.y ^ b.y, a.x ^ b.x);
}
REE_FN u64 u64_not(u64 a) {
    return REE_U64(~a.y, ~a.x);
}
REE_FN u64 u64_shl(u64 a, u32 n) {
    if (n == 0u) return a;
    if (n >= 32u) return REE_U64(a.x << (n - 32u), 0u);
    return REE_U64((a.y << n) | (a.x >> (32u - n)), a.x << n);
}
REE_FN u64 u64_shr(u64 a, u32 n) {
    if (n == 0u) return a;
    if (n >= 32u) return REE_U64(0u, a.y >> (n - 32u));
    return REE_U64(a.y >> n, (a.x >> n) | (a.y << (32u - n)));
}
// Returns the low 64 bits of the product.
REE_FN u64 u64_mul(u64 a, u64 b) {
    u64 p = u64_mul32(a.x, b.x);
    return REE_U64(p.y + a.x * b.y + a.y * b.x, p.x);
}

#else

REE_FN u32 u64_lo(u64 a) {
    return (u32)a;
}
REE_FN u32 u64_hi(u64 a) {
    return (u32)(a >> 32);
}
REE_FN u64 u64_mul32(u32 a, u32 b) {
    return (u64)a * b;
}
REE_FN u64 u64_add(u64 a, u64 b) {
    return a + b;
}
REE_FN u64 u64_sub(u64 a, u64 b) {
    return a - b;
}
REE_FN bool u64_eq(u64 a, u64 b) {
    return a == b;
}
REE_FN bool u64_lt(u64 a, u64 b) {
    return a < b;
}
REE_FN u64 u64_and(u64 a, u64 b) {
    return a & b;
}
REE_FN u64 u64_or(u64 a, u64 b) {
    return a | b;
}
REE_FN u64 u64_xor(u64 a, u64 b) {
    return a ^ b;
}
REE_FN u64 u64_not(u64 a) {
    return ~a;
}
REE_FN u64 u64_shl(u64 a, u32 n) {
    return a << n;
}
REE_FN u64 u64_shr(u64 a, u32 n) {
    return a >> n;
}
REE_FN u64 u64_mul(u64 a, u64 b) {
    return a * b;
}

#endif

REE_FN u64 u64_from32(u32 a) {
    return REE_U64(0u, a);
}
REE_FN bool u64_is_zero(u64 a) {
    return (u64_lo(a) | u64_hi(a)) == 0u;
}
REE_FN u64 u64_neg(u64 a) {
    return u64_sub(REE_U64(0u, 0u), a);
}
REE_FN bool u64_slt(u64 a, u64 b) { // a < b in two's complement
    return u64_lt(u64_xor(a, REE_U64(REE_SIGN, 0u)), u64_xor(b, REE_U64(REE_SIGN, 0u)));
}
REE_FN u32 u64_clz(u64 a) { // 64 for 0
#if !defined(REE_SCALAR_LIMBS) && !defined(__CUDACC__)
    return a == 0u ? 64u : (u32)__builtin_clzll(a);
#else
    return u64_hi(a) != 0u ? ree_clz32(u64_hi(a)) : 32u + ree_clz32(u64_lo(a));
#endif
}
// Returns a >> n for any n. Bit 0 of the result is sticky: it is also 1 if a lost bit was 1.
REE_FN u64 u64_shr_sticky(u64 a, u32 n) {
    if (n == 0u) return a;
    if (n > 63u) return u64_from32(u64_is_zero(a) ? 0u : 1u);
    bool lost = !u64_is_zero(u64_shl(a, 64u - n));
    u64 r = u64_shr(a, n);
    return lost ? u64_or(r, REE_U64(0u, 1u)) : r;
}
// Returns a >> n for any n; 0 for n > 63.
REE_FN u64 u64_shr_any(u64 a, u32 n) {
    return n > 63u ? REE_U64(0u, 0u) : u64_shr(a, n);
}
// Returns the high 64 bits of the product without the carries from its low half: 0 to 2 units below
// floor(a * b / 2^64). C, CUDA C and GLSL compute exactly this value. On words of 32 bits it is
// cheaper than the exact high half.
REE_FN u64 u64_mulh(u64 a, u64 b) {
    u32 ah = u64_hi(a), al = u64_lo(a), bh = u64_hi(b), bl = u64_lo(b);
    u64 p = u64_mul32(ah, bh);
    p = u64_add(p, u64_from32(u64_hi(u64_mul32(ah, bl))));
    return u64_add(p, u64_from32(u64_hi(u64_mul32(al, bh))));
}

#endif
