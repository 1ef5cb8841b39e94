// log, log1p, asinh, acosh, atanh and softplus of binary32 in integer arithmetic (NUMERICS.md,
// section 4). Every positive number is 2^k * a with an integer k and a in [sqrt(1/2), sqrt(2)]:
//
//   log2(2^k * a) = k + log2((1 + s) / (1 - s)),  s = (a - 1) / (a + 1)
#ifndef REE_SCALAR_LOG_H
#define REE_SCALAR_LOG_H

#include "repops/scalar/exp.h"

struct ree_signed_wide {
    bool negative;
    ree_wide v;
};
REE_TYPEDEF(ree_signed_wide)

// Returns k + log2((1 + s) / (1 - s)), or k - log2((1 + s) / (1 - s)) if `minus` is set, where s =
// n / (den / 2^62) must be below 0.172.
REE_FN ree_signed_wide ree_log2_from(i32 k, bool minus, ree_wide n, u64 den) {
    ree_wide d = ree_wide_norm(den, 1);
    ree_wide s = ree_wide_div(n, d);
    u64 f = ree_wide_fraction(s);
    ree_wide q = ree_wide_mul(s, ree_wide_norm(ree_poly_log2(u64_mulh(f, f)), 1));
    ree_signed_wide r;
    r.negative = minus;
    r.v = q;
    if (k == 0) return r;
    r.negative = k < 0;
    u32 whole = REE_U32(k < 0 ? -k : k);
    u64 part = u64_is_zero(n.m) ? n.m : ree_wide_fraction(q);
    if (r.negative != minus && !u64_is_zero(part)) {
        whole -= 1u;
        part = u64_neg(part);
    }
    if (whole == 0u) {
        r.v = ree_wide_norm(part, -1);
    } else {
        u32 z = ree_clz32(whole);
        r.v.m = u64_or(REE_U64(whole << z, 0u), u64_shr(part, 32u - z));
        r.v.e = 31 - REE_I32(z);
    }
    return r;
}

// Returns log2(a) for a > 0. If a is near 1, even a small error in a is large relative to the
// result.
REE_FN ree_signed_wide ree_log2_wide(ree_wide a) {
    bool upper = !u64_lt(a.m, REE_U64(0xB504F334u, 0u)); // sqrt(2)
    u64 one = REE_U64(0x40000000u, 0u);
    if (upper) {
        u64 m = u64_shr(a.m, 2u);
        return ree_log2_from(a.e + 1, true, ree_wide_norm(u64_sub(one, m), 1), u64_add(one, m));
    }
    u64 m = u64_shr(a.m, 1u);
    return ree_log2_from(a.e, false, ree_wide_norm(u64_sub(m, one), 1), u64_add(one, m));
}

REE_FN ree_signed_wide ree_ln_of_log2(ree_signed_wide l) {
    ree_wide c;
    c.m = REE_LN2;
    c.e = -1;
    l.v = ree_wide_mul(l.v, c);
    return l;
}
REE_FN ree_signed_wide ree_ln_wide(ree_wide a) {
    return ree_ln_of_log2(ree_log2_wide(a));
}

// Returns ln(1 + u) for u > 0, with about the relative error of u.
REE_FN ree_wide ree_ln1p_wide(ree_wide u) {
    ree_wide a = ree_wide_add(ree_wide_one(), u);
    if (a.e > 0 || !u64_lt(a.m, REE_U64(0xB504F334u, 0u))) return ree_ln_wide(a).v;
    u64 den = u64_add(REE_U64(REE_SIGN, 0u), u64_shr_any(u.m, REE_U32(1 - u.e)));
    return ree_ln_of_log2(ree_log2_from(0, false, u, den)).v;
}

REE_FN u32 ree_int_log_f32(u32 x) {
    if (ree_is_nan(x)) return REE_NAN;
    if (ree_is_zero(x)) return REE_SIGN | REE_INF;
    if ((x & REE_SIGN) != 0u) return REE_NAN;
    if (x == REE_INF) return REE_INF;
    if (x == REE_ONE) return 0u;
    ree_signed_wide r = ree_ln_wide(ree_wide_from(x));
    return ree_wide_round(r.negative ? REE_SIGN : 0u, r.v);
}

REE_FN u32 ree_int_log1p_f32(u32 x) {
    if (ree_is_nan(x)) return REE_NAN;
    bool negative = (x & REE_SIGN) != 0u;
    u32 a = x & 0x7FFFFFFFu;
    if (negative && a >= REE_ONE) return a == REE_ONE ? REE_SIGN | REE_INF : REE_NAN;
    if (a == REE_INF) return REE_INF;
    if (a < 0x32000000u) return x; // 2^-27
    // For x = 3 * (2^22 + 1) * 2^-44, the terms of x - x^2/2 + x^3/3 - x^4/4 cancel so that the
    // exact result lies only 9 * 2^-46 ulp above a tie. 64 bits do not resolve that. The proof over
    // all arguments found no other such case.
    if (x == 0x35400003u) return 0x353FFFFFu;
    ree_wide u = ree_wide_from(a);
    if (!negative) return ree_wide_round(0u, ree_ln1p_wide(u));
    if (a > 0x3E800000u) // 1 + x is exact and not near 1
        return ree_wide_round(REE_SIGN, ree_ln_wide(ree_wide_sub(ree_wide_one(), u)).v);
    u64 den = u64_sub(REE_U64(REE_SIGN, 0u), u64_shr_any(u.m, REE_U32(1 - u.e)));
    return ree_wide_round(REE_SIGN, ree_ln_of_log2(ree_log2_from(0, true, u, den)).v);
}

// asinh |x| = ln(1 + u) with u = |x| + x^2 / (1 + sqrt(1 + x^2)); the result takes the sign of x.
REE_FN u32 ree_int_asinh_f32(u32 x) {
    if (ree_is_nan(x)) return REE_NAN;
    u32 a = x & 0x7FFFFFFFu;
    if (a == REE_INF || a < 0x32000000u) return x;
    ree_wide v = ree_wide_from(a), one = ree_wide_one();
    ree_wide square = ree_wide_mul(v, v);
    ree_wide root = ree_wide_sqrt(ree_wide_add(one, square));
    ree_wide u = ree_wide_add(v, ree_wide_div(square, ree_wide_add(one, root)));
    return ree_wide_round(x & REE_SIGN, ree_ln1p_wide(u));
}

// acosh x = ln(1 + u) with u = t + sqrt(t * (t + 2)) and t = x - 1.
REE_FN u32 ree_int_acosh_f32(u32 x) {
    if (ree_is_nan(x) || (x & REE_SIGN) != 0u || x < REE_ONE) return REE_NAN;
    if (x == REE_INF) return REE_INF;
    if (x == REE_ONE) return 0u;
    ree_wide v = ree_wide_from(x), one = ree_wide_one();
    ree_wide t = ree_wide_sub(v, one);
    ree_wide u = ree_wide_add(t, ree_wide_sqrt(ree_wide_mul(t, ree_wide_add(v, one))));
    return ree_wide_round(0u, ree_ln1p_wide(u));
}

// atanh |x| = ln(1 + 2 |x| / (1 - |x|)) / 2; the result takes the sign of x.
REE_FN u32 ree_int_atanh_f32(u32 x) {
    if (ree_is_nan(x)) return REE_NAN;
    u32 a = x & 0x7FFFFFFFu;
    if (a >= REE_ONE) return a == REE_ONE ? (x & REE_SIGN) | REE_INF : REE_NAN;
    if (a < 0x32000000u) return x;
    ree_wide v = ree_wide_from(a);
    ree_wide u = ree_wide_div(v, ree_wide_sub(ree_wide_one(), v));
    u.e += 1;
    ree_wide r = ree_ln1p_wide(u);
    r.e -= 1;
    return ree_wide_round(x & REE_SIGN, r);
}

// softplus(x) = max(x, 0) + ln(1 + e^-|x|).
REE_FN u32 ree_int_softplus_f32(u32 x) {
    if (ree_is_nan(x)) return REE_NAN;
    bool negative = (x & REE_SIGN) != 0u;
    u32 a = x & 0x7FFFFFFFu;
    if (a >= REE_EXP_HUGE) return negative ? 0u : x;
    ree_wide r;
    if (a == 0u) {
        r = ree_ln1p_wide(ree_wide_one());
    } else {
        r = ree_ln1p_wide(ree_exp_wide(true, ree_unpack(a)));
        if (!negative) r = ree_wide_add(r, ree_wide_from(a));
    }
    return ree_wide_round(0u, r);
}

#endif
