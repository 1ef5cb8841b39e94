// Operations on the bits of binary64 numbers, with integer operations only: sign, comparison,
// minimum, maximum, rounding to integral values, and conversions (NUMERICS.md, sections 1, 2 and
// 5). They give the same bits on devices with and without binary64 arithmetic.
#ifndef REE_SCALAR_F64_H
#define REE_SCALAR_F64_H

#include "repops/scalar/soft.h"

#define REE_F64_NAN REE_U64(0x7FF80000u, 0u)
#define REE_F64_INF REE_U64(0x7FF00000u, 0u)

REE_FN u64 ree_f64_magnitude(u64 x) {
    return REE_U64(u64_hi(x) & 0x7FFFFFFFu, u64_lo(x));
}
REE_FN bool ree_f64_is_negative(u64 x) {
    return (u64_hi(x) & REE_SIGN) != 0u;
}
REE_FN bool ree_f64_is_nan(u64 x) {
    return u64_lt(REE_F64_INF, ree_f64_magnitude(x));
}
REE_FN bool ree_f64_is_inf(u64 x) {
    return u64_eq(REE_F64_INF, ree_f64_magnitude(x));
}
REE_FN bool ree_f64_is_zero(u64 x) {
    return u64_is_zero(ree_f64_magnitude(x));
}
REE_FN u64 ree_f64_canon(u64 x) {
    if (ree_f64_is_nan(x)) return REE_F64_NAN;
    return x;
}
REE_FN u32 ree_f64_exponent(u64 x) { // biased
    return (u64_hi(x) >> 20u) & 2047u;
}

// Maps the bits of a binary64 number that is no NaN to an unsigned integer. The integers have the
// order of the numbers, with -0 directly below +0.
REE_FN u64 ree_f64_order_key(u64 x) {
    if (ree_f64_is_negative(x)) return u64_not(x);
    return REE_U64(u64_hi(x) | REE_SIGN, u64_lo(x));
}
REE_FN u64 ree_f64_min(u64 a, u64 b) {
    if (ree_f64_is_nan(a) || ree_f64_is_nan(b)) return REE_F64_NAN;
    if (u64_lt(ree_f64_order_key(a), ree_f64_order_key(b))) return a;
    return b;
}
REE_FN u64 ree_f64_max(u64 a, u64 b) {
    if (ree_f64_is_nan(a) || ree_f64_is_nan(b)) return REE_F64_NAN;
    if (u64_lt(ree_f64_order_key(b), ree_f64_order_key(a))) return a;
    return b;
}
REE_FN u32 ree_f64_eq(u64 a, u64 b) {
    bool equal = u64_eq(a, b) || (ree_f64_is_zero(a) && ree_f64_is_zero(b));
    return equal && !ree_f64_is_nan(a) && !ree_f64_is_nan(b) ? 1u : 0u;
}
REE_FN u32 ree_f64_lt(u64 a, u64 b) {
    bool less = u64_lt(ree_f64_order_key(a), ree_f64_order_key(b)) &&
                !(ree_f64_is_zero(a) && ree_f64_is_zero(b));
    return less && !ree_f64_is_nan(a) && !ree_f64_is_nan(b) ? 1u : 0u;
}
REE_FN u32 ree_f64_le(u64 a, u64 b) {
    return ree_f64_lt(a, b) | ree_f64_eq(a, b);
}

// Rounding to an integral value: trunc, floor, ceil, round. A result of zero keeps the sign of x.
REE_FN u64 ree_f64_trunc(u64 x) {
    u32 biased = ree_f64_exponent(x);
    if (biased < 1023u) return REE_U64(u64_hi(x) & REE_SIGN, 0u);
    if (biased >= 1075u) return ree_f64_canon(x);
    return u64_and(x, u64_not(u64_shr(REE_U64(0xFFFFFu, 0xFFFFFFFFu), biased - 1023u)));
}
// Returns the integral value one further from zero than t, where t = trunc(x) and |x| < 2^52.
REE_FN u64 ree_f64_away(u64 t) {
    u32 biased = ree_f64_exponent(t);
    if (biased < 1023u) return REE_U64((u64_hi(t) & REE_SIGN) | 0x3FF00000u, 0u);
    // A carry out of the significand correctly increments the exponent.
    return u64_add(t, u64_shr(REE_U64(0x100000u, 0u), biased - 1023u));
}
REE_FN u64 ree_f64_floor(u64 x) {
    u64 t = ree_f64_trunc(x);
    if (ree_f64_exponent(x) >= 1075u || !ree_f64_is_negative(x) || u64_eq(t, x)) return t;
    return ree_f64_away(t);
}
REE_FN u64 ree_f64_ceil(u64 x) {
    u64 t = ree_f64_trunc(x);
    if (ree_f64_exponent(x) >= 1075u || ree_f64_is_negative(x) || u64_eq(t, x)) return t;
    return ree_f64_away(t);
}
REE_FN u64 ree_f64_round(u64 x) { // to nearest, ties to even
    u32 biased = ree_f64_exponent(x);
    u64 t = ree_f64_trunc(x);
    if (biased >= 1075u || biased < 1022u) return t;
    if (biased == 1022u) { // [0.5, 1): the tie 0.5 goes to 0
        bool tie = (u64_hi(x) & 0xFFFFFu) == 0u && u64_lo(x) == 0u;
        if (tie) return t;
        return ree_f64_away(t);
    }
    u64 unit = u64_shr(REE_U64(0x100000u, 0u), biased - 1023u); // the bit worth 1
    u64 rest = u64_and(x, u64_sub(unit, u64_from32(1u))), half_unit = u64_shr(unit, 1u);
    bool odd = biased == 1023u || !u64_is_zero(u64_and(x, unit));
    if (u64_lt(half_unit, rest) || (u64_eq(half_unit, rest) && odd)) return ree_f64_away(t);
    return t;
}
REE_FN u64 ree_f64_sign(u64 x) {
    if (ree_f64_is_nan(x)) return REE_F64_NAN;
    if (ree_f64_is_zero(x)) return u64_from32(0u);
    return REE_U64((u64_hi(x) & REE_SIGN) | 0x3FF00000u, 0u);
}

// Conversions

// The absolute value m * 2^(e - 63) of a finite nonzero binary64 number; bit 63 of m is set.
struct ree_f64_parts {
    u64 m;
    i32 e;
};
REE_TYPEDEF(ree_f64_parts)
REE_FN ree_f64_parts ree_f64_unpack(u64 x) {
    ree_f64_parts r;
    u32 biased = ree_f64_exponent(x);
    u64 fraction = REE_U64(u64_hi(x) & 0xFFFFFu, u64_lo(x));
    if (biased == 0u) {
        u32 n = u64_clz(fraction);
        r.m = u64_shl(fraction, n);
        r.e = -1011 - REE_I32(n);
    } else {
        r.m = u64_shl(u64_or(fraction, REE_U64(0x100000u, 0u)), 11u);
        r.e = REE_I32(biased) - 1023;
    }
    return r;
}

REE_FN u64 ree_f32_to_f64(u32 x) { // exact
    u32 sign = x & REE_SIGN;
    if (ree_is_nan(x)) return REE_F64_NAN;
    if (ree_is_inf(x)) return REE_U64(sign | 0x7FF00000u, 0u);
    if (ree_is_zero(x)) return REE_U64(sign, 0u);
    ree_unpacked u = ree_unpack(x);
    u32 m = u.m & 0x7FFFFFu;
    return REE_U64(sign | (REE_U32(u.e + 1023) << 20u) | (m >> 3u), m << 29u);
}
REE_FN u32 ree_f64_to_f32(u64 x) {
    u32 sign = u64_hi(x) & REE_SIGN;
    if (ree_f64_is_nan(x)) return REE_NAN;
    if (ree_f64_is_inf(x)) return sign | REE_INF;
    if (ree_f64_is_zero(x)) return sign;
    ree_f64_parts u = ree_f64_unpack(x);
    return ree_pack64(sign, u.e, u.m);
}

// Rounds m * 2^(e - 63), bit 63 of m set, to binary32 by rounding to odd: a value that is not exact
// becomes the neighbouring float whose last bit is 1; an overflow becomes the largest finite float.
// If the result is then rounded to nearest, to a format that is at least two bits shorter in its
// whole range, the final result equals that of a single rounding. Conversions to the formats of 16
// bits and fewer use this. `sign` is 0 or REE_SIGN.
REE_FN u32 ree_pack_odd(u32 sign, i32 e, u64 m) {
    if (e > 127) return sign | 0x7F7FFFFFu;
    u32 shift = 40u; // moves bit 63 to bit 23
    if (e < -126) {
        u32 below = REE_U32(-126 - e);
        if (below > 23u) return sign | 1u;
        shift += below;
    }
    u64 kept = u64_shr(m, shift);
    u32 q = u64_lo(kept);
    if (!u64_eq(u64_shl(kept, shift), m)) q |= 1u;
    // If the result is normal, bit 23 of q adds 1 to the exponent field.
    return e < -126 ? sign | q : sign | ((REE_U32(e + 126) << 23u) + q);
}
REE_FN u32 ree_f64_to_f32_odd(u64 x) {
    u32 sign = u64_hi(x) & REE_SIGN;
    if (ree_f64_is_nan(x)) return REE_NAN;
    if (ree_f64_is_inf(x)) return sign | REE_INF;
    if (ree_f64_is_zero(x)) return sign;
    ree_f64_parts u = ree_f64_unpack(x);
    return ree_pack_odd(sign, u.e, u.m);
}
REE_FN u32 ree_u64_to_f32_odd(u64 x) {
    if (u64_is_zero(x)) return 0u;
    u32 n = u64_clz(x);
    return ree_pack_odd(0u, 63 - REE_I32(n), u64_shl(x, n));
}
REE_FN u32 ree_i64_to_f32_odd(u64 x) {
    if ((u64_hi(x) & REE_SIGN) == 0u) return ree_u64_to_f32_odd(x);
    return ree_u64_to_f32_odd(u64_neg(x)) | REE_SIGN;
}

// binary64 to integer: rounds towards zero and saturates; NaN gives 0.

// Returns |x| rounded towards zero, at most 2^64 - 1. x must not be a NaN.
REE_FN u64 ree_f64_to_u64_magnitude(u64 x) {
    u32 biased = ree_f64_exponent(x);
    if (biased < 1023u) return u64_from32(0u);
    if (biased >= 1087u) return REE_U64(0xFFFFFFFFu, 0xFFFFFFFFu);
    ree_f64_parts u = ree_f64_unpack(x);
    return u64_shr(u.m, 1086u - biased);
}
REE_FN u64 ree_f64_to_u64(u64 x) {
    if (ree_f64_is_nan(x) || ree_f64_is_negative(x)) return u64_from32(0u);
    return ree_f64_to_u64_magnitude(x);
}
REE_FN u64 ree_f64_to_i64(u64 x) {
    if (ree_f64_is_nan(x)) return u64_from32(0u);
    u64 m = ree_f64_to_u64_magnitude(x);
    bool beyond = (u64_hi(m) & REE_SIGN) != 0u;
    if (ree_f64_is_negative(x)) {
        if (beyond) return REE_U64(REE_SIGN, 0u);
        return u64_neg(m);
    }
    if (beyond) return REE_U64(0x7FFFFFFFu, 0xFFFFFFFFu);
    return m;
}
REE_FN u32 ree_f64_to_u32(u64 x) {
    u64 m = ree_f64_to_u64(x);
    return u64_hi(m) != 0u ? 0xFFFFFFFFu : u64_lo(m);
}
REE_FN u32 ree_f64_to_i32(u64 x) {
    if (ree_f64_is_nan(x)) return 0u;
    u64 m = ree_f64_to_u64_magnitude(x);
    bool beyond = u64_hi(m) != 0u || (u64_lo(m) & REE_SIGN) != 0u;
    if (ree_f64_is_negative(x)) return beyond ? REE_SIGN : 0u - u64_lo(m);
    return beyond ? 0x7FFFFFFFu : u64_lo(m);
}

// Integer to binary64: rounds to nearest, ties to even.
REE_FN u64 ree_u64_to_f64(u64 x) {
    if (u64_is_zero(x)) return x;
    u32 n = u64_clz(x);
    u64 m = u64_shl(x, n), q = u64_shr(m, 11u), rest = u64_and(m, u64_from32(0x7FFu));
    u32 low = u64_lo(rest);
    if (low > 0x400u || (low == 0x400u && (u64_lo(q) & 1u) != 0u)) q = u64_add(q, u64_from32(1u));
    // The leading bit of q, bit 52, adds 1 to the exponent field. A carry from rounding adds 1
    // more.
    return u64_add(REE_U64((1085u - n) << 20u, 0u), q);
}
REE_FN u64 ree_i64_to_f64(u64 x) {
    if ((u64_hi(x) & REE_SIGN) == 0u) return ree_u64_to_f64(x);
    return u64_or(ree_u64_to_f64(u64_neg(x)), REE_U64(REE_SIGN, 0u));
}

#endif
