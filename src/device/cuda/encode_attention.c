// The encoder of attention: scores, weights, the values' chunks and their sum, with intermediate
// results in the scratch memory. Long prompts use tiles.
#include "device/cuda/cuda.h"
#include "device/cuda/encode.h"

#define ROWS 8 // queries per block, as in cuda/attention.cu
#define KEYS 128

// As in cuda/attention_tiles.cu.
#define TILE 64
#define TOTALS_BYTES (TILE * TILE * 4)
#define STAGE_BYTES (8 * 2 * (TILE + 4) * 4)
#define MIN_QUERIES (TILE / 2) // fewer would waste most of a tile
#define TILE_THREADS 128

static uint64_t tiles_of(uint32_t n) {
    return ((uint64_t)n + TILE - 1) / TILE;
}

// Returns the number of stages (buffers for operands in shared memory) if float32 tiles compute the
// dispatch, otherwise 0. Tiles require enough queries, and shared memory for two stages.
static uint32_t tile_stages(const struct ree_cuda *cuda, const struct ree_attention_params *p) {
    if (p->q_len < MIN_QUERIES || p->k_dtype != REE_F32 || p->v_dtype != REE_F32 || !p->kv_len ||
        p->page_bits) // tiles read dense keys and values
        return 0;
    uint32_t n_stages = 4; // 33 KiB in all: four blocks per multiprocessor
    while (n_stages >= 2 && TOTALS_BYTES + n_stages * STAGE_BYTES > cuda->limits.max_shared)
        n_stages--;
    const uint64_t n_products = (uint64_t)p->batch * p->n_heads * tiles_of(p->q_len);
    if (n_stages < 2 || n_products * tiles_of(p->kv_len) > INT32_MAX ||
        n_products * tiles_of(p->v_head_dim) > INT32_MAX)
        return 0;
    return n_stages;
}

static void encode_tiles(const struct ree_attention_params *p, uint32_t n_stages,
                         struct ree_cuda_encoding *out) {
    const uint64_t n_rows = (uint64_t)p->batch * p->n_heads * p->q_len;
    const uint64_t n_products = (uint64_t)p->batch * p->n_heads * tiles_of(p->q_len);
    const uint64_t scores = n_products * tiles_of(p->kv_len);
    const uint64_t values = n_products * tiles_of(p->v_head_dim);
    ree_cuda_add_step(out, REE_CUDA_attention_tile_scores, TILE_THREADS, scores * TILE_THREADS);
    ree_cuda_add_step(out, REE_CUDA_attention_weights, 256, n_rows * 256);
    ree_cuda_add_step(out, REE_CUDA_attention_tile_values, TILE_THREADS, values * TILE_THREADS);
    for (uint32_t s = 0; s < out->n_steps; s += 2) {
        out->steps[s].shared_bytes = TOTALS_BYTES + n_stages * STAGE_BYTES;
        out->steps[s].extra[2] = n_stages;
    }
    out->scratch_bytes = n_rows * p->kv_len * 4;
}

enum ree_status ree_cuda_encode_attention(const struct ree_cuda *cuda,
                                          const struct ree_dispatch *dispatch,
                                          struct ree_cuda_encoding *out, struct ree_error *err) {
    const struct ree_attention_params *p = &dispatch->params.attention;
    if (!p->batch || !p->n_heads || !p->q_len || !p->v_head_dim) return REE_OK;
    const uint64_t n_kv = (uint64_t)p->batch * p->n_kv_heads;
    const uint64_t kv_rows = (uint64_t)p->n_heads / p->n_kv_heads * p->q_len;
    const uint64_t n_rows = n_kv * kv_rows, n_groups = (kv_rows + ROWS - 1) / ROWS;
    const uint64_t n_chunks = ((uint64_t)p->kv_len + REE_CHUNK - 1) / REE_CHUNK;
    const uint64_t scores = n_rows * p->kv_len, results = n_rows * p->v_head_dim;
    const uint32_t n_stages = tile_stages(cuda, p);
    if (n_stages && scores <= UINT32_MAX) {
        encode_tiles(p, n_stages, out);
        return REE_OK;
    }
    const uint64_t parts = ((uint64_t)p->v_head_dim + 127) / 128;
    const uint64_t score_blocks = n_kv * n_groups * (((uint64_t)p->kv_len + KEYS - 1) / KEYS);
    const uint64_t value_blocks = n_kv * n_groups * n_chunks * parts;
    if (scores + n_chunks * results > UINT32_MAX || score_blocks > INT32_MAX ||
        value_blocks > INT32_MAX)
        return ree_fail(err, REE_UNSUPPORTED,
                        "attention of %llu queries over %u keys requires more scratch memory than "
                        "a kernel can index",
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
    // never 0, because kernels refer to it
    out->scratch_bytes = (scores + n_chunks * results + 1) * 4;
    return REE_OK;
}
