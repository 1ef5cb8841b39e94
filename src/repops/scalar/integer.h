// Integer operations of expressions on 32 and 64 bits (NUMERICS.md, section 5). Integers are two's
// complement and wrap around. Cases that C leaves undefined have a value here: x / 0 = 0; the
// lowest number divided by -1 is itself; a shift by the width or more gives 0.
#ifndef REE_SCALAR_INTEGER_H
#define REE_SCALAR_INTEGER_H

#include "repops/scalar/u64.h"

// 32 bits

REE_FN bool ree_slt32(u32 a, u32 b) {
    return (a ^ REE_SIGN) < (b ^ REE_SIGN);
}
REE_FN u32 ree_abs32(u32 a) {
    return (a & REE_SIGN) != 0u ? 0u - a : a;
}
REE_FN u32 ree_div_u32(u32 a, u32 b) {
    return b == 0u ? 0u : a / (b == 0u ? 1u : b);
}
REE_FN u32 ree_mod_u32(u32 a, u32 b) {
    return b == 0u ? 0u : a % (b == 0u ? 1u : b);
}
REE_FN u32 ree_div_i32(u32 a, u32 b) {
    u32 q = ree_div_u32(ree_abs32(a), ree_abs32(b));
    return ((a ^ b) & REE_SIGN) != 0u ? 0u - q : q;
}
REE_FN u32 ree_fmod_i32(u32 a, u32 b) {
    u32 r = ree_mod_u32(ree_abs32(a), ree_abs32(b));
    return (a & REE_SIGN) != 0u ? 0u - r : r;
}
REE_FN u32 ree_mod_i32(u32 a, u32 b) {
    u32 r = ree_fmod_i32(a, b);
    return r != 0u && ((r ^ b) & REE_SIGN) != 0u ? r + b : r;
}
REE_FN u32 ree_pow_u32(u32 a, u32 b) {
    u32 r = 1u;
    for (; b != 0u; b >>= 1u) {
        if ((b & 1u) != 0u) r *= a;
        a *= a;
    }
    return r;
}
REE_FN u32 ree_pow_i32(u32 a, u32 b) {
    if ((b & REE_SIGN) == 0u) return ree_pow_u32(a, b);
    if (a == 1u) return 1u;
    if (a == 0xFFFFFFFFu) return (b & 1u) != 0u ? a : 1u;
    return 0u;
}
REE_FN u32 ree_shl32(u32 a, u32 n) {
    return n > 31u ? 0u : a << (n & 31u);
}
REE_FN u32 ree_shr32(u32 a, u32 n) {
    return n > 31u ? 0u : a >> (n & 31u);
}
REE_FN u32 ree_wrap_i8(u32 a) {
    return ((a & 255u) ^ 128u) - 128u;
}
REE_FN u32 ree_wrap_i16(u32 a) {
    return ((a & 65535u) ^ 32768u) - 32768u;
}

// 64 bits

REE_FN bool ree_neg64(u64 a) {
    return (u64_hi(a) & REE_SIGN) != 0u;
}
REE_FN u64 ree_abs64(u64 a) {
    return ree_neg64(a) ? u64_neg(a) : a;
}

#ifdef REE_SCALAR_LIMBS

// Quotient and remainder of unsigned 64-bit integers, both 0 for a divisor of 0. Computed by
// shifting and subtracting, or by a 32-bit division if both operands fit in 32 bits.
struct ree_quotient {
    u64 q, r;
};
REE_TYPEDEF(ree_quotient)
REE_FN ree_quotient ree_divide64(u64 a, u64 b) {
    ree_quotient d;
    d.q = REE_U64(0u, 0u);
    d.r = REE_U64(0u, 0u);
    if (u64_is_zero(b)) return d;
    if ((u64_hi(a) | u64_hi(b)) == 0u) {
        d.q = u64_from32(u64_lo(a) / u64_lo(b));
        d.r = u64_from32(u64_lo(a) % u64_lo(b));
        return d;
    }
    d.r = a;
    u32 na = u64_clz(a), nb = u64_clz(b);
    if (na > nb) return d; // a < b
    u64 divisor = u64_shl(b, nb - na);
    for (u32 i = na; i <= nb; i++) {
        d.q = u64_shl(d.q, 1u);
        if (!u64_lt(d.r, divisor)) {
            d.r = u64_sub(d.r, divisor);
            d.q = u64_or(d.q, REE_U64(0u, 1u));
        }
        divisor = u64_shr(divisor, 1u);
    }
    return d;
}
REE_FN u64 ree_div_u64(u64 a, u64 b) {
    return ree_divide64(a, b).q;
}
REE_FN u64 ree_mod_u64(u64 a, u64 b) {
    return ree_divide64(a, b).r;
}

#else

REE_FN u64 ree_div_u64(u64 a, u64 b) {
    return b == 0 ? 0 : a / b;
}
REE_FN u64 ree_mod_u64(u64 a, u64 b) {
    return b == 0 ? 0 : a % b;
}

#endif

REE_FN u64 ree_div_i64(u64 a, u64 b) {
    u64 q = ree_div_u64(ree_abs64(a), ree_abs64(b));
    return ree_neg64(u64_xor(a, b)) ? u64_neg(q) : q;
}
REE_FN u64 ree_fmod_i64(u64 a, u64 b) {
    u64 r = ree_mod_u64(ree_abs64(a), ree_abs64(b));
    return ree_neg64(a) ? u64_neg(r) : r;
}
REE_FN u64 ree_mod_i64(u64 a, u64 b) {
    u64 r = ree_fmod_i64(a, b);
    return !u64_is_zero(r) && ree_neg64(u64_xor(r, b)) ? u64_add(r, b) : r;
}
REE_FN u64 ree_pow_u64(u64 a, u64 b) {
    u64 r = REE_U64(0u, 1u);
    for (; !u64_is_zero(b); b = u64_shr(b, 1u)) {
        if ((u64_lo(b) & 1u) != 0u) r = u64_mul(r, a);
        a = u64_mul(a, a);
    }
    return r;
}
REE_FN u64 ree_pow_i64(u64 a, u64 b) {
    if (!ree_neg64(b)) return ree_pow_u64(a, b);
    if (u64_eq(a, REE_U64(0u, 1u))) return a;
    if (u64_eq(a, REE_U64(0xFFFFFFFFu, 0xFFFFFFFFu)))
        return (u64_lo(b) & 1u) != 0u ? a : REE_U64(0u, 1u);
    return REE_U64(0u, 0u);
}
REE_FN u64 ree_shl64(u64 a, u64 n) {
    if (u64_hi(n) != 0u || u64_lo(n) > 63u) return REE_U64(0u, 0u);
    return u64_shl(a, u64_lo(n));
}
REE_FN u64 ree_shr64(u64 a, u64 n) {
    if (u64_hi(n) != 0u || u64_lo(n) > 63u) return REE_U64(0u, 0u);
    return u64_shr(a, u64_lo(n));
}

#endif
