// pow of binary32 for the exponents that models use most, for C and CUDA C: faster than
// ree_int_pow_f32, with the same bits.
#ifndef REE_SCALAR_FAST_POW_H
#define REE_SCALAR_FAST_POW_H

#include <stdbool.h>

#include "repops/scalar/fast.h"

// Returns x^3, rounded once. x^2 is exact in a double. Its two halves times x are exact too; their
// sum is rounded to odd, so that the final rounding to float gives the same result as a single
// rounding.
REE_FN uint32_t ree_fast_cube_f32(uint32_t x) {
    double v = ree_float(x), square = v * v;
    double high = ree_from_double_bits(ree_double_bits(square) & 0xFFFFFFFFE0000000u); // 24 bits
    double a = high * v, b = (square - high) * v, sum = a + b, lost = (a - sum) + b;
    uint64_t bits = ree_double_bits(sum);
    bool inexact = lost != 0.0 && lost == lost, above = inexact && (lost < 0.0) != (sum < 0.0);
    bits = (bits - (above ? 1u : 0u)) | (inexact ? 1u : 0u);
    uint32_t r = ree_result((float)ree_from_double_bits(bits));
    return (x & 0x7FFFFFFFu) == REE_INF ? x : r; // if x is infinite, inf - inf makes r a NaN
}

// True for the exponents y (bits of a float) that ree_fast_pow_f32 supports: 2, 3, 1/2, -1/2, 1 and
// -1. For y = +-1/2, pow differs from sqrt and rsqrt only at -0 and -inf.
#define REE_FAST_POW_EXPONENT(y)                                                                   \
    ((y) == 0x40000000u || (y) == 0x40400000u || (y) == 0x3F000000u || (y) == 0xBF000000u ||       \
     (y) == 0x3F800000u || (y) == 0xBF800000u)
REE_FN uint32_t ree_fast_pow_f32(uint32_t x, uint32_t y) {
    float v = ree_float(x);
    if (y == 0x40000000u) return ree_result(v * v);
    if (y == 0x40400000u) return ree_fast_cube_f32(x);
    if (y == 0x3F800000u) return ree_result(v);
    if (y == 0xBF800000u) return ree_result(1.0f / v);
    uint32_t a = x == REE_SIGN || x == (REE_INF | REE_SIGN) ? x & 0x7FFFFFFFu : x;
    return y == 0x3F000000u ? ree_result(sqrtf(ree_float(a))) : ree_fast_rsqrt_f32(a);
}

#endif
