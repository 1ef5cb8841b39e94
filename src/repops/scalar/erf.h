// erf and rsqrt of binary32 in integer arithmetic (NUMERICS.md, section 4).
//
// For |x| = (i + t) / 4 < 4 with an integer i and 0 <= t < 1, erf(x) = x * p_i(t). There is one
// polynomial p_i for each i from 0 to 15.
#ifndef REE_SCALAR_ERF_H
#define REE_SCALAR_ERF_H

#include "repops/scalar/wide.h"

REE_FN u32 ree_int_erf_f32(u32 x) {
    if (ree_is_nan(x)) return REE_NAN;
    u32 a = x & 0x7FFFFFFFu;
    if (a >= 0x40800000u) return (x & REE_SIGN) | REE_ONE; // 4
    if (a == 0u) return x;
    ree_wide v = ree_wide_from(a);
    // |x| * 4 in fixed point: 4 bits for the integer part i, then 60 bits for the fraction t.
    u64 place = u64_shr_any(v.m, REE_U32(1 - v.e));
    u32 row = (u64_hi(place) >> 28u) * REE_ERF_TERMS;
    u64 t = u64_shl(place, 4u), p = REE_U64(0u, 0u);
    for (u32 i = 0u; i < REE_ERF_TERMS; i++) {
        u64 q = u64_mulh(p, t);
        // p is in two's complement; u64_mulh takes it as unsigned.
        if ((u64_hi(p) & REE_SIGN) != 0u) q = u64_sub(q, t);
        p = u64_add(REE_ERF[row + i], q);
    }
    return ree_wide_round(x & REE_SIGN, ree_wide_mul(v, ree_wide_norm(p, 1)));
}

REE_FN u32 ree_int_rsqrt_f32(u32 x) {
    if (ree_is_nan(x)) return REE_NAN;
    if (ree_is_zero(x)) return (x & REE_SIGN) | REE_INF;
    if ((x & REE_SIGN) != 0u) return REE_NAN;
    if (x == REE_INF) return 0u;
    return ree_wide_round(0u, ree_wide_rsqrt(ree_wide_from(x)));
}

#endif
