// The scalar functions ree_op_<name> for conversions between numbers of different formats, in
// integers: for CUDA C and GLSL, and for tests in C. C computes them with its own conversions:
// ops_convert_host.h.
#ifndef REE_SCALAR_OPS_CONVERT_H
#define REE_SCALAR_OPS_CONVERT_H

#include "repops/scalar/convert.h"
#include "repops/scalar/f64.h"

REE_FN u32 ree_op_f32_to_i32(u32 x) {
    return ree_soft_f32_to_i32(x);
}
REE_FN u32 ree_op_f32_to_u32(u32 x) {
    return ree_soft_f32_to_u32(x);
}
REE_FN u64 ree_op_f32_to_i64(u32 x) {
    return ree_soft_f32_to_i64(x);
}
REE_FN u64 ree_op_f32_to_u64(u32 x) {
    return ree_soft_f32_to_u64(x);
}
REE_FN u32 ree_op_f16_to_f32(u32 x) {
    return ree_soft_f16_to_f32(x & 0xFFFFu);
}
REE_FN u32 ree_op_f32_to_f16(u32 x) {
    return ree_soft_f32_to_f16(x);
}
REE_FN u32 ree_op_f64_to_f32(u64 x) {
    return ree_f64_to_f32(x);
}
REE_FN u64 ree_op_f32_to_f64(u32 x) {
    return ree_f32_to_f64(x);
}
REE_FN u32 ree_op_f64_to_i32(u64 x) {
    return ree_f64_to_i32(x);
}
REE_FN u32 ree_op_f64_to_u32(u64 x) {
    return ree_f64_to_u32(x);
}
REE_FN u64 ree_op_f64_to_i64(u64 x) {
    return ree_f64_to_i64(x);
}
REE_FN u64 ree_op_f64_to_u64(u64 x) {
    return ree_f64_to_u64(x);
}
REE_FN u64 ree_op_i64_to_f64(u64 x) {
    return ree_i64_to_f64(x);
}
REE_FN u64 ree_op_u64_to_f64(u64 x) {
    return ree_u64_to_f64(x);
}

#endif
