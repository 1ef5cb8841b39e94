// matmul from the definition: one term at a time, for every operand type.
#include "reference.h"
#include "repops/scalar/ops.h"

// Returns a plain operand's element as float32.
static float load_float(enum ree_dtype dtype, const void *data, int64_t at) {
    uint32_t bits = (uint32_t)reference_load(dtype, data, at);
    switch (dtype) {
    case REE_F16: return ree_float(ree_soft_f16_to_f32(bits));
    case REE_BF16: return ree_float(ree_op_bf16_to_f32(bits));
    case REE_I8: return (float)(int32_t)bits;
    case REE_U8: return (float)bits;
    default: return ree_float(bits);
    }
}

// Returns q - z of B[l, j] of blockwise weights, and the scale of its block.
static int load_number(const struct ree_matmul_params *p, void *const *operands, uint32_t l,
                       uint32_t j, float *scale) {
    const uint8_t *bytes = operands[1], *zeros = p->has_zero_points ? operands[3] : NULL;
    const float *scales = operands[2];
    uint64_t n_blocks = (p->k + p->b_block - 1) / p->b_block;
    uint64_t block = j * n_blocks + l / p->b_block, at = block * p->b_block + l % p->b_block;
    int q = p->b_bits == 8 ? bytes[at] : bytes[at / 2] >> (4 * (at % 2)) & 15;
    *scale = scales[block];
    return q - (zeros ? zeros[block] : 1 << (p->b_bits - 1));
}
static float load_block(const struct ree_matmul_params *p, void *const *operands, uint32_t l,
                        uint32_t j) {
    float scale;
    int number = load_number(p, operands, l, j, &scale);
    return (float)number * scale;
}

// Returns the block-dot of row i of A and column j of B: one fma for each run of terms that are in
// one block of A and in one block of B.
static uint32_t block_dot(const struct ree_matmul_params *p, void *const *operands, uint32_t i,
                          uint32_t j) {
    const int8_t *a = operands[0];
    const float *a_scales = operands[p->has_zero_points ? 4 : 3];
    uint32_t n_blocks = (p->k + p->a_block - 1) / p->a_block, l = 0;
    float total = 0;
    while (l < p->k) {
        float acc = 0;
        uint32_t chunk_end = l + REE_CHUNK;
        while (l < p->k && l < chunk_end) {
            float a_scale = a_scales[i * n_blocks + l / p->a_block], b_scale = 0;
            int32_t sum = 0;
            do {
                int64_t at = p->a_offset + (int64_t)i * p->a_stride_m + (int64_t)l * p->a_stride_k;
                sum += a[at] * load_number(p, operands, l, j, &b_scale);
                l++;
            } while (l < p->k && l % p->a_block != 0 && l % p->b_block != 0);
            acc = fmaf((float)sum, a_scale * b_scale, acc);
        }
        total = chunk_end == REE_CHUNK ? acc : total + acc;
    }
    total = total + 0.0f;
    return total != total ? 0x7FC00000 : ree_bits(total);
}

void reference_matmul(const struct ree_matmul_params *p, void *const *operands) {
    enum ree_dtype dtype = (enum ree_dtype)p->dtype, a_dtype = (enum ree_dtype)p->a_dtype,
                   b_dtype = (enum ree_dtype)p->b_dtype;
    uint32_t first = ree_matmul_n_operands(p), n_tensors = 0;
    for (uint32_t k = 0; p->has_epilogue && k < p->epilogue.n_operands; k++)
        n_tensors += p->epilogue.operands[k].kind == REE_EXPR_TENSOR;
    void *out = operands[first + n_tensors];
    if (dtype == REE_F64) {
        reference_matmul_f64(p, operands[0], operands[1], out);
        return;
    }
    uint64_t n = (uint64_t)p->n_batch * p->m * p->n;
    for (uint64_t o = 0; o < n; o++) {
        uint64_t b = o / p->n / p->m;
        int64_t i = (int64_t)(o / p->n % p->m), j = (int64_t)(o % p->n);
        int64_t a_at = p->a_offset + i * p->a_stride_m +
                       reference_offset(p->batch_rank, p->batch_dims, p->a_batch_strides, b);
        int64_t b_at = p->b_offset + j * p->b_stride_n +
                       reference_offset(p->batch_rank, p->batch_dims, p->b_batch_strides, b);
        struct reference_sum sum;
        reference_sum_begin(&sum, false);
        uint64_t acc = 0;
        for (uint32_t l = 0; l < p->k && !p->a_block; l++) {
            int64_t at = a_at + (int64_t)l * p->a_stride_k, bt = b_at + (int64_t)l * p->b_stride_k;
            if (dtype != REE_F32)
                acc += reference_load(a_dtype, operands[0], at) *
                       reference_load(b_dtype, operands[1], bt);
            else
                reference_sum_fma(&sum, load_float(a_dtype, operands[0], at),
                                  p->b_block ? load_block(p, operands, l, (uint32_t)j)
                                             : load_float(b_dtype, operands[1], bt));
        }
        if (dtype == REE_F32) acc = reference_sum_end(sum);
        if (p->a_block) acc = block_dot(p, operands, (uint32_t)i, (uint32_t)j);
        uint32_t value = (uint32_t)acc;
        if (p->has_epilogue)
            reference_store((enum ree_dtype)p->epilogue.out_dtype, out, (int64_t)o,
                            reference_expr(&p->epilogue, operands + first, &value, o));
        else
            reference_store(dtype, out, (int64_t)o, acc);
    }
}
