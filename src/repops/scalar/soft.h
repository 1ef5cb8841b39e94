// binary32 arithmetic in 32-bit integers: add, multiply, fused multiply-add, divide and square
// root, rounded to nearest even, subnormals kept, NaN results 0x7FC00000 (NUMERICS.md, section 1).
// For devices whose own arithmetic the probe finds wrong, and as the oracle in tests.
#ifndef REE_SCALAR_SOFT_H
#define REE_SCALAR_SOFT_H

#include "repops/scalar/u64.h"

REE_FN bool ree_is_nan(u32 x) {
    return (x & 0x7FFFFFFFu) > REE_INF;
}
REE_FN bool ree_is_inf(u32 x) {
    return (x & 0x7FFFFFFFu) == REE_INF;
}
REE_FN bool ree_is_zero(u32 x) {
    return (x << 1u) == 0u;
}
REE_FN u32 ree_canon(u32 x) {
    return ree_is_nan(x) ? REE_NAN : x;
}

// Returns the bits of m * 2^(e - 31) rounded to binary32, with the sign (0 or REE_SIGN). Bit 31 of
// m must be set. Bit 0 of m is sticky: it must also be 1 if the exact number has lower bits than m.
REE_FN u32 ree_pack32(u32 sign, i32 e, u32 m) {
    i32 biased = e + 127;
    if (biased >= 255) return sign | REE_INF;
    if (biased <= 0) {
        u32 n = REE_U32(1 - biased);
        m = n > 31u ? 1u : (m >> n) | ((m << (32u - n)) != 0u ? 1u : 0u);
        biased = 1;
    }
    u32 q = m >> 8u, rest = m & 255u;
    if (rest > 128u || (rest == 128u && (q & 1u) != 0u)) q += 1u;
    // The addition is also correct for a subnormal that rounds up to the smallest normal number (q
    // = 2^23), and for a carry out of the significand, which increments the exponent.
    return sign | ((REE_U32(biased - 1) << 23u) + q);
}
// Rounds m * 2^(e - 63) to binary32, as ree_pack32 does. Bit 63 of m must be set; bit 0 is sticky.
REE_FN u32 ree_pack64(u32 sign, i32 e, u64 m) {
    return ree_pack32(sign, e, u64_hi(m) | (u64_lo(m) != 0u ? 1u : 0u));
}
// Rounds m * 2^(e - 63) to binary32 for any m. If m is 0, returns a zero with the sign.
REE_FN u32 ree_pack64_any(u32 sign, i32 e, u64 m) {
    if (u64_is_zero(m)) return sign;
    u32 n = u64_clz(m);
    return ree_pack64(sign, e - REE_I32(n), u64_shl(m, n));
}

// The absolute value m * 2^(e - 23) of a finite nonzero float, with m in [2^23, 2^24).
struct ree_unpacked {
    u32 m;
    i32 e;
};
REE_TYPEDEF(ree_unpacked)
REE_FN ree_unpacked ree_unpack(u32 x) {
    ree_unpacked r;
    u32 biased = (x >> 23u) & 255u;
    r.m = x & 0x7FFFFFu;
    if (biased == 0u) {
        u32 n = ree_clz32(r.m) - 8u;
        r.m <<= n;
        r.e = -126 - REE_I32(n);
    } else {
        r.m |= 0x800000u;
        r.e = REE_I32(biased) - 127;
    }
    return r;
}

REE_FN u32 ree_soft_add(u32 a, u32 b) {
    if (ree_is_nan(a) || ree_is_nan(b)) return REE_NAN;
    if (ree_is_inf(a)) return ree_is_inf(b) && a != b ? REE_NAN : a;
    if (ree_is_inf(b)) return b;
    if (ree_is_zero(b)) return ree_is_zero(a) ? a & b : a;
    if (ree_is_zero(a)) return b;
    if ((a & 0x7FFFFFFFu) < (b & 0x7FFFFFFFu)) {
        u32 swap = a;
        a = b;
        b = swap;
    }
    ree_unpacked ua = ree_unpack(a), ub = ree_unpack(b);
    // The leading bit of ma is bit 30. Bit 31 is free for a carry, and the lowest seven bits are
    // guard bits and the sticky bit.
    u32 ma = ua.m << 7u, mb = ub.m << 7u;
    u32 n = REE_U32(ua.e - ub.e);
    if (n != 0u) mb = n > 31u ? 1u : (mb >> n) | ((mb << (32u - n)) != 0u ? 1u : 0u);
    u32 m = ((a ^ b) & REE_SIGN) == 0u ? ma + mb : ma - mb;
    if (m == 0u) return 0u;
    u32 shift = ree_clz32(m);
    return ree_pack32(a & REE_SIGN, ua.e + 1 - REE_I32(shift), m << shift);
}
REE_FN u32 ree_soft_sub(u32 a, u32 b) {
    return ree_soft_add(a, b ^ REE_SIGN);
}

REE_FN u32 ree_soft_mul(u32 a, u32 b) {
    u32 sign = (a ^ b) & REE_SIGN;
    if (ree_is_nan(a) || ree_is_nan(b)) return REE_NAN;
    if (ree_is_inf(a) || ree_is_inf(b))
        return ree_is_zero(a) || ree_is_zero(b) ? REE_NAN : sign | REE_INF;
    if (ree_is_zero(a) || ree_is_zero(b)) return sign;
    ree_unpacked ua = ree_unpack(a), ub = ree_unpack(b);
    return ree_pack64_any(sign, ua.e + ub.e + 1, u64_mul32(ua.m << 8u, ub.m << 8u));
}

REE_FN u32 ree_soft_fma(u32 a, u32 b, u32 c) {
    u32 sp = (a ^ b) & REE_SIGN, sc = c & REE_SIGN;
    if (ree_is_nan(a) || ree_is_nan(b) || ree_is_nan(c)) return REE_NAN;
    bool zero_product = ree_is_zero(a) || ree_is_zero(b);
    if (ree_is_inf(a) || ree_is_inf(b)) {
        if (zero_product || (ree_is_inf(c) && sp != sc)) return REE_NAN;
        return sp | REE_INF;
    }
    if (ree_is_inf(c)) return c;
    if (zero_product) return ree_is_zero(c) ? sp & sc : c;
    ree_unpacked ua = ree_unpack(a), ub = ree_unpack(b);
    i32 e = ua.e + ub.e;
    // The leading bit of the product p is bit 61 or 62, that of the addend q bit 61, so a sum fits
    // in 64 bits. A shift by one or two places loses only zeros, so cancellation is exact.
    u64 p = u64_mul32(ua.m << 8u, ub.m << 7u);
    if (ree_is_zero(c)) return ree_pack64_any(sp, e + 2, p);
    ree_unpacked uc = ree_unpack(c);
    u64 q = REE_U64(uc.m << 6u, 0u);
    if (e >= uc.e) {
        q = u64_shr_sticky(q, REE_U32(e - uc.e));
    } else {
        p = u64_shr_sticky(p, REE_U32(uc.e - e));
        e = uc.e;
    }
    if (sp == sc) return ree_pack64_any(sp, e + 2, u64_add(p, q));
    if (u64_eq(p, q)) return 0u;
    if (u64_lt(p, q)) return ree_pack64_any(sc, e + 2, u64_sub(q, p));
    return ree_pack64_any(sp, e + 2, u64_sub(p, q));
}

REE_FN u32 ree_soft_div(u32 a, u32 b) {
    u32 sign = (a ^ b) & REE_SIGN;
    if (ree_is_nan(a) || ree_is_nan(b)) return REE_NAN;
    if (ree_is_inf(a)) return ree_is_inf(b) ? REE_NAN : sign | REE_INF;
    if (ree_is_inf(b)) return sign;
    if (ree_is_zero(b)) return ree_is_zero(a) ? REE_NAN : sign | REE_INF;
    if (ree_is_zero(a)) return sign;
    ree_unpacked ua = ree_unpack(a), ub = ree_unpack(b);
    i32 e = ua.e - ub.e;
    u32 r = ua.m;
    if (r < ub.m) {
        r <<= 1u;
        e -= 1;
    }
    // Computes one bit of the quotient, then eight bits at a time. The remainder stays below 2^24,
    // so that r << 8 fits in 32 bits.
    u32 q = 1u;
    r -= ub.m;
    r <<= 8u;
    q = (q << 8u) | (r / ub.m);
    r = (r % ub.m) << 8u;
    q = (q << 8u) | (r / ub.m);
    r = (r % ub.m) << 8u;
    q = (q << 8u) | (r / ub.m);
    r = r % ub.m;
    return ree_pack32(sign, e, (q << 7u) | (r != 0u ? 1u : 0u));
}

REE_FN u32 ree_soft_sqrt(u32 a) {
    if (ree_is_nan(a)) return REE_NAN;
    if (ree_is_zero(a)) return a;
    if ((a & REE_SIGN) != 0u) return REE_NAN;
    if (ree_is_inf(a)) return a;
    ree_unpacked ua = ree_unpack(a);
    // root = floor(sqrt(m * 2^27)), bit by bit: each bit of the root takes two bits of the
    // radicand. If the exponent is odd, m is doubled first.
    u32 m = ua.m;
    if ((ua.e & 1) != 0) m <<= 1u;
    u32 root = 0u, rest = 0u;
    m <<= 7u; // bits 31 and 30 are the first two bits of the radicand
    for (u32 i = 0u; i < 26u; i++) {
        rest = (rest << 2u) | (m >> 30u);
        m <<= 2u;
        u32 trial = (root << 2u) | 1u;
        root <<= 1u;
        if (rest >= trial) {
            rest -= trial;
            root |= 1u;
        }
    }
    return ree_pack32(0u, ua.e >> 1, (root << 6u) | (rest != 0u ? 1u : 0u));
}

#endif
