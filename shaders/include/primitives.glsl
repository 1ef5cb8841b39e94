// The primitives of binary32 arithmetic on bits, each in the forms that src/device/vulkan/probe.c
// tests and selects from:
//
//   native    the device's instruction
//   float64   only fma and the functions of fast.glsl and fast_trig.glsl: computed in float64
//   float32   for devices that flush subnormals: the native instruction, or for fma error-free
//             transformations, if operands and result are far from subnormals and overflow;
//             otherwise in integers
//   integer   src/repops/scalar/soft.h
#ifndef REE_GLSL_PRIMITIVES
#define REE_GLSL_PRIMITIVES

#define REE_GLSL
#include "repops/scalar/soft.h"
#include "plant.glsl"

#define REE_NATIVE 0u
#define REE_FLOAT64 1u
#define REE_FLOAT32 2u
#define REE_INTEGER 3u
layout(constant_id = 1) const uint REE_FORM_ADD = REE_INTEGER;
layout(constant_id = 2) const uint REE_FORM_MUL = REE_INTEGER;
layout(constant_id = 3) const uint REE_FORM_DIV = REE_INTEGER;
layout(constant_id = 4) const uint REE_FORM_SQRT = REE_INTEGER;
layout(constant_id = 5) const uint REE_FORM_FMA = REE_INTEGER;

uint ree_exponent(uint x) { return (x >> 23u) & 255u; } // biased

// Returns x, which a conversion has rounded to float32, so that no optimizer can remove that
// rounding. Some compilers replace double(float(s)), a value rounded to float32 and widened again,
// by s, `precise` or not. Every float that a conversion has rounded must therefore pass through
// this function. The or with a run-time zero changes nothing, but the compiler can conclude nothing
// about the result.
float ree_rounded(float x) { return uintBitsToFloat(floatBitsToUint(x) | ree_zero); }
vec4 ree_rounded(vec4 x) { return uintBitsToFloat(floatBitsToUint(x) | uvec4(ree_zero)); }

float ree_native_add(float a, float b) {
    precise float r = a + b;
    return ree_planted_flush(r);
}
float ree_native_mul(float a, float b) {
    precise float r = a * b;
    return ree_planted_flush(r);
}

// Returns whether x is zero, or so large that sums and their errors are normal and so small that no
// sum overflows.
bool ree_is_mid_range(uint x) {
    uint e = ree_exponent(x);
    return ree_is_zero(x) || (e >= 27u && e <= 253u);
}

uint ree_add(uint a, uint b) {
    if (REE_FORM_ADD == REE_NATIVE ||
        (REE_FORM_ADD == REE_FLOAT32 && ree_is_mid_range(a) && ree_is_mid_range(b)))
        return floatBitsToUint(ree_native_add(uintBitsToFloat(a), uintBitsToFloat(b)));
    return ree_soft_add(a, b);
}
uint ree_sub(uint a, uint b) { return ree_add(a, b ^ REE_SIGN); }

uint ree_mul(uint a, uint b) {
    uint ea = ree_exponent(a), eb = ree_exponent(b), sum = ea + eb;
    bool safe = ea - 1u < 254u && eb - 1u < 254u && sum >= 130u && sum <= 378u;
    if (REE_FORM_MUL == REE_NATIVE || (REE_FORM_MUL == REE_FLOAT32 && safe))
        return floatBitsToUint(ree_native_mul(uintBitsToFloat(a), uintBitsToFloat(b)));
    return ree_soft_mul(a, b);
}

uint ree_div(uint a, uint b) {
    uint ea = ree_exponent(a), eb = ree_exponent(b), quotient = ea - eb + 127u;
    bool safe = ea - 1u < 254u && eb - 3u < 249u && quotient - 3u < 249u;
    if (REE_FORM_DIV == REE_NATIVE || (REE_FORM_DIV == REE_FLOAT32 && safe)) {
        precise float r = uintBitsToFloat(a) / uintBitsToFloat(b);
        return floatBitsToUint(r);
    }
    return ree_soft_div(a, b);
}

uint ree_sqrt(uint a) {
    bool safe = a >= 0x00800000u && a < REE_INF;
    if (REE_FORM_SQRT == REE_NATIVE || (REE_FORM_SQRT == REE_FLOAT32 && safe)) {
        precise float r = sqrt(uintBitsToFloat(a));
        return floatBitsToUint(r);
    }
    return ree_soft_sqrt(a);
}

// fma with float32 operations only; correct if nothing is subnormal or overflows. p + e = a*b and
// s + t = p + c hold exactly (Dekker's product over halves of 12 bits, Knuth's sum). The result is
// s + v, rounded, where v is t + e, rounded.
//
// The rounding of v matters only if s + v is exactly the midpoint of two neighbouring floats: a
// midpoint m is a few quarter ulps from s, so m - s is a float, and rounding t + e to v cannot step
// over it, only onto it. Let r be s + v rounded, and d = (s + v) - r. s + v is a midpoint if r + 2d
// is the neighbour of r. If then the error of v, (t + e) - v, has the sign of d, the true value is
// beyond the midpoint, and the result is the neighbour.
float ree_high_half(float a) { return uintBitsToFloat(floatBitsToUint(a) & 0xFFFFF000u); }
float ree_low_half(float a, float high) {
    precise float r = a - high;
    return r;
}
float ree_fma_float32(const float a, const float b, const float c) {
    float ah = ree_high_half(a), bh = ree_high_half(b);
    float al = ree_low_half(a, ah), bl = ree_low_half(b, bh);
    precise float p = a * b;
    precise float e = ((ah * bh - p) + ah * bl) + al * bh;
    e = e + al * bl;
    precise float s = p + c;
    precise float c1 = s - p;
    precise float t = (p - (s - c1)) + (c - c1);
    precise float v = t + e;
    precise float e1 = v - t;
    precise float lost = (t - (v - e1)) + (e - e1);
    precise float r = s + v;
    precise float d = v - (r - s);
    precise float twice = d + d;
    precise float next = r + twice;
    precise float step = next - r;
    bool beyond = step == twice && (lost > 0.0 && d > 0.0 || lost < 0.0 && d < 0.0);
    return beyond ? next : r;
}

#ifdef REE_F64
// Returns x in float64, subnormals too, which some devices flush in their conversion.
double ree_widened(uint x) {
    if (ree_exponent(x) > 0u) return double(uintBitsToFloat(x));
    double unit = packDouble2x32(uvec2(0u, 0x36A00000u | (x & REE_SIGN))); // 2^-149
    precise double r = double(x & 0x7FFFFFu) * unit;
    return r;
}

// Returns a double, given by its low and high words, rounded to float32.
uint ree_narrowed(const uvec2 x) {
    if ((x.y & 0x7FFFFFFFu) < 0x38100000u) { // below 2^-126
        // The last bit of 2^-97 is 2^-149. So the low word of the sum counts multiples of 2^-149.
        precise double r = packDouble2x32(uvec2(x.x, x.y & 0x7FFFFFFFu)) +
                           packDouble2x32(uvec2(0u, 0x39E00000u));
        return (x.y & REE_SIGN) | unpackDouble2x32(r).x;
    }
    return floatBitsToUint(ree_rounded(float(packDouble2x32(x))));
}

// fma for all operands. Nothing overflows or is subnormal in float64: the product is exact, and so
// is the error of the sum s. s is then rounded to odd: of the two doubles around the exact sum, it
// becomes the one whose last bit is 1. Such a number can be rounded again, to float32 or to a
// multiple of 2^-149, as if it were exact.
uint ree_fma_float64(const uint a, const uint b, const uint c) {
    precise double p = ree_widened(a) * ree_widened(b);
    precise double x = ree_widened(c);
    precise double s = p + x;
    precise double x1 = s - p;
    precise double lost = (p - (s - x1)) + (x - x1);
    uvec2 bits = unpackDouble2x32(s);
    bool above = lost > 0.0lf, below = lost < 0.0lf; // neither if lost is NaN
    if ((above || below) && (bits.x & 1u) == 0u) {
        if (above == (s > 0.0lf)) {
            bits.x |= 1u;
        } else {
            bits.y -= bits.x == 0u ? 1u : 0u;
            bits.x -= 1u;
        }
    }
    return ree_canon(ree_narrowed(bits));
}
#include "fast.glsl"
#include "fast_trig.glsl"
#endif

uint ree_fma(uint a, uint b, uint c) {
    if (REE_FORM_FMA == REE_NATIVE) {
        precise float r = fma(uintBitsToFloat(a), uintBitsToFloat(b), uintBitsToFloat(c));
        return floatBitsToUint(r);
    }
#ifdef REE_F64
    if (REE_FORM_FMA == REE_FLOAT64) return ree_fma_float64(a, b, c);
#endif
    // Every nonzero intermediate of the float32 form is a multiple of the last bit of an operand,
    // 2^(ea - 150) and so on, or of the product, 2^(ea + eb - 300). If all of these are at least
    // 2^-126, nothing is subnormal.
    uint ea = ree_exponent(a), eb = ree_exponent(b), ec = ree_exponent(c), sum = ea + eb;
    bool safe = ea >= 24u && eb >= 24u && ea <= 247u && eb <= 247u && sum >= 174u &&
                sum <= 370u && (ree_is_zero(c) || (ec >= 24u && ec <= 247u));
    if (safe && REE_FORM_FMA == REE_FLOAT32)
        return floatBitsToUint(
            ree_fma_float32(uintBitsToFloat(a), uintBitsToFloat(b), uintBitsToFloat(c)));
    return ree_soft_fma(a, b, c);
}

#define REE_ADD(a, b) ree_add(a, b)
#define REE_SUB(a, b) ree_sub(a, b)
#define REE_MUL(a, b) ree_mul(a, b)
#define REE_DIV(a, b) ree_div(a, b)
#define REE_SQRT(a) ree_sqrt(a)
#define REE_FMA(a, b, c) ree_fma(a, b, c)
#include "repops/scalar/ops.glsl"

#endif
