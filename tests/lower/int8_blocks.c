// MatMulNBits of the domain ree equals its definition in NUMERICS.md bit for bit: the input in
// blocks of int8, the block-dot with the quantised weights, the bias, one rounding.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"
#include "repops/scalar/ops.h"
#include "splitmix.h"
#include "test.h"

#define CHUNK 256
#define MAX_K 600
#define MAX_N 40
#define MAX_M 5

struct problem {
    uint32_t m, n, k, bits, block, a_block;
    enum ree_dtype dtype; // of the input, the bias and the result
    bool has_zeros, has_bias;
    uint32_t a[MAX_M * MAX_K], bias[MAX_N]; // bits, of type dtype
    uint8_t b[MAX_N * (MAX_K + CHUNK)], packed_zeros[MAX_N * (MAX_K / 16 + 2)];
    uint8_t zeros[MAX_N * (MAX_K / 16 + 1)]; // one byte each
    float scales[MAX_N * (MAX_K / 16 + 1)];
};

static uint64_t state = 2026;

static uint32_t below(uint32_t n) {
    return (uint32_t)(splitmix_step(&state) % n);
}

static float widened(enum ree_dtype dtype, uint32_t bits) {
    if (dtype == REE_F16) bits = ree_soft_f16_to_f32(bits);
    if (dtype == REE_BF16) bits = ree_op_bf16_to_f32(bits);
    return ree_float(bits);
}

static uint32_t rounded(enum ree_dtype dtype, float x) {
    if (x != x) return dtype == REE_F32 ? 0x7FC00000 : dtype == REE_F16 ? 0x7E00 : 0x7FC0;
    uint32_t bits = ree_bits(x);
    if (dtype == REE_F16) return ree_soft_f32_to_f16(bits);
    return dtype == REE_BF16 ? ree_op_f32_to_bf16(bits) : bits;
}

// A number of the type: mostly of ordinary size, sometimes 0, tiny, infinite or NaN.
static uint32_t draw_number(enum ree_dtype dtype) {
    float x = test_random(&state);
    switch (below(40)) {
    case 0: x = 0; break;
    case 1: x *= 0x1p-140f; break;
    case 2: x *= 0x1p100f; break;
    case 3:
        if (below(20) == 0) x = below(2) ? INFINITY : NAN;
    }
    return rounded(dtype, x);
}

static void draw(struct problem *p) {
    static const enum ree_dtype types[] = {REE_F32, REE_F32, REE_F16, REE_BF16};
    p->m = 1 + below(MAX_M);
    p->n = 1 + below(MAX_N);
    p->bits = below(2) ? 8 : 4;
    p->block = 16u << below(5);
    p->a_block = 16u << below(5);
    p->k = 1 + below(MAX_K);
    if (below(2)) p->k = (p->k + 255) / 256 * 256; // whole blocks
    if (p->k > MAX_K) p->k = 512;
    p->dtype = types[below(4)];
    p->has_zeros = below(2);
    p->has_bias = below(2);
    for (uint32_t i = 0; i < p->m * p->k; i++)
        p->a[i] = draw_number(p->dtype);
    if (below(4) == 0) memset(p->a, 0, sizeof *p->a * p->k); // a row of zeros
    for (uint32_t i = 0; i < p->n; i++)
        p->bias[i] = rounded(p->dtype, test_random(&state));
    uint32_t n_blocks = (p->k + p->block - 1) / p->block, pairs = (n_blocks + 1) / 2;
    for (uint32_t i = 0; i < p->n * n_blocks * p->block * p->bits / 8; i++)
        p->b[i] = (uint8_t)below(256);
    memset(p->packed_zeros, 0, sizeof p->packed_zeros);
    for (uint32_t j = 0; j < p->n; j++)
        for (uint32_t i = 0; i < n_blocks; i++) {
            uint32_t at = j * n_blocks + i;
            p->scales[at] = test_random(&state) * 0.01f;
            if (below(30) == 0) p->scales[at] *= 0x1p-130f;
            p->zeros[at] = (uint8_t)below(1u << p->bits);
            if (p->bits == 8)
                p->packed_zeros[at] = p->zeros[at];
            else
                p->packed_zeros[j * pairs + i / 2] |= (uint8_t)(p->zeros[at] << (i % 2 * 4));
        }
}

// Quantises one block of the input.
static float quantise(const float *x, uint32_t n, int32_t *numbers) {
    float largest = 0;
    bool is_nan = false;
    for (uint32_t i = 0; i < n; i++) {
        is_nan = is_nan || x[i] != x[i];
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    }
    float scale = (is_nan ? NAN : largest) / 127;
    for (uint32_t i = 0; i < n; i++) {
        float q = x[i] / scale;
        numbers[i] = q != q ? 0 : q >= 127 ? 127 : q <= -128 ? -128 : (int32_t)rintf(q);
    }
    return scale;
}

static uint32_t expected(const struct problem *p, uint32_t row, uint32_t j) {
    static float x[MAX_K], scales[MAX_K / 16 + 1];
    static int32_t numbers[MAX_K];
    uint32_t n_blocks = (p->k + p->block - 1) / p->block;
    for (uint32_t l = 0; l < p->k; l++)
        x[l] = widened(p->dtype, p->a[row * p->k + l]);
    for (uint32_t l = 0; l < p->k; l += p->a_block) {
        uint32_t n = p->k - l < p->a_block ? p->k - l : p->a_block;
        scales[l / p->a_block] = quantise(x + l, n, numbers + l);
    }
    float total = 0, acc = 0;
    int32_t sum = 0;
    for (uint32_t l = 0; l < p->k; l++) {
        uint32_t block = j * n_blocks + l / p->block;
        uint32_t at = block * p->block + l % p->block;
        int32_t q = p->bits == 8 ? p->b[at] : p->b[at / 2] >> (at % 2 * 4) & 15;
        sum += numbers[l] * (q - (p->has_zeros ? p->zeros[block] : 1 << (p->bits - 1)));
        bool ends_run = (l + 1) % p->block == 0 || (l + 1) % p->a_block == 0 || l + 1 == p->k;
        if (!ends_run) continue;
        acc = fmaf((float)sum, scales[l / p->a_block] * p->scales[block], acc);
        sum = 0;
        if ((l + 1) % CHUNK != 0 && l + 1 != p->k) continue;
        total = l < CHUNK ? acc : total + acc;
        acc = 0;
    }
    total = total + 0.0f;
    if (p->has_bias) total = total + widened(p->dtype, p->bias[j]);
    return rounded(p->dtype, total);
}

// Copies numbers of the type from 32-bit words.
static void *dense(enum ree_dtype dtype, const uint32_t *words, size_t n) {
    size_t size = ree_dtype_size(dtype);
    char *bytes = malloc(n * size + 1);
    REQUIRE(bytes);
    for (size_t i = 0; i < n; i++)
        memcpy(bytes + i * size, &words[i], size); // little-endian
    return bytes;
}

static void check(const struct problem *p, unsigned number) {
    struct test_node n;
    uint32_t n_blocks = (p->k + p->block - 1) / p->block, pairs = (n_blocks + 1) / 2;
    void *a = dense(p->dtype, p->a, (size_t)p->m * p->k), *bias = dense(p->dtype, p->bias, p->n);
    test_node_start(&n, "MatMulNBits", 1);
    n.node.domain = "ree";
    test_node_input(&n, p->dtype, 2, (int64_t[]){p->m, p->k}, a);
    test_node_input(&n, REE_U8, 3, (int64_t[]){p->n, n_blocks, p->block * p->bits / 8}, p->b);
    test_node_f32(&n, 1, (int64_t[]){p->n * n_blocks}, p->scales);
    if (p->has_zeros)
        test_node_input(&n, REE_U8, 1, (int64_t[]){p->n * (p->bits == 8 ? n_blocks : pairs)},
                        p->packed_zeros);
    else
        test_node_omit(&n);
    test_node_omit(&n); // g_idx
    if (p->has_bias) test_node_input(&n, p->dtype, 1, (int64_t[]){p->n}, bias);
    test_node_int(&n, "K", p->k);
    test_node_int(&n, "N", p->n);
    test_node_int(&n, "bits", p->bits);
    test_node_int(&n, "block_size", p->block);
    if (p->a_block != 32) test_node_int(&n, "activation_block_size", p->a_block);
    enum ree_status status = test_node_run(&n, 1);
    CHECK_MSG(status == REE_OK, "problem %u: %s", number, n.err.message);
    REQUIRE(status == REE_OK);
    const char *out = test_node_output(&n, 0);
    size_t size = ree_dtype_size(p->dtype);
    bool same = true;
    for (uint32_t i = 0; i < p->m * p->n && same; i++) {
        uint32_t is = 0, should_be = expected(p, i / p->n, i % p->n);
        memcpy(&is, out + i * size, size);
        same = is == should_be;
        CHECK_MSG(same, "problem %u, element %u: %08x, expected %08x", number, i, is, should_be);
    }
    test_node_finish(&n);
    free(a);
    free(bias);
}

int main(void) {
    static struct problem p;
    for (unsigned i = 0; i < 300; i++) {
        draw(&p);
        check(&p, i);
    }
    return test_finish();
}
