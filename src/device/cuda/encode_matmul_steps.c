// Steps that the encoders of matmul have in common.
#include "device/cuda/encode_matmul.h"

#include "device/cuda/product.h"

#include <string.h>

#define MATVEC_WARPS 8
#define MATVEC_SPLIT_WARPS 4

static const struct ree_expr *epilogue_of(const struct ree_dispatch *dispatch) {
    const struct ree_matmul_params *p = &dispatch->params.matmul;
    return p->has_epilogue ? &p->epilogue : NULL;
}

uint32_t ree_cuda_matmul_add_parts(struct ree_cuda_encoding *out, const struct ree_matmul_params *p,
                                   uint32_t n_parts) {
    return ree_cuda_add_parts(out, (uint64_t)p->n_batch * p->m * p->n, n_parts);
}

void ree_cuda_matmul_add_finish(struct ree_cuda_encoding *out, const struct ree_dispatch *dispatch,
                                const uint32_t *extra) {
    const struct ree_matmul_params *p = &dispatch->params.matmul;
    ree_cuda_add_finish(out, epilogue_of(dispatch), out->params.matmul.epilogue.n_slots,
                        (uint64_t)p->n_batch * p->m * p->n, REE_CUDA_matmul_finish,
                        REE_CUDA_matmul_finish_any, extra);
}

bool ree_cuda_matmul_epilogue_fits(const struct ree_dispatch *dispatch,
                                   const struct ree_cuda_encoding *out, uint32_t threads) {
    return ree_cuda_epilogue_fits(epilogue_of(dispatch), out->params.matmul.epilogue.n_slots,
                                  threads);
}

void ree_cuda_matmul_add_words(struct ree_cuda_encoding *out, const struct ree_dispatch *dispatch,
                               enum ree_cuda_kernel kernel) {
    const struct ree_matmul_params *p = &out->params.matmul.p;
    struct ree_cuda_step *step =
        ree_cuda_add_step(out, kernel, 128, (uint64_t)p->n_batch * p->m * p->n);
    if (!p->has_epilogue) return;
    uint32_t extra[5] = {REE_CUDA_TO_SCRATCH, 1};
    extra[REE_CUDA_PRODUCT_PARTS_AT] = ree_cuda_matmul_add_parts(out, p, 1);
    memcpy(step->extra, extra, sizeof extra);
    ree_cuda_matmul_add_finish(out, dispatch, extra);
}

bool ree_cuda_matmul_has_aligned_blocks(const struct ree_dispatch *dispatch) {
    const struct ree_matmul_params *p = &dispatch->params.matmul;
    const uint64_t padded_k = ((uint64_t)p->k + p->b_block - 1) / p->b_block * p->b_block;
    return dispatch->operands[1].offset % 16 == 0 && padded_k * p->b_bits / 8 % 16 == 0;
}

uint32_t ree_cuda_matvec_stage_bytes(const struct ree_matmul_params *p) {
    const uint32_t slice = 1024 / p->b_bits; // terms
    const uint32_t n_scales = slice > p->b_block ? slice / p->b_block : 1;
    return 4096 + 4 * 36 * (n_scales + n_scales / 4);
}

bool ree_cuda_matmul_add_matvec(const struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                                struct ree_cuda_encoding *out,
                                const struct ree_cuda_matvec *launch) {
    const struct ree_matmul_params *p = &out->params.matmul.p;
    const uint32_t n_chunks = (uint32_t)(((uint64_t)p->k + REE_CHUNK - 1) / REE_CHUNK);
    const uint64_t groups = launch->n_groups;
    const uint32_t stage = launch->stage_bytes;

    // A block computes all chunks of its columns if this leaves work for every multiprocessor and
    // the results fit into shared memory. Otherwise it computes MATVEC_SPLIT_WARPS chunks.
    const uint32_t max_shared = cuda->limits.max_shared, a_bytes = launch->a_bytes;
    const uint64_t chunk_bytes = (uint64_t)launch->rows * launch->columns * 4; // a chunk's results
    uint32_t n_warps = n_chunks < MATVEC_WARPS ? n_chunks : MATVEC_WARPS, per_block = n_chunks;
    bool split = n_chunks > MATVEC_SPLIT_WARPS &&
                 (groups < cuda->limits.n_multiprocessors ||
                  n_warps * (2 * stage + a_bytes) + n_chunks * chunk_bytes > max_shared);
    split = split || n_chunks * chunk_bytes > (32u << 10);
    if (split) {
        n_warps = MATVEC_SPLIT_WARPS;
        per_block = MATVEC_SPLIT_WARPS;
    }
    uint64_t n_outputs = (uint64_t)p->n_batch * p->m * p->n;
    if (split && n_outputs * n_chunks * 4 > REE_CUDA_MAX_PARTS_BYTES) return false;

    // A GPU with little shared memory gets fewer warps, each with several chunks.
    const uint32_t results = per_block * (uint32_t)chunk_bytes;
    while (n_warps > 1 && n_warps * (2 * stage + a_bytes) + results > max_shared)
        n_warps /= 2;
    uint32_t n_stages = 3, shared = n_warps * (n_stages * stage + a_bytes) + results;
    if (shared > max_shared || shared > cuda->limits.shared_per_multiprocessor / 2) {
        n_stages = 2;
        shared = n_warps * (n_stages * stage + a_bytes) + results;
    }
    if (shared > max_shared) return false;

    bool finish = split || !ree_cuda_matmul_epilogue_fits(dispatch, out, n_warps * 32);
    uint32_t slots = out->params.matmul.epilogue.n_slots * REE_CUDA_SLOT_BYTES * n_warps * 32;
    if (!finish && p->has_epilogue && slots > shared - results)
        finish = true; // the slots would overlap the results
    uint32_t extra[5] = {launch->flags, split ? n_chunks : 1, n_stages};
    extra[REE_CUDA_PRODUCT_OTHER] = per_block;
    if (finish) {
        extra[REE_CUDA_PRODUCT_FLAGS] |= REE_CUDA_TO_SCRATCH;
        extra[REE_CUDA_PRODUCT_PARTS_AT] =
            ree_cuda_matmul_add_parts(out, p, extra[REE_CUDA_PRODUCT_N_PARTS]);
    }
    uint64_t n_blocks = groups * ((n_chunks + per_block - 1) / per_block);
    struct ree_cuda_step *step =
        ree_cuda_add_step(out, launch->kernel, n_warps * 32, n_blocks * n_warps * 32);
    step->shared_bytes = shared;
    memcpy(step->extra, extra, sizeof extra);
    if (finish) ree_cuda_matmul_add_finish(out, dispatch, extra);
    return true;
}
