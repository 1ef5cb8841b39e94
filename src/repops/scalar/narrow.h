// Conversions between binary32 and the floating-point formats of 8 and 4 bits, with integer
// operations only (NUMERICS.md, section 5). Sources: Micikevicius et al., "FP8 Formats for Deep
// Learning" (arXiv:2209.05433); Noune et al., "8-bit Numerical Formats for Deep Neural Networks"
// (arXiv:2206.02915) for the FNUZ forms; OCP, "Microscaling Formats (MX)", version 1.0, for
// float4e2m1 and float8e8m0; ONNX's Cast for numbers beyond the largest one.
//
// A 32-bit word describes a format, so that one function converts all formats and an expression can
// pass the format as a constant:
//
//   bits 0-3    number of fraction bits
//   bits 4-11   bias of the exponent
//   bits 12-19  code of the largest finite number
//   bit  20     1: the next code after the largest finite number is infinity
//   bit  21     1: there is no -0, and its code is the only NaN
//   bit  22     1: saturates, larger numbers and infinities become the largest finite number
//   bits 23-26  index of the sign bit
//   bits 27-31  unused
#ifndef REE_SCALAR_NARROW_H
#define REE_SCALAR_NARROW_H

#include "repops/scalar/soft.h"

#define REE_NARROW_FORMAT(fraction, bias, largest, sign)                                           \
    ((fraction) | (bias) << 4u | (largest) << 12u | (sign) << 23u)
#define REE_NARROW_HAS_INF (1u << 20u)
#define REE_NARROW_FNUZ (1u << 21u)
#define REE_NARROW_SATURATE (1u << 22u)

#define REE_NARROW_F8E4M3FN REE_NARROW_FORMAT(3u, 7u, 0x7Eu, 7u)
#define REE_NARROW_F8E4M3FNUZ (REE_NARROW_FORMAT(3u, 8u, 0x7Fu, 7u) | REE_NARROW_FNUZ)
#define REE_NARROW_F8E5M2 (REE_NARROW_FORMAT(2u, 15u, 0x7Bu, 7u) | REE_NARROW_HAS_INF)
#define REE_NARROW_F8E5M2FNUZ (REE_NARROW_FORMAT(2u, 16u, 0x7Fu, 7u) | REE_NARROW_FNUZ)
// float4e2m1 has neither NaN nor infinity: it always saturates, and NaN becomes -0.
#define REE_NARROW_F4E2M1 (REE_NARROW_FORMAT(1u, 1u, 7u, 3u) | REE_NARROW_SATURATE)

REE_FN u32 ree_narrow_nan(u32 format) {
    u32 sign = 1u << ((format >> 23u) & 15u);
    if ((format & REE_NARROW_FNUZ) != 0u || sign == 8u) return sign;
    return (format & REE_NARROW_HAS_INF) != 0u ? 0x7Eu : 0x7Fu;
}

// Converts the float x to the format; rounds once, to nearest, ties to even.
REE_FN u32 ree_f32_to_narrow(u32 x, u32 format) {
    u32 fraction = format & 15u, bias = (format >> 4u) & 255u, largest = (format >> 12u) & 255u;
    if (ree_is_nan(x)) return ree_narrow_nan(format);
    u32 sign = (x >> 31u) << ((format >> 23u) & 15u), a = x & 0x7FFFFFFFu, code;
    // lowest: exponent field, in binary32, of the format's smallest normal number 2^(1 - bias).
    u32 drop = 23u - fraction, lowest = 128u - bias;
    if (a >= 0x4F000000u) {
        code = largest + 1u; // 2^31 or more, or infinity: too large for every format
    } else if ((a >> 23u) >= lowest) {
        u32 rebiased = a - ((127u - bias) << 23u);
        code = (rebiased + ((1u << (drop - 1u)) - 1u) + ((rebiased >> drop) & 1u)) >> drop;
    } else {
        // The result is subnormal or 0. If shift is above 25, x is less than half of the smallest
        // subnormal and rounds to 0.
        u32 shift = drop + (lowest - (a >> 23u));
        u32 m = (a & 0x7FFFFFu) | 0x800000u;
        code = 0u;
        if (shift <= 25u) {
            u32 rest = m & ((1u << shift) - 1u), half_unit = 1u << (shift - 1u);
            code = m >> shift;
            if (rest > half_unit || (rest == half_unit && (code & 1u) != 0u)) code += 1u;
        }
    }
    if (code > largest) {
        if ((format & REE_NARROW_SATURATE) != 0u) return sign | largest;
        return (format & REE_NARROW_HAS_INF) != 0u ? sign | (largest + 1u) : ree_narrow_nan(format);
    }
    if (code == 0u && (format & REE_NARROW_FNUZ) != 0u) return 0u;
    return sign | code;
}

// Converts x, bits of the format, to the float of the same value.
REE_FN u32 ree_narrow_to_f32(u32 x, u32 format) {
    u32 fraction = format & 15u, bias = (format >> 4u) & 255u, largest = (format >> 12u) & 255u;
    u32 place = (format >> 23u) & 15u, code = x & ((1u << place) - 1u);
    u32 sign = ((x >> place) & 1u) << 31u;
    if ((format & REE_NARROW_FNUZ) != 0u && code == 0u) return sign != 0u ? REE_NAN : 0u;
    if (code > largest)
        return (format & REE_NARROW_HAS_INF) != 0u && code == largest + 1u ? sign | REE_INF
                                                                           : REE_NAN;
    if ((code >> fraction) != 0u)
        return sign | ((code << (23u - fraction)) + ((127u - bias) << 23u));
    if (code == 0u) return sign;
    u32 n = ree_clz32(code) - (31u - fraction); // shift of the leading bit to bit `fraction`
    return sign | ((128u - bias - n) << 23u) | ((code << (23u - fraction + n)) & 0x7FFFFFu);
}

// float8e8m0: the powers of two from 2^-127 to 2^127, and NaN. The argument `mode` is one of UP,
// DOWN and NEAREST, the rounding, plus REE_E8M0_SATURATE: numbers outside the range, 0 and -0
// included, become the nearest end of the range; without it they become NaN. Negative numbers
// become NaN.
#define REE_E8M0_UP 0u
#define REE_E8M0_DOWN 1u
#define REE_E8M0_NEAREST 2u // ties up
#define REE_E8M0_SATURATE 4u

REE_FN u32 ree_f32_to_e8m0(u32 x, u32 mode) {
    bool saturate = (mode & REE_E8M0_SATURATE) != 0u;
    if (ree_is_nan(x) || x > REE_SIGN) return 0xFFu;
    if (x == REE_SIGN || x < 0x400000u) return saturate ? 0u : 0xFFu; // below 2^-127
    if (x > 0x7F000000u) return saturate ? 0xFEu : 0xFFu;             // above 2^127
    // A subnormal x has code 0. It is at least 2^-127, so its leading bit is bit 22, and the bits
    // below are its fraction.
    u32 code = x >> 23u, rest = code == 0u ? (x << 1u) & 0x7FFFFFu : x & 0x7FFFFFu;
    u32 rounding = mode & 3u;
    bool up =
        rounding == REE_E8M0_UP ? rest != 0u : rounding == REE_E8M0_NEAREST && rest >= 0x400000u;
    return up ? code + 1u : code;
}
REE_FN u32 ree_e8m0_to_f32(u32 x) {
    u32 code = x & 0xFFu;
    if (code == 0xFFu) return REE_NAN;
    return code == 0u ? 0x400000u : code << 23u;
}

#endif
