// Comparison, minimum and maximum, rounding to integral values and conversions of binary32, with
// integer operations only (NUMERICS.md, sections 2 and 5). Reason: a driver may flush subnormals
// even in a comparison, and may fold float(int(x)) to trunc(x), which gives -0 instead of +0.
#ifndef REE_SCALAR_CONVERT_H
#define REE_SCALAR_CONVERT_H

#include "repops/scalar/soft.h"

// Maps the bits of a float that is no NaN to an unsigned integer. The integers have the order of
// the floats, with -0 directly below +0.
REE_FN u32 ree_order_key(u32 x) {
    return (x & REE_SIGN) != 0u ? ~x : x | REE_SIGN;
}

REE_FN u32 ree_soft_min(u32 a, u32 b) {
    if (ree_is_nan(a) || ree_is_nan(b)) return REE_NAN;
    return ree_order_key(a) < ree_order_key(b) ? a : b;
}
REE_FN u32 ree_soft_max(u32 a, u32 b) {
    if (ree_is_nan(a) || ree_is_nan(b)) return REE_NAN;
    return ree_order_key(a) > ree_order_key(b) ? a : b;
}
REE_FN u32 ree_soft_eq(u32 a, u32 b) {
    bool equal = a == b || ((a | b) << 1u) == 0u;
    return equal && !ree_is_nan(a) && !ree_is_nan(b) ? 1u : 0u;
}
REE_FN u32 ree_soft_lt(u32 a, u32 b) {
    bool less = ree_order_key(a) < ree_order_key(b) && ((a | b) << 1u) != 0u;
    return less && !ree_is_nan(a) && !ree_is_nan(b) ? 1u : 0u;
}
REE_FN u32 ree_soft_le(u32 a, u32 b) {
    bool less = ree_order_key(a) <= ree_order_key(b) || ((a | b) << 1u) == 0u;
    return less && !ree_is_nan(a) && !ree_is_nan(b) ? 1u : 0u;
}

// Rounding to an integral value: trunc, floor, ceil, round. A result of zero keeps the sign of x.
REE_FN u32 ree_soft_trunc(u32 x) {
    u32 biased = (x >> 23u) & 255u;
    if (biased < 127u) return x & REE_SIGN;
    if (biased >= 150u) return ree_canon(x);
    return x & ~(0x7FFFFFu >> (biased - 127u));
}
// Returns trunc(x), or if `away` is set the integral value one further from zero than trunc(x). |x|
// must be below 2^23.
REE_FN u32 ree_trunc_away(u32 x, bool away) {
    u32 t = ree_soft_trunc(x);
    if (!away) return t;
    u32 biased = (t >> 23u) & 255u;
    if (biased < 127u) return (x & REE_SIGN) | REE_ONE;
    return t + (0x800000u >> (biased - 127u)); // a carry correctly increments the exponent
}
REE_FN u32 ree_soft_floor(u32 x) {
    if (((x >> 23u) & 255u) >= 150u) return ree_canon(x);
    return ree_trunc_away(x, (x & REE_SIGN) != 0u && ree_soft_trunc(x) != x);
}
REE_FN u32 ree_soft_ceil(u32 x) {
    if (((x >> 23u) & 255u) >= 150u) return ree_canon(x);
    return ree_trunc_away(x, (x & REE_SIGN) == 0u && ree_soft_trunc(x) != x);
}
REE_FN u32 ree_soft_round(u32 x) { // to nearest, ties to even
    u32 biased = (x >> 23u) & 255u;
    if (biased >= 150u) return ree_canon(x);
    if (biased < 126u) return x & REE_SIGN;
    if (biased == 126u) // [0.5, 1): the tie 0.5 goes to 0
        return (x & 0x7FFFFFu) == 0u ? x & REE_SIGN : (x & REE_SIGN) | REE_ONE;
    u32 unit = 0x800000u >> (biased - 127u); // the bit worth 1
    u32 rest = x & (unit - 1u), odd = biased == 127u ? 1u : (x & unit);
    return ree_trunc_away(x, rest > (unit >> 1u) || (rest == (unit >> 1u) && odd != 0u));
}

// Float to integer: rounds towards zero and saturates; NaN gives 0.
REE_FN u32 ree_soft_f32_to_u32(u32 x) {
    u32 biased = (x >> 23u) & 255u, m = (x & 0x7FFFFFu) | 0x800000u;
    if (ree_is_nan(x) || (x & REE_SIGN) != 0u || biased < 127u) return 0u;
    if (biased >= 159u) return 0xFFFFFFFFu;
    return biased >= 150u ? m << (biased - 150u) : m >> (150u - biased);
}
REE_FN u32 ree_soft_f32_to_i32(u32 x) {
    if (ree_is_nan(x)) return 0u;
    u32 m = ree_soft_f32_to_u32(x & 0x7FFFFFFFu);
    if ((x & REE_SIGN) != 0u) return m > 0x80000000u ? 0x80000000u : 0u - m;
    return m > 0x7FFFFFFFu ? 0x7FFFFFFFu : m;
}
REE_FN u64 ree_soft_f32_to_u64(u32 x) {
    u32 biased = (x >> 23u) & 255u;
    u64 m = u64_from32((x & 0x7FFFFFu) | 0x800000u);
    if (ree_is_nan(x) || (x & REE_SIGN) != 0u || biased < 127u) return REE_U64(0u, 0u);
    if (biased >= 191u) return REE_U64(0xFFFFFFFFu, 0xFFFFFFFFu);
    return biased >= 150u ? u64_shl(m, biased - 150u) : u64_shr(m, 150u - biased);
}
REE_FN u64 ree_soft_f32_to_i64(u32 x) {
    if (ree_is_nan(x)) return REE_U64(0u, 0u);
    u64 m = ree_soft_f32_to_u64(x & 0x7FFFFFFFu);
    bool beyond = (u64_hi(m) & REE_SIGN) != 0u;
    if ((x & REE_SIGN) != 0u) return beyond ? REE_U64(REE_SIGN, 0u) : u64_neg(m);
    return beyond ? REE_U64(0x7FFFFFFFu, 0xFFFFFFFFu) : m;
}

// Integer to float: rounds to nearest, ties to even.
REE_FN u32 ree_soft_u64_to_f32(u64 x) {
    return ree_pack64_any(0u, 63, x);
}
REE_FN u32 ree_soft_i64_to_f32(u64 x) {
    u32 sign = u64_hi(x) & REE_SIGN;
    if (u64_is_zero(x)) return 0u;
    return ree_pack64_any(sign, 63, sign != 0u ? u64_neg(x) : x);
}
REE_FN u32 ree_soft_u32_to_f32(u32 x) {
    if (x == 0u) return 0u;
    u32 n = ree_clz32(x);
    return ree_pack32(0u, 31 - REE_I32(n), x << n);
}
REE_FN u32 ree_soft_i32_to_f32(u32 x) {
    if ((x & REE_SIGN) == 0u) return ree_soft_u32_to_f32(x);
    return ree_soft_u32_to_f32(0u - x) | REE_SIGN;
}

// float16: 5 exponent bits (bias 15), 10 significand bits.
REE_FN u32 ree_soft_f16_to_f32(u32 h) {
    u32 sign = (h & 0x8000u) << 16u, biased = (h >> 10u) & 31u, m = h & 1023u;
    if (biased == 31u) return m != 0u ? REE_NAN : sign | REE_INF;
    if (biased != 0u) return sign | ((biased + 112u) << 23u) | (m << 13u);
    if (m == 0u) return sign;
    u32 n = ree_clz32(m) - 21u; // shift that moves the leading bit to bit 10
    return sign | ((113u - n) << 23u) | ((m << (n + 13u)) & 0x7FFFFFu);
}
REE_FN u32 ree_soft_f32_to_f16(u32 x) {
    u32 sign = (x >> 16u) & 0x8000u, a = x & 0x7FFFFFFFu;
    if (a > REE_INF) return 0x7E00u;
    if (a >= 0x47800000u) return sign | 0x7C00u; // 2^16 and above
    if (a >= 0x38800000u) { // normal in float16: rounding may carry up to infinity
        u32 q = a - 0x38000000u;
        return sign | ((q + 0xFFFu + ((q >> 13u) & 1u)) >> 13u);
    }
    if (a < 0x33000000u) return sign; // below 2^-25, half the smallest float16 subnormal
    u32 shift = 126u - (a >> 23u);    // 14 ... 24
    u32 m = (a & 0x7FFFFFu) | 0x800000u, q = m >> shift, rest = m << (32u - shift);
    if (rest > REE_SIGN || (rest == REE_SIGN && (q & 1u) != 0u)) q += 1u;
    return sign | q;
}
REE_FN u32 ree_soft_bf16_to_f32(u32 h) {
    return ree_canon((h & 0xFFFFu) << 16u);
}
REE_FN u32 ree_soft_f32_to_bf16(u32 x) {
    if (ree_is_nan(x)) return 0x7FC0u;
    return (x + 0x7FFFu + ((x >> 16u) & 1u)) >> 16u;
}

// Returns the exact remainder of a / b with the sign of a, like C's fmod.
REE_FN u32 ree_int_fmod_f32(u32 a, u32 b) {
    if (ree_is_nan(a) || ree_is_nan(b) || ree_is_inf(a) || ree_is_zero(b)) return REE_NAN;
    if (ree_is_inf(b) || (a & 0x7FFFFFFFu) < (b & 0x7FFFFFFFu)) return a;
    ree_unpacked ua = ree_unpack(a), ub = ree_unpack(b);
    // r = ua.m * 2^(ua.e - ub.e) mod ub.m, eight factors of 2 at a time. r stays below 2^24, so
    // that r << 8 fits in 32 bits.
    u32 r = ua.m % ub.m, n = REE_U32(ua.e - ub.e);
    for (; n >= 8u && r != 0u; n -= 8u)
        r = (r << 8u) % ub.m;
    if (n < 8u) r = (r << n) % ub.m;
    if (r == 0u) return a & REE_SIGN;
    u32 shift = ree_clz32(r);
    return ree_pack32(a & REE_SIGN, ub.e + 8 - REE_I32(shift), r << shift);
}

#endif
