// What the instructions of 64-bit ARM for products of bfloat16 and float16 compute, on random lanes
// with cancellation, subnormals and the whole range of exponents:
//
//     BFMLALB, BFMLALT  c + a * b of the even or odd elements of pairs of bfloat16
//     FMLAL, FMLAL2     c + a * b of the lower or upper half of vectors of float16
//     BFDOT             two terms of a pair of bfloat16
//
// The first four are fma in binary32, rounded once, with subnormals: steps of a chunk-dot
// (NUMERICS.md, section 3). BFDOT is not, in either order of the two terms.
#include <arm_neon.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define N_VECTORS 500000

static uint64_t state = 88172645463325252u;

static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static float of_bf16(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static float of_f16(uint16_t x) {
    __fp16 h;
    memcpy(&h, &x, sizeof h);
    return (float)h;
}

// A finite number whose biased exponent is below `exponents`.
static uint16_t draw_narrow(unsigned exponents, unsigned mantissa_bits) {
    return (uint16_t)((draw() & 0x8000) | (draw() % exponents) << mantissa_bits |
                      (draw() & ((1u << mantissa_bits) - 1)));
}

// A number near -product, so that the sum cancels, or any finite number.
static float draw_sum(float product) {
    float sum = -product;
    uint32_t bits;
    memcpy(&bits, &sum, sizeof bits);
    switch (draw() % 4) {
    case 0: break;
    case 1: bits ^= draw() & 0xFF; break;
    case 2: bits ^= draw() & 0xFFFF; break;
    default: bits = (uint32_t)((draw() & 0x80000000u) | (draw() % 255) << 23 | (draw() & 0x7FFFFF));
    }
    memcpy(&sum, &bits, sizeof sum);
    return isfinite(sum) ? sum : 1;
}

static int differ(float a, float b) {
    return memcmp(&a, &b, sizeof a) != 0 && !(isnan(a) && isnan(b));
}

int main(void) {
    long even = 0, odd = 0, low = 0, high = 0, dot = 0, dot_swapped = 0, n_subnormal = 0;
    for (long i = 0; i < N_VECTORS; i++) {
        uint16_t a[8], b[8], h[8], g[8];
        float c[4], d[4], e[4], to[4];
        for (int k = 0; k < 8; k++) {
            a[k] = draw_narrow(i % 2 ? 255 : 140, 7);
            b[k] = draw_narrow(i % 2 ? 255 : 120, 7);
            h[k] = draw_narrow(31, 10);
            g[k] = draw_narrow(i % 2 ? 31 : 2, 10);
        }
        for (int k = 0; k < 4; k++) {
            c[k] = draw_sum(of_bf16(a[2 * k]) * of_bf16(b[2 * k]));
            d[k] = draw_sum(of_f16(h[k]) * of_f16(g[k]));
            e[k] = draw_sum(of_f16(h[k + 4]) * of_f16(g[k + 4]));
        }
        bfloat16x8_t va, vb;
        float16x8_t vh, vg;
        memcpy(&va, a, sizeof va);
        memcpy(&vb, b, sizeof vb);
        memcpy(&vh, h, sizeof vh);
        memcpy(&vg, g, sizeof vg);
        float first[4], second[4];
        for (int k = 0; k < 4; k++) {
            first[k] = fmaf(of_bf16(a[2 * k]), of_bf16(b[2 * k]), c[k]);
            second[k] = fmaf(of_bf16(a[2 * k + 1]), of_bf16(b[2 * k + 1]), c[k]);
            n_subnormal += fpclassify(first[k]) == FP_SUBNORMAL;
        }
        vst1q_f32(to, vbfmlalbq_f32(vld1q_f32(c), va, vb));
        for (int k = 0; k < 4; k++)
            even += differ(to[k], first[k]);
        vst1q_f32(to, vbfmlaltq_f32(vld1q_f32(c), va, vb));
        for (int k = 0; k < 4; k++)
            odd += differ(to[k], second[k]);
        vst1q_f32(to, vfmlalq_low_f16(vld1q_f32(d), vh, vg));
        for (int k = 0; k < 4; k++)
            low += differ(to[k], fmaf(of_f16(h[k]), of_f16(g[k]), d[k]));
        vst1q_f32(to, vfmlalq_high_f16(vld1q_f32(e), vh, vg));
        for (int k = 0; k < 4; k++)
            high += differ(to[k], fmaf(of_f16(h[k + 4]), of_f16(g[k + 4]), e[k]));
        vst1q_f32(to, vbfdotq_f32(vld1q_f32(c), va, vb));
        for (int k = 0; k < 4; k++) {
            dot += differ(to[k], fmaf(of_bf16(a[2 * k + 1]), of_bf16(b[2 * k + 1]), first[k]));
            dot_swapped += differ(to[k], fmaf(of_bf16(a[2 * k]), of_bf16(b[2 * k]), second[k]));
        }
    }
    printf("%d lanes, %ld subnormal results; lanes that differ: BFMLALB %ld, BFMLALT %ld, FMLAL "
           "%ld, FMLAL2 %ld, BFDOT %ld, swapped %ld\n",
           4 * N_VECTORS, n_subnormal, even, odd, low, high, dot, dot_swapped);
    return even || odd || low || high || !dot || !dot_swapped || !n_subnormal;
}
