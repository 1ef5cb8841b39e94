// The encoders of softmax and norm. Rows are kept in shared memory, several per block. A row that
// is too long for that gets a block of its own (cuda/rows.h).
#include "device/cuda/cuda.h"
#include "device/cuda/encode.h"

#define THREADS 256
#define CHUNKS_AT_ONCE 32        // per warp: each thread processes one
#define TILE_BYTES (48u << 10)   // per block, so that several blocks fit on a multiprocessor
#define LONGEST_TILE (96u << 10) // limit for a row that fills a tile
#define STATIC_BYTES 4096u       // upper bound of the kernels' other shared memory

// Returns whether operand i is aligned to 16 bytes.
static bool is_aligned(const struct ree_dispatch *dispatch, uint32_t i) {
    return dispatch->operands[i].offset % 16 == 0;
}

// Fills *rows. Returns the bytes of shared memory for a block's rows (its tile), or 0 if a row does
// not fit.
static uint32_t make_rows(const struct ree_cuda *cuda, uint32_t n_rows, uint32_t n, bool aligned,
                          struct ree_cuda_rows *rows) {
    uint32_t chunk = n < REE_CHUNK ? n : REE_CHUNK;
    *rows = (struct ree_cuda_rows){
        .n_rows = n_rows,
        .n = n,
        .at_once = 1,
        .n_chunks = (uint32_t)(((uint64_t)n + REE_CHUNK - 1) / REE_CHUNK),
        .stride = ((chunk + 3) / 4 | 1) * 4,
        .width = aligned && n % 4 == 0 ? 4 : 1,
    };
    rows->items = ree_cuda_divider_of(n / rows->width);
    uint64_t row_bytes = (uint64_t)rows->n_chunks * rows->stride * 4;
    uint64_t most =
        cuda->limits.max_shared > STATIC_BYTES ? cuda->limits.max_shared - STATIC_BYTES : 0;
    if (most > LONGEST_TILE) most = LONGEST_TILE;
    if (row_bytes > most || rows->n_chunks > THREADS) return 0;
    // Increase the rows per block while enough blocks remain to fill the device.
    while (rows->at_once * 2 * rows->n_chunks <= CHUNKS_AT_ONCE * (n < REE_CHUNK ? 2u : 1u) &&
           rows->at_once * 2 * row_bytes <= TILE_BYTES - STATIC_BYTES &&
           n_rows / (rows->at_once * 2) >= cuda->limits.n_multiprocessors)
        rows->at_once *= 2;
    return (uint32_t)(rows->at_once * row_bytes);
}

static void add_steps(struct ree_cuda_encoding *out, const struct ree_cuda_rows *rows,
                      uint32_t tile, enum ree_cuda_kernel several, enum ree_cuda_kernel one) {
    uint64_t n_blocks = tile ? (rows->n_rows + rows->at_once - 1) / rows->at_once : rows->n_rows;
    struct ree_cuda_step *step =
        ree_cuda_add_step(out, tile ? several : one, THREADS, n_blocks * THREADS);
    step->shared_bytes = tile;
}

enum ree_status ree_cuda_encode_softmax(const struct ree_cuda *cuda,
                                        const struct ree_dispatch *dispatch,
                                        struct ree_cuda_encoding *out, struct ree_error *err) {
    (void)err;
    struct ree_cuda_softmax_params *p = &out->params.softmax;
    if (p->p.outer == 0 || p->p.inner == 0 || p->p.k == 0) return REE_OK;
    p->inner = ree_cuda_divider_of(p->p.inner);
    if (p->p.inner > 1) {
        ree_cuda_add_step(out, REE_CUDA_softmax_columns, 128, (uint64_t)p->p.outer * p->p.inner);
        return REE_OK;
    }
    bool aligned = is_aligned(dispatch, 0) && is_aligned(dispatch, 1);
    uint32_t tile = make_rows(cuda, p->p.outer, p->p.k, aligned, &p->rows);
    add_steps(out, &p->rows, tile, REE_CUDA_softmax_rows, REE_CUDA_softmax_long);
    return REE_OK;
}

enum ree_status ree_cuda_encode_norm(const struct ree_cuda *cuda,
                                     const struct ree_dispatch *dispatch,
                                     struct ree_cuda_encoding *out, struct ree_error *err) {
    (void)err;
    struct ree_cuda_norm_params *p = &out->params.norm;
    if (p->p.rows == 0 || p->p.cols == 0) return REE_OK;
    bool has_factors = p->p.has_scale || p->p.has_bias;
    p->row_div = ree_cuda_divider_of(has_factors ? p->p.scale_row_div : 1);
    p->row_mod = ree_cuda_divider_of(has_factors ? p->p.scale_row_mod : 1);
    bool aligned = is_aligned(dispatch, 0) && is_aligned(dispatch, dispatch->n_operands - 1);
    uint32_t tile = make_rows(cuda, p->p.rows, p->p.cols, aligned, &p->rows);
    add_steps(out, &p->rows, tile, REE_CUDA_norm_rows, REE_CUDA_norm_long);
    return REE_OK;
}
