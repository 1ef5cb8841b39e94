// matmul and conv computed directly from the definition (NUMERICS.md section 3), for byte
// comparisons, and random operands for them. Neither has epilogues; matmul is float32 only.
#ifndef REE_TESTS_DEVICE_REFERENCE_PRODUCTS_H
#define REE_TESTS_DEVICE_REFERENCE_PRODUCTS_H

#include "base/any.h"
#include "repops/repop.h"

void reference_matmul_f32(const struct ree_matmul_params *p, const float *a, const float *b,
                          float *out);
void reference_conv_f32(const struct ree_conv_params *p, const float *x, const float *w,
                        float *out);
// The operands are bytes of the types that p names. pad: the value of x outside its bounds.
void reference_conv_bytes(const struct ree_conv_params *p, const uint8_t *x, const uint8_t *w,
                          uint8_t pad, int32_t *out);

// A small generator with a fixed sequence for each seed.
struct random_source {
    uint64_t state;
};
uint32_t random_u32(struct random_source *random);
uint32_t random_below(struct random_source *random, uint32_t n);
uint32_t random_of(struct random_source *random, const uint32_t *choices, uint32_t n);

enum random_floats {
    RANDOM_UNIFORM, // [-1, 1)
    RANDOM_WIDE,    // any exponent with which products of two stay finite, and subnormals
    RANDOM_SPECIAL, // uniform, mixed with infinities, NaNs, zeros of both signs and extremes
    RANDOM_N_FLOATS
};
void random_fill(struct random_source *random, enum random_floats kind, float *out, uint32_t n);

#endif
