// The encoders of scan and topk, which process vectors of a tensor.
#include "device/cuda/cuda.h"
#include "device/cuda/encode.h"

#define THREADS_TO_FILL 256 // per multiprocessor: enough threads for one thread per vector

enum { SCAN_VECTORS, SCAN_REDUCE, SCAN_CHUNKS }; // as in cuda/scan.cu

static void add_scan(struct ree_cuda_encoding *out, uint32_t stage, uint64_t n_threads) {
    bool vectors = out->params.scan.p.inner == 1;
    struct ree_cuda_step *step =
        ree_cuda_add_step(out, vectors ? REE_CUDA_scan_vectors : REE_CUDA_scan_columns,
                          vectors ? 64 : 128, n_threads);
    step->extra[0] = stage;
}

enum ree_status ree_cuda_encode_scan(const struct ree_cuda *cuda,
                                     const struct ree_dispatch *dispatch,
                                     struct ree_cuda_encoding *out, struct ree_error *err) {
    (void)dispatch, (void)err;
    struct ree_cuda_scan_params *p = &out->params.scan;
    uint64_t n_vectors = (uint64_t)p->p.outer * p->p.inner;
    uint64_t n_chunks = ((uint64_t)p->p.k + REE_CHUNK - 1) / REE_CHUNK;
    if (n_vectors == 0 || p->p.k == 0) return REE_OK;
    p->inner = ree_cuda_divider_of(p->p.inner);
    p->n_vectors = (uint32_t)n_vectors;
    p->n_chunks = (uint32_t)n_chunks;
    if (n_chunks == 1 || n_vectors >= (uint64_t)cuda->limits.n_multiprocessors * THREADS_TO_FILL) {
        add_scan(out, SCAN_VECTORS, n_vectors);
        return REE_OK;
    }
    bool wide = p->p.dtype == REE_F64 || p->p.dtype == REE_I64 || p->p.dtype == REE_U64;
    out->scratch_bytes = n_vectors * n_chunks * (wide ? 8 : 4);
    add_scan(out, SCAN_REDUCE, n_vectors * n_chunks);
    ree_cuda_add_step(out, REE_CUDA_scan_offsets, 128, n_vectors);
    add_scan(out, SCAN_CHUNKS, n_vectors * n_chunks);
    return REE_OK;
}

#define SELECT_MOST 2048 // MOST in cuda/topk.cu
#define SHORT_VECTOR 128 // elements of the longest vector whose ranks are always counted
#define LONG_VECTOR 4096 // elements that keep 1024 threads busy
#define COUNT_WIDTH 256  // maximum threads per vector in a block of topk_count

enum ree_status ree_cuda_encode_topk(const struct ree_cuda *cuda,
                                     const struct ree_dispatch *dispatch,
                                     struct ree_cuda_encoding *out, struct ree_error *err) {
    (void)cuda, (void)dispatch, (void)err;
    struct ree_cuda_topk_params *p = &out->params.topk;
    uint64_t n_vectors = (uint64_t)p->p.outer * p->p.inner;
    if (n_vectors == 0 || p->p.n == 0 || p->p.k == 0) return REE_OK;
    p->inner = ree_cuda_divider_of(p->p.inner);
    if (p->p.n > SHORT_VECTOR && p->p.k <= SELECT_MOST) {
        uint32_t threads = p->p.n > LONG_VECTOR ? 1024 : 256;
        ree_cuda_add_step(out, REE_CUDA_topk_select, threads, n_vectors * threads);
        return REE_OK;
    }
    uint32_t width = 1;
    while (width < p->p.n && width < COUNT_WIDTH)
        width *= 2;
    uint64_t vectors_of_block = COUNT_WIDTH / width;
    uint64_t n_blocks = (n_vectors + vectors_of_block - 1) / vectors_of_block *
                        ((p->p.n + (uint64_t)width - 1) / width);
    struct ree_cuda_step *step = ree_cuda_add_step(out, REE_CUDA_topk_count, 256, n_blocks * 256);
    step->extra[0] = width;
    return REE_OK;
}
