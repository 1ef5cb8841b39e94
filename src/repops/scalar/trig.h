// sin, cos and tan of binary32 in integer arithmetic (NUMERICS.md, section 4). The argument is
// reduced after Payne and Hanek, with 126 bits of |x| * 2/pi below the quadrant:
//
//   |x| = quadrant * pi/2 + r,  |r| <= pi/4
#ifndef REE_SCALAR_TRIG_H
#define REE_SCALAR_TRIG_H

#include "repops/scalar/wide.h"

struct ree_angle {
    u32 quadrant;  // modulo 4
    bool negative; // the angle that remains is negative
    ree_wide r;    // absolute value of the angle that remains, at most pi/4
};
REE_TYPEDEF(ree_angle)

// Splits the angle |x| into quadrants of pi/2 and a remaining angle from -pi/4 to pi/4. a: bits of
// |x|, a positive finite float.
REE_FN ree_angle ree_reduce_angle(u32 a) {
    ree_angle r;
    r.quadrant = 0u;
    r.negative = false;
    if (a <= 0x3F490FDAu) { // below pi/4
        r.r = ree_wide_from(a);
        return r;
    }
    // |x| = u.m * 2^(u.e - 23). In |x| * 2/pi, the bits of 2/pi worth 4 / 2^(u.e - 23) or more add
    // only multiples of 4. So u.m is multiplied by the 128 bits of 2/pi below them, and the low 128
    // bits of the product are |x| * 2/pi modulo 4, with 126 bits below the binary point.
    ree_unpacked u = ree_unpack(a);
    u32 first = REE_U32(u.e + 7), word = first >> 5u, n = first & 31u;
    u32 w3 = REE_TWO_OVER_PI[word], w2 = REE_TWO_OVER_PI[word + 1u];
    u32 w1 = REE_TWO_OVER_PI[word + 2u], w0 = REE_TWO_OVER_PI[word + 3u];
    u32 below = REE_TWO_OVER_PI[word + 4u];
    if (n != 0u) {
        w3 = (w3 << n) | (w2 >> (32u - n));
        w2 = (w2 << n) | (w1 >> (32u - n));
        w1 = (w1 << n) | (w0 >> (32u - n));
        w0 = (w0 << n) | (below >> (32u - n));
    }
    u64 p = u64_mul32(u.m, w0);
    u32 y0 = u64_lo(p);
    p = u64_add(u64_mul32(u.m, w1), u64_from32(u64_hi(p)));
    u32 y1 = u64_lo(p);
    p = u64_add(u64_mul32(u.m, w2), u64_from32(u64_hi(p)));
    u32 y2 = u64_lo(p), y3 = u.m * w3 + u64_hi(p);
    r.quadrant = y3 >> 30u;
    u64 high = REE_U64((y3 << 2u) | (y2 >> 30u), (y2 << 2u) | (y1 >> 30u));
    u64 low = REE_U64((y1 << 2u) | (y0 >> 30u), y0 << 2u);
    if ((u64_hi(high) & REE_SIGN) != 0u) { // |x| is nearer to the next quadrant
        r.quadrant = (r.quadrant + 1u) & 3u;
        r.negative = true;
        high = u64_not(high);
        low = u64_neg(low);
    }
    // The distance of a float from a multiple of pi/2 is at least about 2^-30, so `high` is not 0.
    u32 z = u64_clz(high) & 63u;
    ree_wide f, c;
    f.m = z == 0u ? high : u64_or(u64_shl(high, z), u64_shr(low, 64u - z));
    f.e = -1 - REE_I32(z);
    c.m = REE_HALF_PI;
    c.e = 0;
    r.r = ree_wide_mul(f, c);
    return r;
}
REE_FN u64 ree_wide_square_fraction(ree_wide a) {
    u64 f = ree_wide_fraction(a);
    return u64_mulh(f, f);
}
// sin r = r - r * (t * p(t)) with t = r^2 and a polynomial p.
REE_FN ree_wide ree_sin_wide(ree_wide r) {
    u64 t = ree_wide_square_fraction(r);
    return ree_wide_norm(u64_sub(r.m, u64_mulh(r.m, u64_mulh(t, ree_poly_sin(t)))), r.e);
}
// cos r = 1 - t * p(t) with t = r^2 and a polynomial p.
REE_FN ree_wide ree_cos_wide(ree_wide r) {
    u64 t = ree_wide_square_fraction(r);
    u64 h = u64_shr(u64_mulh(t, ree_poly_cos(t)), 1u);
    return ree_wide_norm(u64_sub(REE_U64(REE_SIGN, 0u), h), 0);
}

REE_FN u32 ree_int_sin_f32(u32 x) {
    u32 a = x & 0x7FFFFFFFu;
    if (a >= REE_INF) return REE_NAN;
    if (a < 0x32000000u) return x; // 2^-27
    ree_angle r = ree_reduce_angle(a);
    u32 sign = x & REE_SIGN;
    if (r.quadrant >= 2u) sign ^= REE_SIGN;
    if ((r.quadrant & 1u) != 0u) return ree_wide_round(sign, ree_cos_wide(r.r));
    if (r.negative) sign ^= REE_SIGN;
    return ree_wide_round(sign, ree_sin_wide(r.r));
}

REE_FN u32 ree_int_cos_f32(u32 x) {
    u32 a = x & 0x7FFFFFFFu;
    if (a >= REE_INF) return REE_NAN;
    if (a < 0x32000000u) return REE_ONE;
    ree_angle r = ree_reduce_angle(a);
    u32 sign = r.quadrant == 1u || r.quadrant == 2u ? REE_SIGN : 0u;
    if ((r.quadrant & 1u) == 0u) return ree_wide_round(sign, ree_cos_wide(r.r));
    if (r.negative) sign ^= REE_SIGN;
    return ree_wide_round(sign, ree_sin_wide(r.r));
}

REE_FN u32 ree_int_tan_f32(u32 x) {
    u32 a = x & 0x7FFFFFFFu;
    if (a >= REE_INF) return REE_NAN;
    if (a < 0x32000000u) return x;
    ree_angle r = ree_reduce_angle(a);
    u32 sign = x & REE_SIGN;
    if (r.negative) sign ^= REE_SIGN;
    ree_wide s = ree_sin_wide(r.r), c = ree_cos_wide(r.r);
    if ((r.quadrant & 1u) != 0u) return ree_wide_round(sign ^ REE_SIGN, ree_wide_div(c, s));
    return ree_wide_round(sign, ree_wide_div(s, c));
}

#endif
