// The elementary functions that models spend their time in, in double arithmetic without branches
// or tables, so that loops over arrays of them vectorise. C only. The operations are exactly those
// written (no contraction), which makes the doubles, and the proof, the same on every processor.
//
// Errors stay near one unit of 2^-53, so that a float result is wrong only for the few arguments
// whose exact result lies that near to a tie; the exhaustive proof names them, and they are
// exceptions (exceptions.h).
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
// The bits of a result, any NaN as 0x7FC00000.
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
#define REE_EXCEPT(x, argument, result, r) ((x) == (argument) ? (result) : (r))

// e^x = 2^k * (1 + p), k = round(x / ln 2).
struct ree_fast_exp {
    uint64_t k; // times 2^52, modulo 2^64: to be added to the bits of a double
    double p;
};
// |x| up to 700.
REE_FN struct ree_fast_exp ree_fast_exp_parts(double x) {
    double shifted = x * REE_FAST_LOG2E + 0x1.8p52; // k in the low bits
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
// 2^k * p + (2^k - 1)
REE_FN double ree_fast_expm1_double(double x) {
    struct ree_fast_exp e = ree_fast_exp_parts(x);
    double scale = ree_from_double_bits(ree_double_bits(1.0) + e.k);
    return scale * e.p + (scale - 1.0);
}
// A NaN passes through both.
REE_FN double ree_fast_clamp(double x, double bound) {
    x = x > bound ? bound : x;
    return x < -bound ? -bound : x;
}
// The double as a float result for the argument x.
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
    // The sum above gives +0 for -0.
    double y = ree_fast_copysign(ree_fast_expm1_double(ree_fast_clamp(v, 110.0)), v);
    return ree_fast_round(x, y);
}

// v / (v + 2), v = e^(2 |x|) - 1
REE_FN uint32_t ree_fast_tanh_f32(uint32_t x) {
    double d = ree_float(x);
    double v = ree_fast_expm1_double(ree_fast_clamp(2.0 * ree_fast_abs(d), 40.0));
    return ree_fast_round(x, ree_fast_copysign(v / (v + 2.0), d));
}

// 1 / (1 + e^-x). Near 0 it is 1/2 + x/4 - x^3/48 + ..., and 1/2 + x/4 may be a tie: there the
// factor of x/4 stays below 1 by so much that the cubic term shows in a double.
REE_FN uint32_t ree_fast_sigmoid_f32(uint32_t x) {
    double v = ree_float(x);
    double y = 1.0 / (1.0 + ree_fast_exp_double(ree_fast_clamp(-v, 110.0)));
    double near = 0.5 + v * (0.25 - 0x1p-30);
    return ree_fast_round(x, ree_fast_abs(v) < 0x1p-12 ? near : y);
}

// ln(1 + t) for t in [0, 1]: 2 artanh(s), s = t / (2 + t), or with ln 2 added and 1 + t halved.
REE_FN double ree_fast_log1p_unit(double t) {
    int upper = t > 0.41421356237309503;
    double n = upper ? t - 1.0 : t, d = upper ? t + 3.0 : t + 2.0;
    double s = n / d, z = s * s;
    double y = s * z * ree_fast_poly_log(z) + (upper ? REE_FAST_LN2_LOW : 0.0);
    return (y + 2.0 * s) + (upper ? REE_FAST_LN2_HIGH : 0.0);
}
// max(x, 0) + ln(1 + e^-|x|)
REE_FN uint32_t ree_fast_softplus_f32(uint32_t x) {
    double v = ree_float(x);
    double t = ree_fast_exp_double(ree_fast_clamp(-ree_fast_abs(v), 110.0));
    return ree_fast_round(x, ree_fast_log1p_unit(t) + (v > 0.0 ? v : 0.0));
}

// k * ln 2 + 2 artanh(s), s = (m - 1) / (m + 1), x = 2^k * m, m in [sqrt(1/2), sqrt(2))
REE_FN uint32_t ree_fast_log_f32(uint32_t x) {
    // The double's exponent, counted from sqrt(1/2); as an integer in a double without conversion.
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

// |x| < 1: x * p(x^2); else 1 - e^(-x^2) * q((|x| - 5/2) / (|x| + 5/2))
REE_FN uint32_t ree_fast_erf_f32(uint32_t x) {
    double d = ree_float(x), v = ree_fast_abs(d);
    v = v > 4.0 ? 4.0 : v;
    double square = v * v;
    double tail = ree_fast_exp_double(-square) * ree_fast_poly_erfc((v - 2.5) / (v + 2.5));
    double y = v < 1.0 ? v * ree_fast_poly_erf(square) : 1.0 - tail;
    return ree_fast_round(x, ree_fast_copysign(y, d));
}

#endif
