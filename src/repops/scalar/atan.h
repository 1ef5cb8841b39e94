// atan, asin and acos of binary32 in integer arithmetic (NUMERICS.md, section 4). For 0 < a <= b, c
// is one of 0, 1/2 and 1 near a / b, and a polynomial gives the second term of
//
//   atan(a / b) = atan(c) + atan((a - c b) / (b + c a))
#ifndef REE_SCALAR_ATAN_H
#define REE_SCALAR_ATAN_H

#include "repops/scalar/wide.h"

// Returns atan(a / b) for positive a and b.
REE_FN ree_wide ree_atan_wide(ree_wide a, ree_wide b) {
    bool swapped = a.e > b.e || (a.e == b.e && u64_lt(b.m, a.m));
    if (swapped) {
        ree_wide swap = a;
        a = b;
        b = swap;
    }
    // a = pa * 2^(b.e - 62) and b = pb * 2^(b.e - 62). Both are below 2^63, so sums fit in 64 bits.
    u64 pb = u64_shr(b.m, 1u), pa = u64_shr_any(a.m, REE_U32(b.e - a.e) + 1u);
    ree_wide n = a, d = b;
    u64 base = REE_U64(0u, 0u); // atan(c) * 2^64
    bool minus = false;
    if (u64_lt(u64_shr(pb, 2u), pa)) {
        u64 quarter3 = u64_sub(pb, u64_shr(pb, 2u)), cb = pb, ca = pa;
        base = REE_QUARTER_PI;
        if (u64_lt(pa, quarter3)) {
            cb = u64_shr(pb, 1u);
            ca = u64_shr(pa, 1u);
            base = u64_shr(REE_ATAN_HALF, 1u);
        }
        minus = u64_lt(pa, cb);
        n = ree_wide_norm(minus ? u64_sub(cb, pa) : u64_sub(pa, cb), 0);
        d = ree_wide_norm(u64_add(pb, ca), 0);
    }
    ree_wide y = ree_wide_div(n, d), r;
    u64 f = ree_wide_fraction(y), t = u64_mulh(f, f);
    y.m = u64_sub(y.m, u64_mulh(y.m, u64_mulh(t, ree_poly_atan(t))));
    if (u64_is_zero(base)) {
        r = ree_wide_norm(y.m, y.e);
    } else {
        u64 part = u64_is_zero(n.m) ? n.m : ree_wide_fraction(y);
        r = ree_wide_norm(minus ? u64_sub(base, part) : u64_add(base, part), -1);
    }
    if (!swapped) return r;
    ree_wide half_pi;
    half_pi.m = REE_HALF_PI;
    half_pi.e = 0;
    return ree_wide_sub(half_pi, r);
}

REE_FN u32 ree_int_atan_f32(u32 x) {
    if (ree_is_nan(x)) return REE_NAN;
    u32 a = x & 0x7FFFFFFFu;
    if (a < 0x32000000u) return x;                         // 2^-27
    if (a == REE_INF) return (x & REE_SIGN) | 0x3FC90FDBu; // pi/2
    return ree_wide_round(x & REE_SIGN, ree_atan_wide(ree_wide_from(a), ree_wide_one()));
}

// Returns sqrt(1 - x^2) for 0 < x < 1, computed as sqrt((1 - x) * (1 + x)).
REE_FN ree_wide ree_cathetus(ree_wide x) {
    ree_wide one = ree_wide_one();
    return ree_wide_sqrt(ree_wide_mul(ree_wide_sub(one, x), ree_wide_add(one, x)));
}

REE_FN u32 ree_int_asin_f32(u32 x) {
    u32 a = x & 0x7FFFFFFFu;
    if (a > REE_ONE) return REE_NAN;
    if (a < 0x32000000u) return x;
    if (a == REE_ONE) return (x & REE_SIGN) | 0x3FC90FDBu; // pi/2
    ree_wide v = ree_wide_from(a);
    return ree_wide_round(x & REE_SIGN, ree_atan_wide(v, ree_cathetus(v)));
}

REE_FN u32 ree_int_acos_f32(u32 x) {
    u32 a = x & 0x7FFFFFFFu;
    bool negative = (x & REE_SIGN) != 0u;
    if (a > REE_ONE) return REE_NAN;
    if (a < 0x32000000u) return 0x3FC90FDBu;              // pi/2
    if (a == REE_ONE) return negative ? 0x40490FDBu : 0u; // pi
    ree_wide v = ree_wide_from(a);
    ree_wide r = ree_atan_wide(ree_cathetus(v), v);
    if (negative) {
        ree_wide whole;
        whole.m = REE_HALF_PI; // pi and pi/2 have the same significand
        whole.e = 1;
        r = ree_wide_sub(whole, r);
    }
    return ree_wide_round(0u, r);
}

#endif
