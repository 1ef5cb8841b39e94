// sin, cos and tan of binary32 in double arithmetic, for C and CUDA C; no branches and no tables,
// as in fast.h. REE_EXCEPT corrects a few results that lie very near to a tie; ree-prove found
// them.
#ifndef REE_SCALAR_FAST_TRIG_H
#define REE_SCALAR_FAST_TRIG_H

#include <stdbool.h>

#include "repops/scalar/fast.h"
#include "repops/scalar/fast_trig.inc"

struct ree_fast_angle {
    uint64_t quadrant; // modulo 4; higher bits are arbitrary
    double r;          // the angle that remains, from -pi/4 to pi/4 and a little beyond
};
// Splits the angle x into quadrants of pi/2 and a remaining angle. x must be a positive float or
// zero; infinities and NaN give an arbitrary result.
//
// A float has 24 bits and a piece of 2/pi 29, so their product is exact. If x is a multiple of
// 2^(29 i + 2), its products with the first i pieces are multiples of 4, which do not matter. All
// floats from 2^(29 i + 25) on are such multiples; here i is 2 * by_2 + by_1. Five pieces after
// these give x * 2/pi with an error below 2^-91. That is enough: the distance of a float from a
// multiple of pi/2 other than 0 is at least about 2^-30. Below pi/4 the error is relative to x.
REE_FN struct ree_fast_angle ree_fast_reduce_angle(double x) {
    bool by_2 = x >= 0x1p83, by_1 = x >= (by_2 ? 0x1p112 : 0x1p54);
    double c0 = by_2 ? REE_FAST_TWO_OVER_PI_2 : REE_FAST_TWO_OVER_PI_0;
    double c1 = by_2 ? REE_FAST_TWO_OVER_PI_3 : REE_FAST_TWO_OVER_PI_1;
    double c2 = by_2 ? REE_FAST_TWO_OVER_PI_4 : REE_FAST_TWO_OVER_PI_2;
    double c3 = by_2 ? REE_FAST_TWO_OVER_PI_5 : REE_FAST_TWO_OVER_PI_3;
    double c4 = by_2 ? REE_FAST_TWO_OVER_PI_6 : REE_FAST_TWO_OVER_PI_4;
    double c5 = by_2 ? REE_FAST_TWO_OVER_PI_7 : REE_FAST_TWO_OVER_PI_5;
    double p0 = x * (by_1 ? c1 : c0);
    double p1 = x * (by_1 ? c2 : c1);
    double p2 = x * (by_1 ? c3 : c2);
    double p3 = x * (by_1 ? c4 : c3);
    double p4 = x * (by_1 ? c5 : c4);
    double fours = (p0 + 0x1.8p54) - 0x1.8p54; // a multiple of 4 near p0
    double rest = p0 - fours;                  // exact
    struct ree_fast_angle angle;
    double shifted = (rest + p1 + p2) + 0x1.8p52; // the low bits of this double are the quadrant
    double quadrant = shifted - 0x1.8p52;
    // rest - quadrant is exact. A later sum is exact too, or not much smaller than its operands.
    double fraction = (((rest - quadrant) + p1) + p2) + (p3 + p4);
    angle.quadrant = ree_double_bits(shifted);
    angle.r = fraction * REE_FAST_HALF_PI;
    return angle;
}
REE_FN double ree_fast_sin_double(double r) {
    double t = r * r;
    return r - r * (t * ree_fast_poly_sin(t));
}
REE_FN double ree_fast_cos_double(double r) {
    double t = r * r;
    return 1.0 - t * ree_fast_poly_cos(t);
}
// Returns the bits of sin(x + n * pi/2), rounded to a float; x as for ree_fast_reduce_angle.
REE_FN uint32_t ree_fast_sin_of_sum(double x, uint64_t n) {
    struct ree_fast_angle angle = ree_fast_reduce_angle(x);
    double s = ree_fast_sin_double(angle.r), c = ree_fast_cos_double(angle.r);
    uint64_t quadrant = angle.quadrant + n;
    uint64_t sign = (quadrant & 2u) << 62; // negative in quadrants 2 and 3
    double y = (quadrant & 1u) != 0u ? c : s;
    return ree_bits((float)ree_from_double_bits(ree_double_bits(y) ^ sign));
}

REE_FN uint32_t ree_fast_sin_f32(uint32_t x) {
    uint32_t a = x & 0x7FFFFFFFu, r = ree_fast_sin_of_sum(ree_float(a), 0u);
    r = REE_EXCEPT(a, 0x46199998u, 0xBEB1FA5Du, r);
    return a >= REE_INF ? REE_NAN : r ^ (x & REE_SIGN);
}
REE_FN uint32_t ree_fast_cos_f32(uint32_t x) {
    uint32_t a = x & 0x7FFFFFFFu, r = ree_fast_sin_of_sum(ree_float(a), 1u);
    r = REE_EXCEPT(a, 0x5922AA80u, 0x3F08AEBFu, r);
    r = REE_EXCEPT(a, 0x5F18B878u, 0x3F7F14BBu, r);
    r = REE_EXCEPT(a, 0x6115CB11u, 0x3F78142Fu, r);
    return a >= REE_INF ? REE_NAN : r;
}
// tan x = sin r / cos r in even quadrants, -cos r / sin r in odd ones.
REE_FN uint32_t ree_fast_tan_f32(uint32_t x) {
    uint32_t a = x & 0x7FFFFFFFu;
    struct ree_fast_angle angle = ree_fast_reduce_angle(ree_float(a));
    double s = ree_fast_sin_double(angle.r), c = ree_fast_cos_double(angle.r);
    bool odd = (angle.quadrant & 1u) != 0u;
    uint32_t bits = ree_bits((float)((odd ? c : s) / (odd ? -s : c)));
    return a >= REE_INF ? REE_NAN : bits ^ (x & REE_SIGN);
}

#endif
