// The elementary functions of binary32 that models use most, in double arithmetic, for C and CUDA
// C. They have no branches and no tables, so that loops over arrays vectorise. Compile without
// contraction: then the double results, and with them the proof, are the same on every processor.
//
// The relative error of the double results is near 2^-53. So a float result is wrong only for the
// few arguments whose exact result lies that near to a tie. The exhaustive proof finds these
// arguments, and exceptions.h corrects them.
#ifndef REE_SCALAR_FAST_H
#define REE_SCALAR_FAST_H

#include "repops/scalar/lang.h"

#include <math.h>
#include <string.h>

#include "repops/scalar/fast.inc"

REE_FN float ree_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
REE_FN uint32_t ree_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
// Returns the bits of x; 0x7FC00000 for any NaN.
REE_FN uint32_t ree_result(float x) {
    uint32_t bits = ree_bits(x);
    return x != x ? REE_NAN : bits;
}
REE_FN uint64_t ree_double_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
REE_FN double ree_from_double_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
// `result` if x is `argument`, otherwise r. C uses no conditions: GCC makes a switch of a chain of
// them, and loops with a switch do not vectorise.
#ifdef __CUDACC__
#define REE_EXCEPT(x, argument, result, r) ((x) == (argument) ? (result) : (r))
#else
#define REE_EXCEPT(x, argument, result, r)                                                         \
    ((r) ^ (((r) ^ (result)) & (0u - (uint32_t)((x) == (argument)))))
#endif

// e^x as 2^K * (1 + p), where K is x / ln 2 rounded to an integer.
struct ree_fast_exp {
    uint64_t k; // K * 2^52 modulo 2^64; adding it to the bits of a double multiplies by 2^K
    double p;
};
// Returns the parts of e^x. |x| must be at most 700.
REE_FN struct ree_fast_exp ree_fast_exp_parts(double x) {
    double shifted = x * REE_FAST_LOG2E + 0x1.8p52; // the low bits of this double are K
    double k = shifted - 0x1.8p52;
    double r = (x - k * REE_FAST_LN2_HIGH) - k * REE_FAST_LN2_LOW;
    struct ree_fast_exp e;
    e.k = ree_double_bits(shifted) << 52;
    e.p = r + r * r * ree_fast_poly_exp(r);
    return e;
}
REE_FN double ree_fast_exp_double(double x) {
    struct ree_fast_exp e = ree_fast_exp_parts(x);
    return ree_from_double_bits(ree_double_bits(1.0 + e.p) + e.k);
}
// Returns e^x - 1, computed as 2^K * p + (2^K - 1) (struct ree_fast_exp).
REE_FN double ree_fast_expm1_double(double x) {
    struct ree_fast_exp e = ree_fast_exp_parts(x);
    double scale = ree_from_double_bits(ree_double_bits(1.0) + e.k);
    return scale * e.p + (scale - 1.0);
}
// Limits x to [-bound, bound]; returns a NaN unchanged.
REE_FN double ree_fast_clamp(double x, double bound) {
    x = x > bound ? bound : x;
    return x < -bound ? -bound : x;
}
// Returns the bits of y rounded to a float; 0x7FC00000 if x, the bits of the argument, is a NaN.
REE_FN uint32_t ree_fast_round(uint32_t x, double y) {
    uint32_t bits = ree_bits((float)y);
    return (x & 0x7FFFFFFFu) > REE_INF ? REE_NAN : bits;
}
REE_FN double ree_fast_abs(double x) {
    return ree_from_double_bits(ree_double_bits(x) & 0x7FFFFFFFFFFFFFFFu);
}
REE_FN double ree_fast_copysign(double x, double sign) {
    return ree_from_double_bits((ree_double_bits(x) & 0x7FFFFFFFFFFFFFFFu) |
                                (ree_double_bits(sign) & 0x8000000000000000u));
}

REE_FN uint32_t ree_fast_exp_f32(uint32_t x) {
    return ree_fast_round(x, ree_fast_exp_double(ree_fast_clamp(ree_float(x), 110.0)));
}

REE_FN uint32_t ree_fast_expm1_f32(uint32_t x) {
    double v = ree_float(x);
    // ree_fast_expm1_double gives +0 for -0, so the sign is copied.
    double y = ree_fast_copysign(ree_fast_expm1_double(ree_fast_clamp(v, 110.0)), v);
    return ree_fast_round(x, y);
}

// tanh |x| = v / (v + 2) with v = e^(2 |x|) - 1; the result takes the sign of x.
REE_FN uint32_t ree_fast_tanh_f32(uint32_t x) {
    double d = ree_float(x);
    double v = ree_fast_expm1_double(ree_fast_clamp(2.0 * ree_fast_abs(d), 40.0));
    return ree_fast_round(x, ree_fast_copysign(v / (v + 2.0), d));
}

// sigmoid(x) = 1 / (1 + e^-x). Near 0 it is 1/2 + x/4 - x^3/48 + ..., and 1/2 + x/4 may be a tie.
// The cubic term then decides the rounding, but only by its sign. So for |x| < 2^-12 the code uses
// a factor slightly below 1/4.
REE_FN uint32_t ree_fast_sigmoid_f32(uint32_t x) {
    double v = ree_float(x);
    double y = 1.0 / (1.0 + ree_fast_exp_double(ree_fast_clamp(-v, 110.0)));
    double near = 0.5 + v * (0.25 - 0x1p-30);
    return ree_fast_round(x, ree_fast_abs(v) < 0x1p-12 ? near : y);
}

// Returns ln(1 + t) for t in [0, 1], computed as 2 artanh(s) with s = t / (2 + t). If 1 + t is
// above sqrt(2), it is halved, which gives s = (t - 1) / (t + 3), and ln 2 is added.
REE_FN double ree_fast_log1p_unit(double t) {
    int upper = t > 0.41421356237309503;
    double n = upper ? t - 1.0 : t, d = upper ? t + 3.0 : t + 2.0;
    double s = n / d, z = s * s;
    double y = s * z * ree_fast_poly_log(z) + (upper ? REE_FAST_LN2_LOW : 0.0);
    return (y + 2.0 * s) + (upper ? REE_FAST_LN2_HIGH : 0.0);
}
// softplus(x) = max(x, 0) + ln(1 + e^-|x|).
REE_FN uint32_t ree_fast_softplus_f32(uint32_t x) {
    double v = ree_float(x);
    double t = ree_fast_exp_double(ree_fast_clamp(-ree_fast_abs(v), 110.0));
    return ree_fast_round(x, ree_fast_log1p_unit(t) + (v > 0.0 ? v : 0.0));
}

// ln x = k * ln 2 + 2 artanh(s) with s = (m - 1) / (m + 1), where x = 2^k * m with an integer k and
// m in [sqrt(1/2), sqrt(2)).
REE_FN uint32_t ree_fast_log_f32(uint32_t x) {
    // biased = k + 1023: the exponent field of the double after a shift of its bits that makes
    // significands begin at sqrt(1/2) instead of 1. k becomes a double without a conversion: the
    // bits of 2^52 with biased in the lowest bits are the double 2^52 + biased.
    uint64_t bits = ree_double_bits((double)ree_float(x));
    uint64_t shifted = bits - 0x3FE6A09E667F3BCDu + 0x3FF0000000000000u;
    uint64_t biased = (shifted >> 52) & 0xFFFu;
    double k = ree_from_double_bits(biased | 0x4330000000000000u) - (0x1p52 + 1023.0);
    double m = ree_from_double_bits(bits - ((biased - 1023u) << 52));
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double y = (s * z * ree_fast_poly_log(z) + k * REE_FAST_LN2_LOW) + 2.0 * s;
    uint32_t r = ree_bits((float)(y + k * REE_FAST_LN2_HIGH));
    r = x == REE_INF ? REE_INF : r;
    r = (x << 1) == 0u ? REE_INF | REE_SIGN : r;
    return (x > REE_INF && x != REE_SIGN) ? REE_NAN : r;
}

REE_FN uint32_t ree_fast_rsqrt_f32(uint32_t x) {
    return ree_result((float)(1.0 / sqrt((double)ree_float(x))));
}

// With polynomials p and q: erf |x| = |x| * p(x^2) for |x| < 1, otherwise
// 1 - e^(-x^2) * q((|x| - 5/2) / (|x| + 5/2)). From |x| = 4 on, |x| is taken as 4.
REE_FN uint32_t ree_fast_erf_f32(uint32_t x) {
    double d = ree_float(x), v = ree_fast_abs(d);
    v = v > 4.0 ? 4.0 : v;
    double square = v * v;
    double tail = ree_fast_exp_double(-square) * ree_fast_poly_erfc((v - 2.5) / (v + 2.5));
    double y = v < 1.0 ? v * ree_fast_poly_erf(square) : 1.0 - tail;
    return ree_fast_round(x, ree_fast_copysign(y, d));
}

#endif
