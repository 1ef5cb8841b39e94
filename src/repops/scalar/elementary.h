// The elementary functions in integers, one file for each family.
#ifndef REE_SCALAR_ELEMENTARY_H
#define REE_SCALAR_ELEMENTARY_H

#include "repops/scalar/soft.h"

#ifdef REE_GLSL
u32 ree_int_pow_f32(u32 a, u32 b) {
    return REE_NAN;
}
#define REE_LATER(name)                                                                            \
    u32 ree_int_##name##_f32(u32 x) {                                                              \
        return REE_NAN;                                                                            \
    }
#endif
REE_LATER(rsqrt)
REE_LATER(exp) REE_LATER(expm1) REE_LATER(log) REE_LATER(log1p) REE_LATER(sin) REE_LATER(cos)
    REE_LATER(tan) REE_LATER(asin) REE_LATER(acos) REE_LATER(atan) REE_LATER(sinh) REE_LATER(cosh)
        REE_LATER(tanh) REE_LATER(asinh) REE_LATER(acosh) REE_LATER(atanh) REE_LATER(erf)
            REE_LATER(sigmoid) REE_LATER(softplus)

#endif
