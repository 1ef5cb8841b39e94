// The encoder of matmul with blockwise activations: cuda/matvec_int8.cu for few rows,
// cuda/matmul_int8.cu for others.
#include "device/cuda/encode_matmul.h"
#include "device/cuda/product.h"

#include <string.h>

// As in cuda/matmul_int8.cu.
#define SLICE 64 // terms
#define TILE_THREADS 128
#define TILE_COLUMNS 64
#define N_STAGES 3

static uint32_t ceil_div(uint32_t a, uint32_t b) {
    return a / b + (a % b != 0);
}

static bool encode_few_rows(const struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                            struct ree_cuda_encoding *out) {
    static const enum ree_cuda_kernel kernels[3][2] = {
        {REE_CUDA_matvec_int8_4_1, REE_CUDA_matvec_int8_8_1},
        {REE_CUDA_matvec_int8_4_4, REE_CUDA_matvec_int8_8_4},
        {REE_CUDA_matvec_int8_4_8, REE_CUDA_matvec_int8_8_8}};
    const struct ree_matmul_params *p = &out->params.matmul.p;
    if (p->m > REE_CUDA_MATVEC_ROWS) return false;
    const uint32_t rows = p->m == 1 ? 1 : p->m <= 4 ? 4 : 8;
    const struct ree_cuda_matvec launch = {
        .kernel = kernels[rows / 4][p->b_bits == 8],
        .rows = rows,
        .columns = 32,
        .n_groups = ceil_div(p->n, 32),
        .stage_bytes = ree_cuda_matvec_stage_bytes(p),
        // Bytes of a chunk, and a sum and a scale for each of up to 16 runs.
        .a_bytes = rows * (REE_CHUNK + 16 * 8),
    };
    return ree_cuda_matmul_add_matvec(cuda, dispatch, out, &launch);
}

static uint64_t n_tiles(const struct ree_matmul_params *p, uint32_t rows) {
    return (uint64_t)ceil_div(p->m, rows) * ceil_div(p->n, TILE_COLUMNS);
}

static bool encode_tiles(const struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                         struct ree_cuda_encoding *out) {
    const struct ree_matmul_params *p = &out->params.matmul.p;
    const struct ree_cuda_limits *limits = &cuda->limits;
    // Tiles have 32 rows if there are few rows, or if tiles of 64 rows would leave multiprocessors
    // without work. If there are fewer than two tiles per multiprocessor, each chunk gets a block
    // of its own.
    uint32_t rows = p->m <= 32 || n_tiles(p, 64) < limits->n_multiprocessors ? 32 : 64;
    bool splits = n_tiles(p, rows) < 2 * (uint64_t)limits->n_multiprocessors;
    if (limits->forces_plan) {
        rows = limits->tile == REE_CUDA_TILE_32X64 ? 32 : 64;
        splits = limits->splits;
    }
    const uint32_t n_chunks = ceil_div(p->k, REE_CHUNK),
                   run = p->a_block < p->b_block ? p->a_block : p->b_block;
    const uint64_t n_outputs = (uint64_t)p->m * p->n;
    splits = splits && n_chunks > 1 && n_outputs * n_chunks * 4 <= REE_CUDA_MAX_PARTS_BYTES;

    const uint64_t padded_k = (uint64_t)ceil_div(p->k, SLICE) * SLICE;
    const uint64_t values = (padded_k + run - 1) / run * (((uint64_t)p->m + 63) / 64 * 64);
    if (p->m * padded_k + values * 8 > (uint64_t)1 << 31) return false;
    ree_cuda_add_step(out, REE_CUDA_matmul_int8_pack, 128, values);
    out->scratch_bytes = p->m * padded_k + values * 8;

    uint32_t extra[5] = {0, splits ? n_chunks : 1, N_STAGES};
    const bool finish = splits || !ree_cuda_matmul_epilogue_fits(dispatch, out, TILE_THREADS);
    if (finish) {
        extra[REE_CUDA_PRODUCT_FLAGS] = REE_CUDA_TO_SCRATCH;
        extra[REE_CUDA_PRODUCT_PARTS_AT] =
            ree_cuda_matmul_add_parts(out, p, extra[REE_CUDA_PRODUCT_N_PARTS]);
    }
    const uint32_t stages = N_STAGES * 28 * 4 * (rows + TILE_COLUMNS);
    uint32_t results = rows * (TILE_COLUMNS + 8) * 4;
    if (!finish)
        results += out->params.matmul.epilogue.n_slots * REE_CUDA_SLOT_BYTES * TILE_THREADS;
    const uint64_t n_blocks = n_tiles(p, rows) * extra[REE_CUDA_PRODUCT_N_PARTS];
    struct ree_cuda_step *step =
        ree_cuda_add_step(out, rows == 32 ? REE_CUDA_matmul_int8_32x64 : REE_CUDA_matmul_int8_64x64,
                          TILE_THREADS, n_blocks * TILE_THREADS);
    step->shared_bytes = results > stages ? results : stages;
    memcpy(step->extra, extra, sizeof extra);
    if (finish) ree_cuda_matmul_add_finish(out, dispatch, extra);
    return true;
}

void ree_cuda_encode_matmul_int8(const struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                                 struct ree_cuda_encoding *out) {
    if (out->params.matmul.p.k > 0 && ree_cuda_matmul_has_aligned_blocks(dispatch)) {
        if (!cuda->limits.forces_plan && encode_few_rows(cuda, dispatch, out)) return;
        if (encode_tiles(cuda, dispatch, out)) return;
    }
    ree_cuda_matmul_add_words(out, dispatch, REE_CUDA_matmul_int8_words);
}
