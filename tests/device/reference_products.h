// Reference implementations of matmul and conv, and random operands for them. Tests compare the
// kernels' bytes with theirs. They compute directly from the definition (NUMERICS.md section 3).
// Neither has epilogues; matmul is float32 only.
#ifndef REE_TESTS_DEVICE_REFERENCE_PRODUCTS_H
#define REE_TESTS_DEVICE_REFERENCE_PRODUCTS_H

#include "base/any.h"
#include "repops/repop.h"

void reference_matmul_f32(const struct ree_matmul_params *p, const float *a, const float *b,
                          float *out);
void reference_conv_f32(const struct ree_conv_params *p, const float *x, const float *w,
                        float *out);
// conv of 8-bit integers with int32 results. x and w are int8 or uint8, as p->x_dtype and
// p->w_dtype say. pad: the value of x in the padding, as a byte of x's type.
void reference_conv_bytes(const struct ree_conv_params *p, const uint8_t *x, const uint8_t *w,
                          uint8_t pad, int32_t *out);

// State of a random number generator, initialized with any seed. Each seed gives a fixed sequence.
struct random_source {
    uint64_t state;
};
uint32_t random_u32(struct random_source *random);
uint32_t random_below(struct random_source *random, uint32_t n);
uint32_t random_of(struct random_source *random, const uint32_t *choices, uint32_t n);

enum random_floats {
    RANDOM_UNIFORM, // uniform in [-1, 1]
    RANDOM_WIDE,    // from subnormals to below 2^64, so that the product of any two is finite
    RANDOM_SPECIAL, // uniform, mixed with infinities, NaNs, zeros of both signs and extremes
    RANDOM_N_FLOATS
};
void random_fill(struct random_source *random, enum random_floats kind, float *out, uint32_t n);

#endif
