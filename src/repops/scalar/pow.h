// pow of binary32 in integer arithmetic (NUMERICS.md, section 4): x^y = 2^(y * log2 x), with the
// special values of C.
//
// The first attempt computes with 64 bits. It is correct unless the result lies within 2^-50 of a
// tie (relative). In that case a second attempt computes with 128 bits, to 2^-86. A power that is
// not a tie never lies within 2^-86 of one, so a result that does is exactly the tie.
#ifndef REE_SCALAR_POW_H
#define REE_SCALAR_POW_H

#include "repops/scalar/log.h"

struct ree_u128 {
    u64 hi, lo;
};
REE_TYPEDEF(ree_u128)

REE_FN ree_u128 ree_u128_add(ree_u128 a, ree_u128 b) {
    ree_u128 r;
    r.lo = u64_add(a.lo, b.lo);
    r.hi = u64_add(a.hi, b.hi);
    if (u64_lt(r.lo, a.lo)) r.hi = u64_add(r.hi, REE_U64(0u, 1u));
    return r;
}
REE_FN ree_u128 ree_u128_shl(ree_u128 a, u32 n) { // n in 1 ... 63
    ree_u128 r;
    r.hi = u64_or(u64_shl(a.hi, n), u64_shr(a.lo, 64u - n));
    r.lo = u64_shl(a.lo, n);
    return r;
}
REE_FN ree_u128 ree_u128_shr(ree_u128 a, u32 n) { // any n
    ree_u128 r;
    r.hi = u64_shr_any(a.hi, n);
    if (n == 0u)
        r.lo = a.lo;
    else if (n < 64u)
        r.lo = u64_or(u64_shr(a.lo, n), u64_shl(a.hi, 64u - n));
    else
        r.lo = u64_shr_any(a.hi, n - 64u);
    return r;
}
// Returns the 128-bit product of two 64-bit numbers.
REE_FN ree_u128 ree_u64_product(u64 a, u64 b) {
    u64 ll = u64_mul32(u64_lo(a), u64_lo(b)), hh = u64_mul32(u64_hi(a), u64_hi(b));
    u64 lh = u64_mul32(u64_lo(a), u64_hi(b)), hl = u64_mul32(u64_hi(a), u64_lo(b));
    u64 mid =
        u64_add(u64_add(u64_from32(u64_hi(ll)), u64_from32(u64_lo(lh))), u64_from32(u64_lo(hl)));
    ree_u128 r;
    r.lo = REE_U64(u64_lo(mid), u64_lo(ll));
    r.hi = u64_add(u64_add(hh, u64_from32(u64_hi(mid))),
                   u64_add(u64_from32(u64_hi(lh)), u64_from32(u64_hi(hl))));
    return r;
}
// Returns the high 128 bits of a * b; the result may be up to 3 units too small.
REE_FN ree_u128 ree_u128_mulh(ree_u128 a, ree_u128 b) {
    ree_u128 r = ree_u64_product(a.hi, b.hi), cross;
    cross.hi = REE_U64(0u, 0u);
    cross.lo = ree_u64_product(a.hi, b.lo).hi;
    r = ree_u128_add(r, cross);
    cross.lo = ree_u64_product(a.lo, b.hi).hi;
    return ree_u128_add(r, cross);
}
// Returns (first * 2^64 + a) / d for first < d < 2^16, by long division with digits of 16 bits.
// `first` is the remainder of the digits above a.
REE_FN u64 ree_divide_digits(u32 first, u64 a, u32 d) {
    u32 r = (first << 16u) | (u64_hi(a) >> 16u), q3 = r / d;
    r = ((r % d) << 16u) | (u64_hi(a) & 0xFFFFu);
    u32 q2 = r / d;
    r = ((r % d) << 16u) | (u64_lo(a) >> 16u);
    u32 q1 = r / d;
    r = ((r % d) << 16u) | (u64_lo(a) & 0xFFFFu);
    return REE_U64((q3 << 16u) | q2, (q1 << 16u) | (r / d));
}
REE_FN ree_u128 ree_u128_div(ree_u128 a, u32 d) {
    ree_u128 r;
    r.hi = ree_divide_digits(0u, a.hi, d);
    u64 back = u64_mul(r.hi, u64_from32(d));
    r.lo = ree_divide_digits(u64_lo(u64_sub(a.hi, back)), a.lo, d);
    return r;
}

REE_FN ree_u128 ree_u128_neg(ree_u128 a) {
    ree_u128 r;
    r.lo = u64_neg(a.lo);
    r.hi = u64_is_zero(a.lo) ? u64_neg(a.hi) : u64_not(a.hi);
    return r;
}
REE_FN bool ree_u128_is_zero(ree_u128 a) {
    return u64_is_zero(u64_or(a.hi, a.lo));
}

// Second attempt: returns the bits of a^y with the given sign, for a finite a other than 0 and 1
// and the absolute value and sign of y. The caller has excluded exponents for which the result
// surely overflows, vanishes or rounds to 1, so that 2^-36 < |y| < 2^31.
REE_FN u32 ree_pow_again(u32 sign, ree_unpacked a, ree_unpacked y, bool y_negative) {
    ree_u128 v, l;
    // l = log2(v) for v = a.m / 2^23 in [1, 2), bit by bit, 126 bits. Squaring v doubles its
    // logarithm: if the square reaches 2, the next bit is 1, and v is halved.
    v.hi = REE_U64(a.m << 8u, 0u);
    v.lo = REE_U64(0u, 0u);
    l.hi = v.lo;
    l.lo = v.lo;
    for (u32 i = 0u; i < 126u; i++) {
        v = ree_u128_mulh(v, v); // in [1, 4), two bits before the binary point
        l = ree_u128_shl(l, 1u);
        if ((u64_hi(v.hi) & REE_SIGN) != 0u)
            l.lo = u64_or(l.lo, REE_U64(0u, 1u));
        else
            v = ree_u128_shl(v, 1u);
    }
    l = ree_u128_shl(l, 2u);
    // log2(a) is a.e + l. `whole` becomes the integer part of |log2(a)|, and l the fraction.
    bool negative = a.e < 0;
    u32 whole = REE_U32(negative ? -a.e : a.e);
    if (negative && !ree_u128_is_zero(l)) {
        whole -= 1u;
        l = ree_u128_neg(l);
    }
    // |log2(a)| * |y|, where |y| = m * 2^-n: in the product with m, p4 is the integer part and the
    // low words of p3 to p0 are the fraction, 128 bits. Then the product is shifted right by n
    // bits.
    u32 m = y.m << 8u, n = REE_U32(31 - y.e);
    u64 p0 = u64_mul32(m, u64_lo(l.lo));
    u64 p1 = u64_add(u64_mul32(m, u64_hi(l.lo)), u64_from32(u64_hi(p0)));
    u64 p2 = u64_add(u64_mul32(m, u64_lo(l.hi)), u64_from32(u64_hi(p1)));
    u64 p3 = u64_add(u64_mul32(m, u64_hi(l.hi)), u64_from32(u64_hi(p2)));
    u64 p4 = u64_add(u64_mul32(m, whole), u64_from32(u64_hi(p3)));
    ree_u128 f;
    f.hi = REE_U64(u64_lo(p3), u64_lo(p2));
    f.lo = REE_U64(u64_lo(p1), u64_lo(p0));
    f = ree_u128_shr(f, n);
    if (n < 64u) {
        f.hi = u64_or(f.hi, u64_shl(p4, 64u - n));
    } else {
        f.hi = u64_or(f.hi, u64_shr(p4, n - 64u));
        if (n > 64u) f.lo = u64_or(f.lo, u64_shl(p4, 128u - n));
    }
    i32 k = REE_I32(u64_lo(u64_shr_any(p4, n)));
    if (negative != y_negative) {
        k = ree_u128_is_zero(f) ? -k : -k - 1;
        f = ree_u128_neg(f);
    }
    // v = 2^f = e^z with z = f * ln 2, by the Taylor series in Horner's form. v has two bits before
    // the binary point.
    ree_u128 z, one;
    z.hi = REE_LN2_HIGH;
    z.lo = REE_LN2_LOW;
    z = ree_u128_mulh(f, z);
    one.hi = REE_U64(0x40000000u, 0u);
    one.lo = REE_U64(0u, 0u);
    v = one;
    for (u32 i = 32u; i != 0u; i--)
        v = ree_u128_add(one, ree_u128_div(ree_u128_mulh(z, v), i));
    // If v - 2^-86 and v + 2^-86 round to the same float, this float is the result. Otherwise v is
    // a tie. A tie has 25 bits, so rounding v to its upper 32 bits gives it exactly.
    ree_u128 margin, low;
    margin.hi = REE_U64(0u, 0u);
    margin.lo = REE_U64(0x100u, 0u);
    low = ree_u128_add(v, ree_u128_neg(margin));
    u32 above = ree_pack64_any(sign, k + 1, u64_or(ree_u128_add(v, margin).hi, REE_U64(0u, 1u)));
    if (ree_pack64_any(sign, k + 1, u64_or(low.hi, REE_U64(0u, 1u))) == above) return above;
    u64 tie = u64_and(u64_add(v.hi, REE_U64(0u, 0x80000000u)), REE_U64(0xFFFFFFFFu, 0u));
    return ree_pack64_any(sign, k + 1, tie);
}

// Returns 0 if a is not an integer, 1 if it is odd, 2 if it is even. a: bits of a finite positive
// float.
REE_FN u32 ree_parity(u32 a) {
    u32 biased = a >> 23u;
    if (biased < 127u) return 0u;
    if (biased > 150u) return 2u;
    u32 m = (a & 0x7FFFFFu) | 0x800000u, n = 150u - biased; // a = m / 2^n
    if ((m & ((1u << n) - 1u)) != 0u) return 0u;
    return ((m >> n) & 1u) != 0u ? 1u : 2u;
}

REE_FN u32 ree_int_pow_f32(u32 x, u32 y) {
    u32 a = x & 0x7FFFFFFFu, b = y & 0x7FFFFFFFu;
    bool y_negative = (y & REE_SIGN) != 0u;
    if (b == 0u || x == REE_ONE) return REE_ONE;
    if (a > REE_INF || b > REE_INF) return REE_NAN;
    if (b == REE_INF) {
        if (a == REE_ONE) return REE_ONE;
        return (a > REE_ONE) != y_negative ? REE_INF : 0u;
    }
    u32 parity = ree_parity(b), sign = parity == 1u ? x & REE_SIGN : 0u;
    if (a == 0u || a == REE_INF) return sign | ((a == 0u) == y_negative ? REE_INF : 0u);
    if ((x & REE_SIGN) != 0u && parity == 0u) return REE_NAN;
    if (a == REE_ONE) return sign | REE_ONE;
    ree_signed_wide l = ree_log2_wide(ree_wide_from(a));
    ree_wide p = ree_wide_mul(l.v, ree_wide_from(b));
    bool negative = l.negative != y_negative;
    if (p.e >= 8) return sign | (negative ? 0u : REE_INF);
    if (p.e < -27) return sign | REE_ONE;
    i32 k = 0;
    u64 f;
    if (p.e >= 0) {
        k = REE_I32(u64_lo(u64_shr(p.m, REE_U32(63 - p.e))));
        f = u64_shl(p.m, REE_U32(p.e + 1));
    } else {
        f = u64_shr(p.m, REE_U32(-1 - p.e));
    }
    if (negative) {
        k = u64_is_zero(f) ? -k : -k - 1;
        f = u64_neg(f);
    }
    // m has 62 fraction bits. If m - 2^-50 and m + 2^-50 round to the same float, this float is the
    // result.
    u64 m = u64_shr(ree_exp2_wide(k, f).m, 1u), margin = REE_U64(0u, 0x1000u);
    u32 above = ree_pack64_any(sign, k + 1, u64_or(u64_add(m, margin), REE_U64(0u, 1u)));
    if (ree_pack64_any(sign, k + 1, u64_or(u64_sub(m, margin), REE_U64(0u, 1u))) == above)
        return above;
    return ree_pow_again(sign, ree_unpack(a), ree_unpack(b), y_negative);
}

#endif
