// exp, expm1, sinh, cosh, tanh and sigmoid of binary32 in integer arithmetic (NUMERICS.md, section
// 4). k is an integer, 0 <= f < 1, and p is a polynomial:
//
//   e^x = 2^k * 2^f,  k + f = x * log2(e),  2^f = 1 + f * p(f)
#ifndef REE_SCALAR_EXP_H
#define REE_SCALAR_EXP_H

#include "repops/scalar/wide.h"

// Returns 2^(k + f / 2^64).
REE_FN ree_wide ree_exp2_wide(i32 k, u64 f) {
    ree_wide r;
    r.m = u64_or(REE_U64(REE_SIGN, 0u), u64_shr(u64_mulh(f, ree_poly_exp2(f)), 1u));
    r.e = k;
    return r;
}

// Returns e^x, or e^-x if `negative` is set, for x = x.m * 2^(x.e - 23) as ree_unpack returns it.
// x.e must be below 8. Near a result of 1 the absolute error is 2^-62.
REE_FN ree_wide ree_exp_wide(bool negative, ree_unpacked x) {
    if (x.e < -60) return ree_wide_one();
    // |x| * log2(e) = t * 2^(x.e - 62); the low word of `low` has the 32 bits below t.
    u32 m = x.m << 8u;
    u64 low = u64_add(u64_mul32(m, REE_LOG2E_1), u64_from32(u64_hi(u64_mul32(m, REE_LOG2E_2))));
    u64 t = u64_add(u64_mul32(m, REE_LOG2E_0), u64_from32(u64_hi(low)));
    i32 k = 0;
    u64 f;
    if (x.e >= -2) {
        u32 n = REE_U32(x.e + 2); // number of bits of t above the binary point
        if (n != 0u) k = REE_I32(u64_lo(u64_shr(t, 64u - n)));
        f = u64_shl(t, n);
        if (n != 0u) f = u64_or(f, u64_from32(u64_lo(low) >> (32u - n)));
    } else {
        f = u64_shr(t, REE_U32(-2 - x.e));
    }
    if (negative) {
        k = u64_is_zero(f) ? -k : -k - 1;
        f = u64_neg(f);
    }
    return ree_exp2_wide(k, f);
}

// Bits of the float 105. If |x| is 105 or more, e^|x| rounds to infinity and e^-|x| to 0.
#define REE_EXP_HUGE 0x42D20000u // 105

REE_FN u32 ree_int_exp_f32(u32 x) {
    if (ree_is_nan(x)) return REE_NAN;
    bool negative = (x & REE_SIGN) != 0u;
    u32 a = x & 0x7FFFFFFFu;
    if (a >= REE_EXP_HUGE) return negative ? 0u : REE_INF;
    if (a < 0x32000000u) return REE_ONE; // 2^-27
    return ree_wide_round(0u, ree_exp_wide(negative, ree_unpack(x)));
}

// Returns |e^x - 1|, or |e^-x - 1| if `negative` is set, with a relative error of 2^-61. x is the
// same as for ree_exp_wide.
REE_FN ree_wide ree_expm1_wide(bool negative, ree_unpacked x) {
    ree_wide a;
    a.m = REE_U64(x.m << 8u, 0u);
    a.e = x.e;
    if (x.e < -2) { // |x| < 1/4: x + x * (x * p(x)), p a polynomial
        u64 t = ree_wide_fraction(a), h;
        if (negative) {
            h = u64_mulh(a.m, u64_mulh(t, ree_poly_expm1n(t)));
            return ree_wide_norm(u64_sub(a.m, h), a.e);
        }
        h = u64_mulh(a.m, u64_mulh(t, ree_poly_expm1(t)));
        return ree_wide_norm(u64_add(u64_shr(a.m, 1u), u64_shr(h, 1u)), a.e + 1);
    }
    ree_wide y = ree_exp_wide(negative, x);
    return negative ? ree_wide_sub(ree_wide_one(), y) : ree_wide_sub(y, ree_wide_one());
}

REE_FN u32 ree_int_expm1_f32(u32 x) {
    if (ree_is_nan(x)) return REE_NAN;
    bool negative = (x & REE_SIGN) != 0u;
    u32 a = x & 0x7FFFFFFFu;
    if (a >= REE_EXP_HUGE) return negative ? REE_SIGN | REE_ONE : REE_INF;
    if (a < 0x32000000u) return x; // 2^-27
    return ree_wide_round(x & REE_SIGN, ree_expm1_wide(negative, ree_unpack(x)));
}

// sinh |x| = (v + v / (v + 1)) / 2 with v = e^|x| - 1; the result takes the sign of x.
REE_FN u32 ree_int_sinh_f32(u32 x) {
    if (ree_is_nan(x)) return REE_NAN;
    u32 a = x & 0x7FFFFFFFu;
    if (a >= REE_EXP_HUGE) return (x & REE_SIGN) | REE_INF;
    if (a < 0x32000000u) return x;
    ree_wide v = ree_expm1_wide(false, ree_unpack(a));
    ree_wide r = ree_wide_add(v, ree_wide_div(v, ree_wide_add(v, ree_wide_one())));
    r.e -= 1;
    return ree_wide_round(x & REE_SIGN, r);
}

// cosh x = (v + 1 / v) / 2 with v = e^|x|.
REE_FN u32 ree_int_cosh_f32(u32 x) {
    if (ree_is_nan(x)) return REE_NAN;
    u32 a = x & 0x7FFFFFFFu;
    if (a >= REE_EXP_HUGE) return REE_INF;
    if (a < 0x32000000u) return REE_ONE;
    ree_wide v = ree_exp_wide(false, ree_unpack(a));
    ree_wide r = ree_wide_add(v, ree_wide_div(ree_wide_one(), v));
    r.e -= 1;
    return ree_wide_round(0u, r);
}

// tanh |x| = v / (v + 2) with v = e^(2 |x|) - 1; the result takes the sign of x.
REE_FN u32 ree_int_tanh_f32(u32 x) {
    if (ree_is_nan(x)) return REE_NAN;
    u32 a = x & 0x7FFFFFFFu;
    if (a >= 0x41200000u) return (x & REE_SIGN) | REE_ONE; // 10
    if (a < 0x32000000u) return x;
    ree_unpacked u = ree_unpack(a);
    u.e += 1;
    ree_wide v = ree_expm1_wide(false, u), two = ree_wide_one();
    two.e = 1;
    return ree_wide_round(x & REE_SIGN, ree_wide_div(v, ree_wide_add(v, two)));
}

// With t = e^-|x|, sigmoid(x) = t / (1 + t) for x < 0 and 1 / (1 + t) for x > 0.
REE_FN u32 ree_int_sigmoid_f32(u32 x) {
    if (ree_is_nan(x)) return REE_NAN;
    bool negative = (x & REE_SIGN) != 0u;
    u32 a = x & 0x7FFFFFFFu;
    if (a >= REE_EXP_HUGE) return negative ? 0u : REE_ONE;
    if (a < 0x32000000u) return 0x3F000000u;
    ree_unpacked u = ree_unpack(a);
    if (u.e < -12) {
        // sigmoid(x) = 1/2 + x/4 - x^3/48 + ... is very near to 1/2 + x/4, which may be a tie. The
        // cubic term then decides the rounding, but only by its sign. So x/4 is moved slightly
        // towards 0.
        ree_wide q = ree_wide_from(a), middle = ree_wide_one();
        middle.e = -1;
        q.e -= 2;
        q.m = u64_sub(q.m, REE_U64(0u, 0x1000u));
        return ree_wide_round(0u, negative ? ree_wide_sub(middle, q) : ree_wide_add(middle, q));
    }
    ree_wide t = ree_exp_wide(true, u), one = ree_wide_one();
    return ree_wide_round(0u, ree_wide_div(negative ? t : one, ree_wide_add(one, t)));
}

#endif
