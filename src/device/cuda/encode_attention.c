// The encoder of attention: scores, weights, the values' chunks and their sum, with what lies
// between them in the scratch memory.
#include "device/cuda/cuda.h"

#define ROWS 8 // of a block, as in cuda/attention.cu
#define KEYS 128

enum ree_status ree_cuda_encode_attention(const struct ree_cuda *cuda,
                                          const struct ree_dispatch *dispatch,
                                          struct ree_cuda_encoding *out, struct ree_error *err) {
    (void)cuda;
    const struct ree_attention_params *p = &dispatch->params.attention;
    if (!p->batch || !p->n_heads || !p->q_len || !p->v_head_dim) return REE_OK;
    const uint64_t n_kv = (uint64_t)p->batch * p->n_kv_heads;
    const uint64_t kv_rows = (uint64_t)p->n_heads / p->n_kv_heads * p->q_len;
    const uint64_t n_rows = n_kv * kv_rows, n_groups = (kv_rows + ROWS - 1) / ROWS;
    const uint64_t n_chunks = ((uint64_t)p->kv_len + REE_CHUNK - 1) / REE_CHUNK;
    const uint64_t scores = n_rows * p->kv_len, results = n_rows * p->v_head_dim;
    const uint64_t parts = ((uint64_t)p->v_head_dim + 127) / 128;
    const uint64_t score_blocks = n_kv * n_groups * (((uint64_t)p->kv_len + KEYS - 1) / KEYS);
    const uint64_t value_blocks = n_kv * n_groups * n_chunks * parts;
    if (scores + n_chunks * results > UINT32_MAX || score_blocks > INT32_MAX ||
        value_blocks > INT32_MAX)
        return ree_fail(err, REE_UNSUPPORTED,
                        "attention of %llu queries over %u keys needs more scratch memory than a "
                        "kernel can number",
                        (unsigned long long)n_rows, p->kv_len);
    const uint32_t extra[2] = {(uint32_t)n_groups, (uint32_t)scores};
    if (p->kv_len > 0) {
        ree_cuda_add_step(out, REE_CUDA_attention_scores, 128, score_blocks * 128);
        ree_cuda_add_step(out, REE_CUDA_attention_weights, 256, n_rows * 256);
        ree_cuda_add_step(out, REE_CUDA_attention_values, 128, value_blocks * 128);
    }
    ree_cuda_add_step(out, REE_CUDA_attention_sum, 128, results);
    for (uint32_t s = 0; s < out->n_steps; s++) {
        out->steps[s].extra[0] = extra[0];
        out->steps[s].extra[1] = extra[1];
    }
    out->scratch_bytes = (scores + n_chunks * results + 1) * 4; // never nothing: kernels name it
    return REE_OK;
}
