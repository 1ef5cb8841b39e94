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
    // Words `word` to `word` + 4 of the table; `word` is at most 4. Drivers copy a table that is
    // indexed by a variable into each thread's memory.
    bool by_4 = (word & 4u) != 0u, by_2 = (word & 2u) != 0u, by_1 = (word & 1u) != 0u;
    u32 t0 = by_2 ? REE_TWO_OVER_PI[2] : REE_TWO_OVER_PI[0];
    u32 t1 = by_2 ? REE_TWO_OVER_PI[3] : REE_TWO_OVER_PI[1];
    u32 t2 = by_2 ? REE_TWO_OVER_PI[4] : REE_TWO_OVER_PI[2];
    u32 t3 = by_2 ? REE_TWO_OVER_PI[5] : REE_TWO_OVER_PI[3];
    u32 t4 = by_2 ? REE_TWO_OVER_PI[6] : REE_TWO_OVER_PI[4];
    u32 t5 = by_2 ? REE_TWO_OVER_PI[7] : REE_TWO_OVER_PI[5];
    u32 w3 = by_4 ? REE_TWO_OVER_PI[4] : by_1 ? t1 : t0;
    u32 w2 = by_4 ? REE_TWO_OVER_PI[5] : by_1 ? t2 : t1;
    u32 w1 = by_4 ? REE_TWO_OVER_PI[6] : by_1 ? t3 : t2;
    u32 w0 = by_4 ? REE_TWO_OVER_PI[7] : by_1 ? t4 : t3;
    u32 below = by_4 ? REE_TWO_OVER_PI[8] : by_1 ? t5 : t4;
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
// With t = r^2 and two polynomials p: sin r = r - r * (t * p(t)), cos r = 1 - t * p(t). One
// function for both, because compilers for GPUs inline each call.
REE_FN ree_wide ree_trig_wide(ree_wide r, bool cosine) {
    u64 t = ree_wide_square_fraction(r), p;
    if (cosine)
        p = ree_poly_cos(t);
    else
        p = ree_poly_sin(t);
    p = u64_mulh(t, p);
    u64 from = cosine ? REE_U64(REE_SIGN, 0u) : r.m;
    u64 less = cosine ? u64_shr(p, 1u) : u64_mulh(r.m, p);
    return ree_wide_norm(u64_sub(from, less), cosine ? 0 : r.e);
}

REE_FN u32 ree_int_sin_f32(u32 x) {
    u32 a = x & 0x7FFFFFFFu;
    if (a >= REE_INF) return REE_NAN;
    if (a < 0x32000000u) return x; // 2^-27
    ree_angle r = ree_reduce_angle(a);
    bool cosine = (r.quadrant & 1u) != 0u;
    bool negative = (r.quadrant >= 2u) != (r.negative && !cosine);
    u32 sign = (x & REE_SIGN) ^ (negative ? REE_SIGN : 0u);
    return ree_wide_round(sign, ree_trig_wide(r.r, cosine));
}

REE_FN u32 ree_int_cos_f32(u32 x) {
    u32 a = x & 0x7FFFFFFFu;
    if (a >= REE_INF) return REE_NAN;
    if (a < 0x32000000u) return REE_ONE;
    ree_angle r = ree_reduce_angle(a);
    bool cosine = (r.quadrant & 1u) == 0u;
    bool negative = (r.quadrant == 1u || r.quadrant == 2u) != (r.negative && !cosine);
    return ree_wide_round(negative ? REE_SIGN : 0u, ree_trig_wide(r.r, cosine));
}

REE_FN u32 ree_int_tan_f32(u32 x) {
    u32 a = x & 0x7FFFFFFFu;
    if (a >= REE_INF) return REE_NAN;
    if (a < 0x32000000u) return x;
    ree_angle r = ree_reduce_angle(a);
    u32 sign = x & REE_SIGN;
    if (r.negative) sign ^= REE_SIGN;
    ree_wide s = ree_trig_wide(r.r, false), c = ree_trig_wide(r.r, true);
    if ((r.quadrant & 1u) != 0u) return ree_wide_round(sign ^ REE_SIGN, ree_wide_div(c, s));
    return ree_wide_round(sign, ree_wide_div(s, c));
}

#endif
