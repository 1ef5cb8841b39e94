// sin, cos and tan of binary32 in float64: the operations of src/repops/scalar/fast_trig.h, in the
// same order. What fast.glsl says about fast.h applies here too.
#ifndef REE_GLSL_FAST_TRIG
#define REE_GLSL_FAST_TRIG

#include "fast.glsl"

#define REE_FAST_TWO_OVER_PI_0 REE_DOUBLE(0x3FE45F30u, 0x6D000000u)
#define REE_FAST_TWO_OVER_PI_1 REE_DOUBLE(0x3E193910u, 0x54000000u)
#define REE_FAST_TWO_OVER_PI_2 REE_DOUBLE(0x3C44FE13u, 0xAB000000u)
#define REE_FAST_TWO_OVER_PI_3 REE_DOUBLE(0x3A7D1F53u, 0x4D000000u)
#define REE_FAST_TWO_OVER_PI_4 REE_DOUBLE(0x38AB81B6u, 0xC5000000u)
#define REE_FAST_TWO_OVER_PI_5 REE_DOUBLE(0x36B5993Cu, 0x40000000u)
#define REE_FAST_TWO_OVER_PI_6 REE_DOUBLE(0x350C820Fu, 0xF2000000u)
#define REE_FAST_TWO_OVER_PI_7 REE_DOUBLE(0x333163ABu, 0xDE000000u)
#define REE_FAST_HALF_PI REE_DOUBLE(0x3FF921FBu, 0x54442D18u)

struct ReeFastAngle {
    uint quadrant;
    double r;
};
ReeFastAngle ree_fast_reduce_angle(const double x) {
    bool by_2 = x >= REE_DOUBLE(0x45200000u, 0x00000000u); // 2^83
    bool by_1 = x >= (by_2 ? REE_DOUBLE(0x46F00000u, 0x00000000u)
                           : REE_DOUBLE(0x43500000u, 0x00000000u)); // 2^112, 2^54
    double c0 = by_2 ? REE_FAST_TWO_OVER_PI_2 : REE_FAST_TWO_OVER_PI_0;
    double c1 = by_2 ? REE_FAST_TWO_OVER_PI_3 : REE_FAST_TWO_OVER_PI_1;
    double c2 = by_2 ? REE_FAST_TWO_OVER_PI_4 : REE_FAST_TWO_OVER_PI_2;
    double c3 = by_2 ? REE_FAST_TWO_OVER_PI_5 : REE_FAST_TWO_OVER_PI_3;
    double c4 = by_2 ? REE_FAST_TWO_OVER_PI_6 : REE_FAST_TWO_OVER_PI_4;
    double c5 = by_2 ? REE_FAST_TWO_OVER_PI_7 : REE_FAST_TWO_OVER_PI_5;
    precise double p0 = x * (by_1 ? c1 : c0);
    precise double p1 = x * (by_1 ? c2 : c1);
    precise double p2 = x * (by_1 ? c3 : c2);
    precise double p3 = x * (by_1 ? c4 : c3);
    precise double p4 = x * (by_1 ? c5 : c4);
    precise double fours = (p0 + REE_DOUBLE(0x43580000u, 0x00000000u)) -
                           REE_DOUBLE(0x43580000u, 0x00000000u); // 0x1.8p54
    precise double rest = p0 - fours;
    precise double shifted = (rest + p1 + p2) + REE_DOUBLE(0x43380000u, 0x00000000u); // 0x1.8p52
    precise double quadrant = shifted - REE_DOUBLE(0x43380000u, 0x00000000u);
    precise double fraction = (((rest - quadrant) + p1) + p2) + (p3 + p4);
    precise double r = fraction * REE_FAST_HALF_PI; // pi/2
    return ReeFastAngle(unpackDouble2x32(shifted).x, r);
}
double ree_fast_poly_sin(const double t) {
    precise double t2 = t * t;
    precise double even =
        ((REE_DOUBLE(0x3D6AB17Cu, 0x21ADF462u) * t2 + REE_DOUBLE(0x3E5AE645u, 0x4129F078u)) * t2 +
         REE_DOUBLE(0x3F2A01A0u, 0x1A019937u)) *
            t2 +
        REE_DOUBLE(0x3FC55555u, 0x55555555u);
    precise double odd =
        (REE_DOUBLE(0xBDE61217u, 0xEED1C04Au) * t2 + REE_DOUBLE(0xBEC71DE3u, 0xA54607FAu)) * t2 +
        REE_DOUBLE(0xBF811111u, 0x11111110u);
    precise double p = even + t * odd;
    return p;
}
double ree_fast_poly_cos(const double t) {
    precise double t2 = t * t;
    precise double even =
        ((REE_DOUBLE(0x3DA8FF9Cu, 0x1356848Du) * t2 + REE_DOUBLE(0x3E927E4Fu, 0x8E47A31Cu)) * t2 +
         REE_DOUBLE(0x3F56C16Cu, 0x16C15D77u)) *
            t2 +
        REE_DOUBLE(0x3FE00000u, 0x00000000u);
    precise double odd =
        (REE_DOUBLE(0xBE21EEA7u, 0xF055855Eu) * t2 + REE_DOUBLE(0xBEFA01A0u, 0x19DE1030u)) * t2 +
        REE_DOUBLE(0xBFA55555u, 0x55555551u);
    precise double p = even + t * odd;
    return p;
}
double ree_fast_sin_double(const double r) {
    precise double t = r * r;
    precise double y = r - r * (t * ree_fast_poly_sin(t));
    return y;
}
double ree_fast_cos_double(const double r) {
    precise double t = r * r;
    precise double y = 1.0lf - t * ree_fast_poly_cos(t);
    return y;
}
uint ree_fast_sin_of_sum(const double x, const uint n) {
    ReeFastAngle angle = ree_fast_reduce_angle(x);
    double s = ree_fast_sin_double(angle.r), c = ree_fast_cos_double(angle.r);
    uint quadrant = angle.quadrant + n;
    double y = (quadrant & 1u) != 0u ? c : s;
    return ree_narrowed(unpackDouble2x32(y)) ^ ((quadrant & 2u) << 30u);
}
uint ree_fast_sin_f32(const uint x) {
    uint a = x & 0x7FFFFFFFu, r = ree_fast_sin_of_sum(ree_widened(a), 0u);
    r = a == 0x46199998u ? 0xBEB1FA5Du : r;
    return a >= REE_INF ? REE_NAN : r ^ (x & REE_SIGN);
}
uint ree_fast_cos_f32(const uint x) {
    uint a = x & 0x7FFFFFFFu, r = ree_fast_sin_of_sum(ree_widened(a), 1u);
    r = a == 0x5922AA80u ? 0x3F08AEBFu : r;
    r = a == 0x5F18B878u ? 0x3F7F14BBu : r;
    r = a == 0x6115CB11u ? 0x3F78142Fu : r;
    return a >= REE_INF ? REE_NAN : r;
}
uint ree_fast_tan_f32(const uint x) {
    uint a = x & 0x7FFFFFFFu;
    ReeFastAngle angle = ree_fast_reduce_angle(ree_widened(a));
    double s = ree_fast_sin_double(angle.r), c = ree_fast_cos_double(angle.r);
    bool odd = (angle.quadrant & 1u) != 0u;
    precise double quotient = (odd ? c : s) / (odd ? -s : c);
    return a >= REE_INF ? REE_NAN : ree_narrowed(unpackDouble2x32(quotient)) ^ (x & REE_SIGN);
}

#define REE_SIN(x) (REE_FORM_FMA == REE_FLOAT64 ? ree_fast_sin_f32(x) : ree_int_sin_f32(x))
#define REE_COS(x) (REE_FORM_FMA == REE_FLOAT64 ? ree_fast_cos_f32(x) : ree_int_cos_f32(x))
#define REE_TAN(x) (REE_FORM_FMA == REE_FLOAT64 ? ree_fast_tan_f32(x) : ree_int_tan_f32(x))

#endif
