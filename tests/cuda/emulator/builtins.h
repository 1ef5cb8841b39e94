// CUDA's single-thread built-in functions: arithmetic and bits.
#ifndef REE_EMULATOR_BUILTINS_H
#define REE_EMULATOR_BUILTINS_H

#include "vectors.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define REE_EMULATOR_FN __attribute__((unused)) static inline

// Operations that round to nearest even. The emulator is compiled with -ffp-contract=off, so that
// the compiler contracts none of them.
REE_EMULATOR_FN float __fadd_rn(float a, float b) {
    return a + b;
}
REE_EMULATOR_FN float __fsub_rn(float a, float b) {
    return a - b;
}
REE_EMULATOR_FN float __fmul_rn(float a, float b) {
    return a * b;
}
REE_EMULATOR_FN float __fdiv_rn(float a, float b) {
    return a / b;
}
REE_EMULATOR_FN float __frcp_rn(float a) {
    return 1.0f / a;
}
REE_EMULATOR_FN float __fmaf_rn(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
REE_EMULATOR_FN float __fsqrt_rn(float a) {
    return __builtin_sqrtf(a);
}
REE_EMULATOR_FN double __dadd_rn(double a, double b) {
    return a + b;
}
REE_EMULATOR_FN double __dsub_rn(double a, double b) {
    return a - b;
}
REE_EMULATOR_FN double __dmul_rn(double a, double b) {
    return a * b;
}
REE_EMULATOR_FN double __ddiv_rn(double a, double b) {
    return a / b;
}
REE_EMULATOR_FN double __drcp_rn(double a) {
    return 1.0 / a;
}
REE_EMULATOR_FN double __fma_rn(double a, double b, double c) {
    return __builtin_fma(a, b, c);
}
REE_EMULATOR_FN double __dsqrt_rn(double a) {
    return __builtin_sqrt(a);
}

template <class To, class From> static inline To ree_emulator_bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
REE_EMULATOR_FN int __float_as_int(float x) {
    return ree_emulator_bits<int>(x);
}
REE_EMULATOR_FN unsigned __float_as_uint(float x) {
    return ree_emulator_bits<unsigned>(x);
}
REE_EMULATOR_FN float __int_as_float(int x) {
    return ree_emulator_bits<float>(x);
}
REE_EMULATOR_FN float __uint_as_float(unsigned x) {
    return ree_emulator_bits<float>(x);
}
REE_EMULATOR_FN long long __double_as_longlong(double x) {
    return ree_emulator_bits<long long>(x);
}
REE_EMULATOR_FN double __longlong_as_double(long long x) {
    return ree_emulator_bits<double>(x);
}
REE_EMULATOR_FN int __double2hiint(double x) {
    return (int)(__double_as_longlong(x) >> 32);
}
REE_EMULATOR_FN int __double2loint(double x) {
    return (int)__double_as_longlong(x);
}
REE_EMULATOR_FN double __hiloint2double(int hi, int lo) {
    return __longlong_as_double((long long)((uint64_t)(uint32_t)hi << 32 | (uint32_t)lo));
}

// Converts to an integer as the device does: the result saturates, and NaN becomes 0 or, for 64-bit
// results, 2^63 (only the highest bit is set).
template <class To, class From> static inline To ree_emulator_saturate(From x) {
    const bool is_signed = (To)-1 < 0;
    const int bits = (int)sizeof(To) * 8 - is_signed;
    const To highest = (To)(is_signed ? ~((uint64_t)1 << bits) : ~(uint64_t)0);
    if (x != x) return bits > 32 ? (To)((uint64_t)1 << 63) : 0;
    if (x >= (From)ldexp(1.0, bits)) return highest;
    if (x <= (is_signed ? -(From)ldexp(1.0, bits) : (From)0))
        return is_signed ? (To)((uint64_t)1 << bits) : 0;
    return (To)x;
}
REE_EMULATOR_FN int __float2int_rn(float x) {
    return ree_emulator_saturate<int>(rintf(x));
}
REE_EMULATOR_FN int __float2int_rz(float x) {
    return ree_emulator_saturate<int>(x);
}
REE_EMULATOR_FN unsigned __float2uint_rn(float x) {
    return ree_emulator_saturate<unsigned>(rintf(x));
}
REE_EMULATOR_FN unsigned __float2uint_rz(float x) {
    return ree_emulator_saturate<unsigned>(x);
}
REE_EMULATOR_FN long long __float2ll_rn(float x) {
    return ree_emulator_saturate<long long>(rintf(x));
}
REE_EMULATOR_FN long long __float2ll_rz(float x) {
    return ree_emulator_saturate<long long>(x);
}
REE_EMULATOR_FN int __double2int_rn(double x) {
    return ree_emulator_saturate<int>(rint(x));
}
REE_EMULATOR_FN int __double2int_rz(double x) {
    return ree_emulator_saturate<int>(x);
}
REE_EMULATOR_FN long long __double2ll_rn(double x) {
    return ree_emulator_saturate<long long>(rint(x));
}
REE_EMULATOR_FN long long __double2ll_rz(double x) {
    return ree_emulator_saturate<long long>(x);
}
REE_EMULATOR_FN float __int2float_rn(int x) {
    return (float)x;
}
REE_EMULATOR_FN float __uint2float_rn(unsigned x) {
    return (float)x;
}
REE_EMULATOR_FN float __ll2float_rn(long long x) {
    return (float)x;
}
REE_EMULATOR_FN float __ull2float_rn(unsigned long long x) {
    return (float)x;
}
REE_EMULATOR_FN float __double2float_rn(double x) {
    return (float)x;
}
REE_EMULATOR_FN double __int2double_rn(int x) {
    return (double)x;
}
REE_EMULATOR_FN double __uint2double_rn(unsigned x) {
    return (double)x;
}
REE_EMULATOR_FN double __ll2double_rn(long long x) {
    return (double)x;
}
REE_EMULATOR_FN double __ull2double_rn(unsigned long long x) {
    return (double)x;
}

REE_EMULATOR_FN int __mulhi(int a, int b) {
    return (int)((int64_t)a * b >> 32);
}
REE_EMULATOR_FN unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)((uint64_t)a * b >> 32);
}
REE_EMULATOR_FN unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
REE_EMULATOR_FN long long __mul64hi(long long a, long long b) {
    return (long long)((__int128)a * b >> 64);
}
REE_EMULATOR_FN int __popc(unsigned x) {
    return __builtin_popcount(x);
}
REE_EMULATOR_FN int __popcll(unsigned long long x) {
    return __builtin_popcountll(x);
}
REE_EMULATOR_FN int __clz(int x) {
    return x ? __builtin_clz((unsigned)x) : 32;
}
REE_EMULATOR_FN int __clzll(long long x) {
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
REE_EMULATOR_FN int __ffs(int x) {
    return __builtin_ffs(x);
}
REE_EMULATOR_FN int __ffsll(long long x) {
    return __builtin_ffsll(x);
}
REE_EMULATOR_FN unsigned __brev(unsigned x) {
    unsigned y = 0;
    for (int i = 0; i < 32; i++)
        y |= (x >> i & 1u) << (31 - i);
    return y;
}
// Byte i of the result is byte k of x (k = 0 ... 3) or of y (k = 4 ... 7), where k is the low three
// bits of nibble i of s. If the nibble's high bit is set, all bits of the result's byte are the
// sign bit of that byte.
REE_EMULATOR_FN unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
    uint64_t both = (uint64_t)y << 32 | x;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) {
        unsigned nibble = s >> (4 * i) & 15u, byte = (unsigned)(both >> (8 * (nibble & 7u))) & 255u;
        if (nibble & 8u) byte = byte & 128u ? 255u : 0u;
        result |= byte << (8 * i);
    }
    return result;
}
REE_EMULATOR_FN unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned shift) {
    return (unsigned)(((uint64_t)hi << 32 | lo) << (shift & 31u) >> 32);
}
REE_EMULATOR_FN unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift) {
    return (unsigned)(((uint64_t)hi << 32 | lo) >> (shift & 31u));
}
// Returns c plus the dot product of the four signed bytes of a and of b, modulo 2^32.
REE_EMULATOR_FN int __dp4a(int a, int b, int c) {
    unsigned sum = (unsigned)c;
    for (int i = 0; i < 32; i += 8)
        sum += (unsigned)((int)(int8_t)(a >> i) * (int)(int8_t)(b >> i));
    return (int)sum;
}
REE_EMULATOR_FN unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 32; i += 8)
        c += (a >> i & 255u) * (b >> i & 255u);
    return c;
}

#define REE_EMULATOR_MIN_MAX(R, A, B)                                                              \
    REE_EMULATOR_FN R min(A a, B b) {                                                              \
        return (R)a < (R)b ? (R)a : (R)b;                                                          \
    }                                                                                              \
    REE_EMULATOR_FN R max(A a, B b) {                                                              \
        return (R)a > (R)b ? (R)a : (R)b;                                                          \
    }
REE_EMULATOR_MIN_MAX(int, int, int)
REE_EMULATOR_MIN_MAX(unsigned, unsigned, unsigned)
REE_EMULATOR_MIN_MAX(unsigned, int, unsigned)
REE_EMULATOR_MIN_MAX(unsigned, unsigned, int)
REE_EMULATOR_MIN_MAX(long, long, long)
REE_EMULATOR_MIN_MAX(unsigned long, unsigned long, unsigned long)
REE_EMULATOR_MIN_MAX(long long, long long, long long)
REE_EMULATOR_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
#undef REE_EMULATOR_MIN_MAX
// If one operand is NaN, the result is the other operand, as on the device.
REE_EMULATOR_FN float min(float a, float b) {
    return fminf(a, b);
}
REE_EMULATOR_FN float max(float a, float b) {
    return fmaxf(a, b);
}
REE_EMULATOR_FN double min(double a, double b) {
    return fmin(a, b);
}
REE_EMULATOR_FN double max(double a, double b) {
    return fmax(a, b);
}

#endif
