// Loads elements of a product's operands as words of float32: narrow floats, bytes and blockwise
// weights. They are words because some drivers lose subnormal numbers in float variables.
#ifndef REE_GLSL_FACTOR
#define REE_GLSL_FACTOR

#include "repops/scalar/convert.h"

uint factor_load(const ReeWords p, const uint dtype, const uint i) {
    uint x = ree_load(p, dtype, i).x;
    if (dtype == REE_DT_F16) x = ree_soft_f16_to_f32(x);
    if (dtype == REE_DT_BF16) x = ree_soft_bf16_to_f32(x);
    if (dtype == REE_DT_I8 || dtype == REE_DT_U8) x = ree_soft_i32_to_f32(x);
    return x;
}

// Returns element `at` of blockwise weights, counted through all blocks: (q - z) * scale, rounded
// once. Without zero points z is 2^(bits - 1).
uint factor_load_block(const ReeWords numbers, const ReeWords scales, const ReeWords zero_points,
                       const uint block_size, const uint bits, const bool has_zero_points,
                       const uint at) {
    uint q = bits == 8u ? ree_load8(numbers, at) : (numbers.w[at >> 3u] >> (at % 8u * 4u)) & 15u;
    uint block = at / block_size;
    uint z = has_zero_points ? ree_load8(zero_points, block) : 1u << (bits - 1u);
    return ree_mul(ree_soft_i32_to_f32(q - z), scales.w[block]);
}

#endif
