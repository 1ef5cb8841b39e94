// binary64 arithmetic in integers: add, multiply, fused multiply-add, divide and square root,
// rounded to nearest even, subnormals kept, NaN results 0x7FF8000000000000 (NUMERICS.md, section
// 1). For devices that lack binary64 arithmetic or do not compute it as IEEE 754 says. The CPU and
// CUDA use the processor's own (ops_f64.h).
#ifndef REE_SCALAR_SOFT64_H
#define REE_SCALAR_SOFT64_H

#include "repops/scalar/f64.h"

#define REE_F64_ONE REE_U64(0x3FF00000u, 0u)

// Returns the bits of m * 2^(e - 63) rounded to binary64. Bit 63 of m must be set. Bit 0 of m is
// sticky: it must also be 1 if the exact number has lower bits than m. `sign` is 0 or REE_SIGN, the
// sign bit in the high word.
REE_FN u64 ree_f64_pack(u32 sign, i32 e, u64 m) {
    i32 biased = e + 1023;
    if (biased >= 2047) return REE_U64(sign | 0x7FF00000u, 0u);
    if (biased <= 0) {
        m = u64_shr_sticky(m, REE_U32(1 - biased));
        biased = 1;
    }
    u64 q = u64_shr(m, 11u);
    u32 rest = u64_lo(m) & 0x7FFu;
    if (rest > 0x400u || (rest == 0x400u && (u64_lo(q) & 1u) != 0u)) q = u64_add(q, u64_from32(1u));
    // The addition is also correct for carries into the exponent field, as in ree_pack32.
    return u64_add(REE_U64(sign | (REE_U32(biased - 1) << 20u), 0u), q);
}

REE_FN u64 ree_f64_signed_inf(u32 sign) {
    return REE_U64(sign | 0x7FF00000u, 0u);
}
REE_FN u64 ree_f64_signed_zero(u32 sign) {
    return REE_U64(sign, 0u);
}

REE_FN u64 ree_f64_soft_add(u64 a, u64 b) {
    if (ree_f64_is_nan(a) || ree_f64_is_nan(b)) return REE_F64_NAN;
    if (ree_f64_is_inf(a)) return ree_f64_is_inf(b) && !u64_eq(a, b) ? REE_F64_NAN : a;
    if (ree_f64_is_inf(b)) return b;
    if (ree_f64_is_zero(b)) return ree_f64_is_zero(a) ? u64_and(a, b) : a;
    if (ree_f64_is_zero(a)) return b;
    if (u64_lt(ree_f64_magnitude(a), ree_f64_magnitude(b))) {
        u64 swap = a;
        a = b;
        b = swap;
    }
    ree_f64_parts ua = ree_f64_unpack(a), ub = ree_f64_unpack(b);
    // The leading bit of ma is bit 62. Bit 63 is free for a carry, and the lowest ten bits are
    // guard bits and the sticky bit.
    u64 ma = u64_shr(ua.m, 1u), mb = u64_shr_sticky(u64_shr(ub.m, 1u), REE_U32(ua.e - ub.e));
    bool subtract = ((u64_hi(a) ^ u64_hi(b)) & REE_SIGN) != 0u;
    u64 m = subtract ? u64_sub(ma, mb) : u64_add(ma, mb);
    if (u64_is_zero(m)) return m;
    u32 shift = u64_clz(m);
    return ree_f64_pack(u64_hi(a) & REE_SIGN, ua.e + 1 - REE_I32(shift), u64_shl(m, shift));
}
REE_FN u64 ree_f64_soft_sub(u64 a, u64 b) {
    return ree_f64_soft_add(a, u64_xor(b, REE_U64(REE_SIGN, 0u)));
}

// An unsigned 128-bit integer.
struct ree_f64_wide {
    u64 hi, lo;
};
REE_TYPEDEF(ree_f64_wide)
REE_FN ree_f64_wide ree_f64_wide_mul(u64 a, u64 b) {
    u32 ah = u64_hi(a), al = u64_lo(a), bh = u64_hi(b), bl = u64_lo(b);
    u64 low = u64_mul32(al, bl), high = u64_mul32(ah, bh);
    // The middle products; m1 includes the high word of `low`. Each is below 2^64, but their sum
    // may not be.
    u64 m1 = u64_add(u64_mul32(ah, bl), u64_from32(u64_hi(low))), m2 = u64_mul32(al, bh);
    u64 mid = u64_add(m1, m2);
    u32 carry = u64_lt(mid, m2) ? 1u : 0u;
    ree_f64_wide r;
    r.hi = u64_add(high, REE_U64(carry, u64_hi(mid)));
    r.lo = REE_U64(u64_lo(mid), u64_lo(low));
    return r;
}
REE_FN ree_f64_wide ree_f64_wide_shl(ree_f64_wide a, u32 n) { // n < 128
    ree_f64_wide r;
    if (n >= 64u) {
        r.hi = n == 64u ? a.lo : u64_shl(a.lo, n - 64u);
        r.lo = u64_from32(0u);
        return r;
    }
    if (n == 0u) return a;
    r.hi = u64_or(u64_shl(a.hi, n), u64_shr(a.lo, 64u - n));
    r.lo = u64_shl(a.lo, n);
    return r;
}
REE_FN ree_f64_wide ree_f64_wide_shr(ree_f64_wide a, u32 n) { // any n; bit 0 is sticky
    ree_f64_wide r;
    if (n == 0u) return a;
    if (n >= 64u) {
        u32 lost = u64_is_zero(a.lo) ? 0u : 1u;
        r.hi = u64_from32(0u);
        r.lo = u64_or(u64_shr_sticky(a.hi, n - 64u), u64_from32(lost));
        return r;
    }
    r.hi = u64_shr(a.hi, n);
    r.lo = u64_or(u64_shr_sticky(a.lo, n), u64_shl(a.hi, 64u - n));
    return r;
}
REE_FN bool ree_f64_wide_lt(ree_f64_wide a, ree_f64_wide b) {
    return u64_lt(a.hi, b.hi) || (u64_eq(a.hi, b.hi) && u64_lt(a.lo, b.lo));
}
REE_FN ree_f64_wide ree_f64_wide_add(ree_f64_wide a, ree_f64_wide b) {
    ree_f64_wide r;
    r.lo = u64_add(a.lo, b.lo);
    r.hi = u64_add(u64_add(a.hi, b.hi), u64_from32(u64_lt(r.lo, a.lo) ? 1u : 0u));
    return r;
}
REE_FN ree_f64_wide ree_f64_wide_sub(ree_f64_wide a, ree_f64_wide b) {
    ree_f64_wide r;
    r.lo = u64_sub(a.lo, b.lo);
    r.hi = u64_sub(u64_sub(a.hi, b.hi), u64_from32(u64_lt(a.lo, b.lo) ? 1u : 0u));
    return r;
}
// Returns the bits of m * 2^(e - 127) rounded to binary64, with the sign. m must not be 0.
REE_FN u64 ree_f64_wide_pack(u32 sign, i32 e, ree_f64_wide m) {
    u32 n = u64_is_zero(m.hi) ? 64u + u64_clz(m.lo) : u64_clz(m.hi);
    m = ree_f64_wide_shl(m, n);
    return ree_f64_pack(sign, e - REE_I32(n),
                        u64_or(m.hi, u64_from32(u64_is_zero(m.lo) ? 0u : 1u)));
}

REE_FN u64 ree_f64_soft_mul(u64 a, u64 b) {
    u32 sign = (u64_hi(a) ^ u64_hi(b)) & REE_SIGN;
    if (ree_f64_is_nan(a) || ree_f64_is_nan(b)) return REE_F64_NAN;
    bool zero = ree_f64_is_zero(a) || ree_f64_is_zero(b);
    if (ree_f64_is_inf(a) || ree_f64_is_inf(b))
        return zero ? REE_F64_NAN : ree_f64_signed_inf(sign);
    if (zero) return ree_f64_signed_zero(sign);
    ree_f64_parts ua = ree_f64_unpack(a), ub = ree_f64_unpack(b);
    return ree_f64_wide_pack(sign, ua.e + ub.e + 1, ree_f64_wide_mul(ua.m, ub.m));
}

REE_FN u64 ree_f64_soft_fma(u64 a, u64 b, u64 c) {
    u32 sp = (u64_hi(a) ^ u64_hi(b)) & REE_SIGN, sc = u64_hi(c) & REE_SIGN;
    if (ree_f64_is_nan(a) || ree_f64_is_nan(b) || ree_f64_is_nan(c)) return REE_F64_NAN;
    bool zero_product = ree_f64_is_zero(a) || ree_f64_is_zero(b);
    if (ree_f64_is_inf(a) || ree_f64_is_inf(b)) {
        if (zero_product || (ree_f64_is_inf(c) && sp != sc)) return REE_F64_NAN;
        return ree_f64_signed_inf(sp);
    }
    if (ree_f64_is_inf(c)) return c;
    if (zero_product) return ree_f64_is_zero(c) ? ree_f64_signed_zero(sp & sc) : c;
    ree_f64_parts ua = ree_f64_unpack(a), ub = ree_f64_unpack(b);
    // Significands have 53 bits, so the product has at most 106 bits, at the upper end of the 128.
    // Its leading bit moves from bit 127 or 126 to 125 or 124, and the addend's to 125; no set bit
    // is lost. A further shift by up to 20 places loses none either, so cancellation is exact.
    ree_f64_wide p = ree_f64_wide_shr(ree_f64_wide_mul(ua.m, ub.m), 2u), q;
    i32 e = ua.e + ub.e + 1;
    if (ree_f64_is_zero(c)) return ree_f64_wide_pack(sp, e + 2, p);
    ree_f64_parts uc = ree_f64_unpack(c);
    q.hi = u64_shr(uc.m, 2u);
    q.lo = u64_from32(0u);
    if (e >= uc.e) {
        q = ree_f64_wide_shr(q, REE_U32(e - uc.e));
    } else {
        p = ree_f64_wide_shr(p, REE_U32(uc.e - e));
        e = uc.e;
    }
    if (sp == sc) return ree_f64_wide_pack(sp, e + 2, ree_f64_wide_add(p, q));
    if (u64_eq(p.hi, q.hi) && u64_eq(p.lo, q.lo)) return u64_from32(0u);
    if (ree_f64_wide_lt(p, q)) return ree_f64_wide_pack(sc, e + 2, ree_f64_wide_sub(q, p));
    return ree_f64_wide_pack(sp, e + 2, ree_f64_wide_sub(p, q));
}

REE_FN u64 ree_f64_soft_div(u64 a, u64 b) {
    u32 sign = (u64_hi(a) ^ u64_hi(b)) & REE_SIGN;
    if (ree_f64_is_nan(a) || ree_f64_is_nan(b)) return REE_F64_NAN;
    if (ree_f64_is_inf(a)) return ree_f64_is_inf(b) ? REE_F64_NAN : ree_f64_signed_inf(sign);
    if (ree_f64_is_inf(b)) return ree_f64_signed_zero(sign);
    if (ree_f64_is_zero(b)) return ree_f64_is_zero(a) ? REE_F64_NAN : ree_f64_signed_inf(sign);
    if (ree_f64_is_zero(a)) return ree_f64_signed_zero(sign);
    ree_f64_parts ua = ree_f64_unpack(a), ub = ree_f64_unpack(b);
    i32 e = ua.e - ub.e;
    // Divides the significands as integers of 53 bits: r is the remainder, d the divisor.
    u64 r = u64_shr(ua.m, 11u), d = u64_shr(ub.m, 11u), q = u64_from32(0u);
    if (u64_lt(r, d)) {
        r = u64_shl(r, 1u);
        e -= 1;
    }
    for (u32 i = 0u; i < 56u; i++) { // the first bit of q is 1
        q = u64_shl(q, 1u);
        if (!u64_lt(r, d)) {
            r = u64_sub(r, d);
            q = u64_or(q, u64_from32(1u));
        }
        r = u64_shl(r, 1u);
    }
    return ree_f64_pack(sign, e, u64_or(u64_shl(q, 8u), u64_from32(u64_is_zero(r) ? 0u : 1u)));
}

REE_FN u64 ree_f64_soft_sqrt(u64 a) {
    if (ree_f64_is_nan(a)) return REE_F64_NAN;
    if (ree_f64_is_zero(a)) return a;
    if (ree_f64_is_negative(a)) return REE_F64_NAN;
    if (ree_f64_is_inf(a)) return a;
    ree_f64_parts ua = ree_f64_unpack(a);
    // Bit by bit, as in ree_soft_sqrt. Bits 63 and 62 of m are the first two bits of the radicand.
    u64 m = u64_shr(ua.m, (ua.e & 1) != 0 ? 0u : 1u), root = u64_from32(0u), rest = root;
    for (u32 i = 0u; i < 55u; i++) {
        rest = u64_or(u64_shl(rest, 2u), u64_from32(u64_hi(m) >> 30u));
        m = u64_shl(m, 2u);
        u64 trial = u64_or(u64_shl(root, 2u), u64_from32(1u));
        root = u64_shl(root, 1u);
        if (!u64_lt(rest, trial)) {
            rest = u64_sub(rest, trial);
            root = u64_or(root, u64_from32(1u));
        }
    }
    return ree_f64_pack(0u, ua.e >> 1,
                        u64_or(u64_shl(root, 9u), u64_from32(u64_is_zero(rest) ? 0u : 1u)));
}

#endif
