#include "reference_products.h"
#include "splitmix.h"

#include <math.h>
#include <string.h>

// State of one reduction: chunks of 256 from +0, terms and chunk results in ascending order; + 0.
struct chain {
    float total, acc;
    uint32_t n;
};

static void chain_add(struct chain *chain, float a, float b) {
    if (chain->n > 0 && chain->n % REE_CHUNK == 0) {
        chain->total = chain->n == REE_CHUNK ? chain->acc : chain->total + chain->acc;
        chain->acc = 0.0f;
    }
    chain->acc = fmaf(a, b, chain->acc);
    chain->n++;
}

static float chain_finish(struct chain *chain) {
    float total = chain->n > REE_CHUNK ? chain->total + chain->acc : chain->acc;
    total = total + 0.0f;
    uint32_t nan = 0x7FC00000u;
    if (total != total) memcpy(&total, &nan, 4);
    return total;
}

void reference_matmul_f32(const struct ree_matmul_params *p, const float *a, const float *b,
                          float *out) {
    for (uint32_t batch = 0; batch < p->n_batch; batch++) {
        int64_t at_a = p->a_offset, at_b = p->b_offset;
        uint32_t rest = batch;
        for (uint32_t d = p->batch_rank; d-- > 0; rest /= p->batch_dims[d]) {
            at_a += (int64_t)(rest % p->batch_dims[d]) * p->a_batch_strides[d];
            at_b += (int64_t)(rest % p->batch_dims[d]) * p->b_batch_strides[d];
        }
        for (uint32_t i = 0; i < p->m; i++)
            for (uint32_t j = 0; j < p->n; j++) {
                struct chain chain = {0};
                for (uint32_t l = 0; l < p->k; l++)
                    chain_add(&chain,
                              a[at_a + (int64_t)i * p->a_stride_m + (int64_t)l * p->a_stride_k],
                              b[at_b + (int64_t)l * p->b_stride_k + (int64_t)j * p->b_stride_n]);
                *out++ = chain_finish(&chain);
            }
    }
}

// Returns the input coordinate along one axis for an output position and a tap; -1: a zero.
static int64_t input_coordinate(const struct ree_conv_params *p, int axis, uint32_t o, uint32_t k) {
    int64_t i;
    if (p->transposed) {
        int64_t spread = (int64_t)o + p->pad[axis] - (int64_t)k * p->dilation[axis];
        if (spread < 0 || spread % p->stride[axis] != 0) return -1;
        i = spread / p->stride[axis];
    } else {
        i = (int64_t)o * p->stride[axis] + (int64_t)k * p->dilation[axis] - p->pad[axis];
    }
    return i >= 0 && i < p->in[axis] ? i : -1;
}

// Finds the operands of term (c, k) of output position o of output channel (g, i) of image b. *x is
// -1 in the padding.
static void conv_term(const struct ree_conv_params *p, uint32_t b, uint32_t g, uint32_t i,
                      const uint32_t o[3], uint32_t c, const uint32_t k[3], int64_t *x, size_t *w) {
    *x = (((int64_t)b * p->groups + g) * p->c) + c;
    *w = p->transposed ? ((size_t)g * p->c + c) * p->m + i : ((size_t)g * p->m + i) * p->c + c;
    for (int axis = 0; axis < 3; axis++) {
        int64_t at = input_coordinate(p, axis, o[axis], k[axis]);
        *x = *x < 0 || at < 0 ? -1 : *x * p->in[axis] + at;
        *w = *w * p->kernel[axis] + k[axis];
    }
}

// Returns the bits of one output element.
static uint32_t conv_at(const struct ree_conv_params *p, const void *x, const void *w, int32_t pad,
                        uint32_t b, uint32_t g, uint32_t i, const uint32_t o[3]) {
    struct chain chain = {0};
    uint32_t sum = 0, k[3];
    for (uint32_t c = 0; c < p->c; c++)
        for (k[0] = 0; k[0] < p->kernel[0]; k[0]++)
            for (k[1] = 0; k[1] < p->kernel[1]; k[1]++)
                for (k[2] = 0; k[2] < p->kernel[2]; k[2]++) {
                    int64_t at_x;
                    size_t at_w;
                    conv_term(p, b, g, i, o, c, k, &at_x, &at_w);
                    if (p->x_dtype == REE_F32) {
                        chain_add(&chain, at_x < 0 ? 0.0f : ((const float *)x)[at_x],
                                  ((const float *)w)[at_w]);
                        continue;
                    }
                    int32_t xv = at_x < 0               ? pad
                                 : p->x_dtype == REE_I8 ? ((const int8_t *)x)[at_x]
                                                        : ((const uint8_t *)x)[at_x];
                    int32_t wv = p->w_dtype == REE_I8 ? ((const int8_t *)w)[at_w]
                                                      : ((const uint8_t *)w)[at_w];
                    sum += (uint32_t)(xv * wv);
                }
    if (p->x_dtype != REE_F32) return sum;
    float total = chain_finish(&chain);
    memcpy(&sum, &total, sizeof sum);
    return sum;
}

static void conv(const struct ree_conv_params *p, const void *x, const void *w, int32_t pad,
                 ree_any_u32 *out) {
    for (uint32_t b = 0; b < p->n; b++)
        for (uint32_t g = 0; g < p->groups; g++)
            for (uint32_t i = 0; i < p->m; i++) {
                uint32_t o[3];
                for (o[0] = 0; o[0] < p->out[0]; o[0]++)
                    for (o[1] = 0; o[1] < p->out[1]; o[1]++)
                        for (o[2] = 0; o[2] < p->out[2]; o[2]++)
                            *out++ = conv_at(p, x, w, pad, b, g, i, o);
            }
}

void reference_conv_f32(const struct ree_conv_params *p, const float *x, const float *w,
                        float *out) {
    conv(p, x, w, 0, (ree_any_u32 *)out);
}

void reference_conv_bytes(const struct ree_conv_params *p, const uint8_t *x, const uint8_t *w,
                          uint8_t pad, int32_t *out) {
    conv(p, x, w, p->x_dtype == REE_I8 ? (int8_t)pad : pad, (ree_any_u32 *)out);
}

uint32_t random_u32(struct random_source *random) {
    return (uint32_t)(splitmix_step(&random->state) >> 16);
}

uint32_t random_below(struct random_source *random, uint32_t n) {
    return (uint32_t)(((uint64_t)random_u32(random) * n) >> 32);
}

uint32_t random_of(struct random_source *random, const uint32_t *choices, uint32_t n) {
    return choices[random_below(random, n)];
}

static float from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

void random_fill(struct random_source *random, enum random_floats kind, float *out, uint32_t n) {
    static const uint32_t special[] = {
        0x7F800000u, 0xFF800000u, 0x7FC00000u, 0xFFC12345u, 0x7F812345u, 0x7F7FFFFFu,
        0xFF7FFFFFu, 0x00000000u, 0x80000000u, 0x00000001u, 0x80000001u, 0x00800000u,
    };
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits = random_u32(random);
        out[i] = (float)(int32_t)bits * 0x1p-31f;
        if (kind == RANDOM_WIDE) {
            // Exponents from subnormal to 2^63.
            uint32_t exponent = random_below(random, 191);
            out[i] = from_bits((bits & 0x807FFFFFu) | exponent << 23);
        }
        // Rare enough that most sums stay finite.
        if (kind == RANDOM_SPECIAL && random_below(random, 400) == 0)
            out[i] = from_bits(special[random_below(random, sizeof special / sizeof *special)]);
        if (kind == RANDOM_SPECIAL && random_below(random, 8) == 0)
            out[i] = from_bits(bits & 1u << 31);
    }
}
