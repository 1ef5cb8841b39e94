// The scalar functions ree_op_<name> for conversions between numbers of different formats, only for
// C: with the processor's conversions and without branches, so that loops over arrays vectorise.
// Each gives the same bits as the function of ops_convert.h with its name.
//
// A float that an integer cannot hold has no defined conversion in C. It is replaced by 0 before
// the conversion, and its result is chosen by its bits.
#ifndef REE_SCALAR_OPS_CONVERT_HOST_H
#define REE_SCALAR_OPS_CONVERT_HOST_H

#include "repops/scalar/ops_f64.h"

// ree_op_<name>: a float of the unsigned type `word`, whose infinity has the bits `infinity`, to
// the signed integer `type` with the bits of the unsigned type `result`. `bound` has the bits of
// 2^31 or 2^63, the first float beyond the integer's range.
#define REE_TO_SIGNED(name, word, value_of, infinity, bound, type, result)                         \
    static inline result ree_op_##name(word x) {                                                   \
        const word magnitude = x & ((word)-1 >> 1);                                                \
        const result most = (result)-1 >> 1;                                                       \
        const bool held = magnitude < bound;                                                       \
        const result value = (result)(type)value_of(held ? x : 0);                                 \
        const result limit = magnitude > infinity ? 0 : most + (result)(x != magnitude);           \
        return held ? value : limit;                                                               \
    }
// Likewise to the unsigned integer `result`; negative numbers give 0. `bound` is 2^32 or 2^64.
#define REE_TO_UNSIGNED(name, word, value_of, infinity, bound, result)                             \
    static inline result ree_op_##name(word x) {                                                   \
        const bool held = x < bound;                                                               \
        const result value = (result)value_of(held ? x : 0);                                       \
        const result limit = x > infinity ? 0 : (result)-1;                                        \
        return held ? value : limit;                                                               \
    }

#define REE_F64_INFINITY UINT64_C(0x7FF0000000000000)
REE_TO_SIGNED(f32_to_i32, uint32_t, ree_float, REE_INF, 0x4F000000u, int32_t, uint32_t)
REE_TO_SIGNED(f32_to_i64, uint32_t, ree_float, REE_INF, 0x5F000000u, int64_t, uint64_t)
REE_TO_UNSIGNED(f32_to_u32, uint32_t, ree_float, REE_INF, 0x4F800000u, uint32_t)
REE_TO_UNSIGNED(f32_to_u64, uint32_t, ree_float, REE_INF, 0x5F800000u, uint64_t)
REE_TO_SIGNED(f64_to_i32, uint64_t, ree_from_double_bits, REE_F64_INFINITY,
              UINT64_C(0x41E0000000000000), int32_t, uint32_t)
REE_TO_SIGNED(f64_to_i64, uint64_t, ree_from_double_bits, REE_F64_INFINITY,
              UINT64_C(0x43E0000000000000), int64_t, uint64_t)
REE_TO_UNSIGNED(f64_to_u32, uint64_t, ree_from_double_bits, REE_F64_INFINITY,
                UINT64_C(0x41F0000000000000), uint32_t)
REE_TO_UNSIGNED(f64_to_u64, uint64_t, ree_from_double_bits, REE_F64_INFINITY,
                UINT64_C(0x43F0000000000000), uint64_t)

static inline uint64_t ree_op_f32_to_f64(uint32_t x) {
    return ree_double_result((double)ree_float(x));
}
static inline uint32_t ree_op_f64_to_f32(uint64_t x) {
    return ree_result((float)ree_from_double_bits(x));
}
static inline uint64_t ree_op_i64_to_f64(uint64_t x) {
    return ree_double_bits((double)(int64_t)x);
}
static inline uint64_t ree_op_u64_to_f64(uint64_t x) {
    return ree_double_bits((double)x);
}

// float16: 5 exponent bits (bias 15), 10 significand bits. Each function computes the result for
// normal numbers and for subnormal ones, and chooses.
static inline uint32_t ree_op_f16_to_f32(uint32_t h) {
    const uint32_t sign = (h & 0x8000u) << 16, a = h & 0x7FFFu;
    const uint32_t normal = (a << 13) + (112u << 23); // the bias grows from 15 to 127
    const uint32_t beyond = a > 0x7C00u ? REE_NAN : sign | REE_INF;
    const uint32_t small = ree_bits((float)(int32_t)(a & 0x3FFu) * 0x1p-24f); // exact
    const uint32_t finite = sign | (a < 0x400u ? small : normal);
    return a >= 0x7C00u ? beyond : finite;
}
static inline uint32_t ree_op_f32_to_f16(uint32_t x) {
    const uint32_t sign = x >> 16 & 0x8000u, a = x & 0x7FFFFFFFu;
    // Rounds to nearest, ties to even; may carry up to infinity.
    const uint32_t normal = (a - (112u << 23) + 0xFFFu + (a >> 13 & 1u)) >> 13;
    // The sum with 0.5, whose last bit is worth 2^-24 as that of subnormal numbers of float16,
    // rounds likewise.
    const bool is_small = a < 0x38800000u; // below 2^-14
    const uint32_t small = ree_bits(ree_float(is_small ? a : 0) + 0.5f) - ree_bits(0.5f);
    const uint32_t finite = is_small ? small : normal;
    const uint32_t clamped = a >= 0x47800000u ? 0x7C00u : finite; // 2^16 and above
    return a > REE_INF ? 0x7E00u : sign | clamped;
}

#endif
