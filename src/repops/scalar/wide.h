// Numbers with a 64-bit significand, the intermediate type of the integer elementary functions:
// positive or 0, value m * 2^(e - 63), with bit 63 of m set or m = 0. Each operation has a relative
// error of about 2^-62. The functions that use them round once at the end, and the exhaustive proof
// (PROOF.md) shows that this is accurate enough.
#ifndef REE_SCALAR_WIDE_H
#define REE_SCALAR_WIDE_H

#include "repops/scalar/soft.h"
#include "repops/scalar/polynomials.inc"

struct ree_wide {
    u64 m;
    i32 e;
};
REE_TYPEDEF(ree_wide)

REE_FN ree_wide ree_wide_norm(u64 m, i32 e) {
    ree_wide r;
    u32 n = u64_clz(m);
    r.m = n > 63u ? m : u64_shl(m, n);
    r.e = e - REE_I32(n);
    return r;
}
// Returns |x|. x: bits of a finite nonzero float.
REE_FN ree_wide ree_wide_from(u32 x) {
    ree_unpacked u = ree_unpack(x);
    ree_wide r;
    r.m = REE_U64(u.m << 8u, 0u);
    r.e = u.e;
    return r;
}
REE_FN ree_wide ree_wide_one(void) {
    ree_wide r;
    r.m = REE_U64(REE_SIGN, 0u);
    r.e = 0;
    return r;
}
REE_FN u32 ree_wide_round(u32 sign, ree_wide a) {
    return ree_pack64_any(sign, a.e, a.m);
}
// Returns a * 2^64 for a < 1, rounded down.
REE_FN u64 ree_wide_fraction(ree_wide a) {
    return u64_shr_any(a.m, REE_U32(-1 - a.e));
}

REE_FN ree_wide ree_wide_mul(ree_wide a, ree_wide b) {
    return ree_wide_norm(u64_mulh(a.m, b.m), a.e + b.e + 1);
}
REE_FN ree_wide ree_wide_add(ree_wide a, ree_wide b) {
    if (u64_is_zero(a.m)) return b;
    if (u64_is_zero(b.m)) return a;
    if (a.e < b.e) {
        ree_wide swap = a;
        a = b;
        b = swap;
    }
    u64 m = u64_shr_any(b.m, REE_U32(a.e - b.e) + 1u);
    return ree_wide_norm(u64_add(u64_shr(a.m, 1u), m), a.e + 1);
}
REE_FN ree_wide ree_wide_sub(ree_wide a, ree_wide b) { // a >= b
    if (u64_is_zero(b.m)) return a;
    return ree_wide_norm(u64_sub(a.m, u64_shr_any(b.m, REE_U32(a.e - b.e))), a.e);
}

// Returns about 2^126 / d; bit 63 of d must be set. With D = d / 2^63 in [1, 2) this is 2^63 / D.
REE_FN u64 ree_reciprocal(u64 d) {
    // A division gives 15 correct bits, a Newton step in 32 bits gives 29, and a third-order step
    // in 64 bits the rest.
    u32 high = u64_hi(d), r = (0xFFFFFFFFu / (high >> 16u)) << 15u;
    u32 p = u64_hi(u64_mul32(high, r)); // near 2^31
    if (p < REE_SIGN)
        r += u64_hi(u64_mul32(r, (REE_SIGN - p) << 1u));
    else
        r -= u64_hi(u64_mul32(r, (p - REE_SIGN) << 1u));
    u64 q = u64_add(u64_mul32(high, r), u64_from32(u64_hi(u64_mul32(u64_lo(d), r)))); // near 2^63
    u64 scaled = REE_U64(r, 0u);
    bool below = u64_hi(q) < REE_SIGN;
    u64 err = below ? u64_sub(REE_U64(REE_SIGN, 0u), q) : u64_sub(q, REE_U64(REE_SIGN, 0u));
    u32 top = u64_lo(u64_shr(err, 20u));
    u64 square = u64_from32((top * top) >> 23u); // err^2 / 2^63
    if (below) return u64_add(u64_shr(scaled, 1u), u64_mulh(scaled, u64_add(err, square)));
    return u64_sub(u64_shr(scaled, 1u), u64_mulh(scaled, u64_sub(err, square)));
}
REE_FN ree_wide ree_wide_div(ree_wide a, ree_wide b) {
    return ree_wide_norm(u64_mulh(a.m, ree_reciprocal(b.m)), a.e - b.e + 1);
}

// Returns about 2^63 / sqrt(A) for A = a / 2^62, which must be in [1, 4).
REE_FN u64 ree_reciprocal_root(u64 a) {
    // A polynomial gives 16 correct bits, a Newton step gives 31, and a third-order step in 64 bits
    // the rest.
    u32 high = u64_hi(a), r;
    if ((high & REE_SIGN) != 0u)
        r = u64_hi(u64_mul32(ree_poly_rsqrt32(high << 1u), 0xB504F334u)); // times sqrt(1/2)
    else
        r = ree_poly_rsqrt32(high << 2u);
    r = r > 0x7FFFFFFFu ? 0xFFFFFFFEu : r << 1u;              // 2^32 / sqrt(A)
    u32 p = u64_hi(u64_mul32(high, u64_hi(u64_mul32(r, r)))); // near 2^30
    if (p < 0x40000000u) {
        u32 step = u64_hi(u64_mul32(r, (0x40000000u - p) << 1u));
        r = r > 0xFFFFFFFFu - step ? 0xFFFFFFFFu : r + step;
    } else {
        r -= u64_hi(u64_mul32(r, (p - 0x40000000u) << 1u));
    }
    u64 q = u64_mulh(a, u64_mul32(r, r)); // near 2^62
    u64 scaled = REE_U64(r, 0u);
    bool below = u64_hi(q) < 0x40000000u;
    u64 err = below ? u64_sub(REE_U64(0x40000000u, 0u), q) : u64_sub(q, REE_U64(0x40000000u, 0u));
    u32 top = u64_lo(u64_shr(err, 19u));
    u64 square = u64_from32((top * top) >> 24u);                    // err^2 / 2^62
    square = u64_shr(u64_add(square, u64_add(square, square)), 2u); // times 3 / 4
    if (below) return u64_add(u64_shr(scaled, 1u), u64_mulh(scaled, u64_add(err, square)));
    return u64_sub(u64_shr(scaled, 1u), u64_mulh(scaled, u64_sub(err, square)));
}
REE_FN ree_wide ree_wide_rsqrt(ree_wide a) {
    u64 m = (a.e & 1) != 0 ? a.m : u64_shr(a.m, 1u);
    return ree_wide_norm(ree_reciprocal_root(m), -(a.e >> 1));
}
REE_FN ree_wide ree_wide_sqrt(ree_wide a) {
    if (u64_is_zero(a.m)) return a;
    return ree_wide_mul(a, ree_wide_rsqrt(a));
}

#endif
