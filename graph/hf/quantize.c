#include "graph/hf/quantize.h"

#include <math.h>
#include <string.h>

#include "repops/scalar/ops.h"

static float bits_to_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float load(const struct ree_matrix *m, int64_t at) {
    if (m->dtype == REE_F32) {
        float x;
        memcpy(&x, m->data + 4 * at, sizeof x);
        return x;
    }
    uint16_t half;
    memcpy(&half, m->data + 2 * at, sizeof half);
    return bits_to_float(m->dtype == REE_F16 ? ree_op_f16_to_f32(half) : ree_op_bf16_to_f32(half));
}

uint64_t ree_quantized_row_size(int64_t columns, uint32_t bits, uint32_t block) {
    return ((uint64_t)columns + block - 1) / block * (block * bits / 8);
}

// Quantises `n` numbers to one byte each; returns the scale.
static float quantize_block(const float *x, uint32_t n, uint32_t bits, unsigned char *q) {
    float m = 0, zero = (float)(1u << (bits - 1)), top = (float)((1u << bits) - 1);
    for (uint32_t i = 0; i < n; i++)
        if (fabsf(x[i]) > fabsf(m)) m = x[i];
    float scale = m / -zero;
    for (uint32_t i = 0; i < n; i++) {
        float v = scale == 0 ? zero : rintf(x[i] / scale) + zero;
        q[i] = (unsigned char)(v < 0 ? 0 : v > top ? top : v);
    }
    return scale == 0 ? 0 : scale; // +0, never -0
}

enum ree_status ree_quantize_row(const struct ree_matrix *matrix, int64_t row, uint32_t bits,
                                 uint32_t block, float *capacity, unsigned char *out,
                                 float *out_scales, struct ree_error *err) {
    unsigned char q[256];
    for (int64_t j = 0; j < matrix->columns; j++) {
        capacity[j] = load(matrix, row * matrix->row_stride + j * matrix->column_stride);
        if (!isfinite(capacity[j]))
            return ree_fail(err, REE_INVALID, "the number at (%lld, %lld) is not finite",
                            (long long)row, (long long)j);
    }
    for (int64_t j = 0; j < matrix->columns; j += block) {
        int64_t left = matrix->columns - j;
        memset(q, 1 << (bits - 1), sizeof q);
        *out_scales++ =
            quantize_block(capacity + j, left < block ? (uint32_t)left : block, bits, q);
        for (uint32_t i = 0; i < block; i += 8 / bits)
            *out++ = bits == 8 ? q[i] : (unsigned char)(q[i] | q[i + 1] << 4);
    }
    return REE_OK;
}
