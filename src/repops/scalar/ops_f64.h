// The scalar functions ree_op_<name> of float64 arithmetic for C and CUDA C. They use the
// processor's binary64 operations, whose results IEEE 754 defines.
#ifndef REE_SCALAR_OPS_F64_H
#define REE_SCALAR_OPS_F64_H

#include "repops/scalar/f64.h"
#include "repops/scalar/fast.h"

#include <math.h>

REE_FN uint64_t ree_double_result(double x) {
    return x == x ? ree_double_bits(x) : UINT64_C(0x7FF8000000000000);
}

REE_FN uint64_t ree_op_add_f64(uint64_t a, uint64_t b) {
    return ree_double_result(ree_from_double_bits(a) + ree_from_double_bits(b));
}
REE_FN uint64_t ree_op_sub_f64(uint64_t a, uint64_t b) {
    return ree_double_result(ree_from_double_bits(a) - ree_from_double_bits(b));
}
REE_FN uint64_t ree_op_mul_f64(uint64_t a, uint64_t b) {
    return ree_double_result(ree_from_double_bits(a) * ree_from_double_bits(b));
}
REE_FN uint64_t ree_op_div_f64(uint64_t a, uint64_t b) {
    return ree_double_result(ree_from_double_bits(a) / ree_from_double_bits(b));
}
REE_FN uint64_t ree_op_fma_f64(uint64_t a, uint64_t b, uint64_t c) {
    return ree_double_result(
        fma(ree_from_double_bits(a), ree_from_double_bits(b), ree_from_double_bits(c)));
}
REE_FN uint64_t ree_op_sqrt_f64(uint64_t x) {
    return ree_double_result(sqrt(ree_from_double_bits(x)));
}

#endif
