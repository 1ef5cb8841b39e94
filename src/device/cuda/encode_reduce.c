// The encoder of reduce.
#include "device/cuda/cuda.h"
#include "device/cuda/encode.h"
#include "repops/merge.h"

#define MAX_THREADS 128      // maximum threads per block of reduce_vectors
#define THREADS_TO_FILL 1024 // per multiprocessor
#define SHORT_ROW 16         // rows of fewer adjacent terms do not use shared memory
#define BLOCK_TERMS 2048     // with at least this many terms, a block per output instead of a warp
#define SEGMENT_TERMS 16     // minimum per thread, if several blocks share an output
#define MAX_SEGMENTS 1024

static uint64_t threads_to_fill(const struct ree_cuda *cuda) {
    return (uint64_t)cuda->limits.n_multiprocessors * THREADS_TO_FILL;
}

static void merge(struct ree_cuda_reduce_params *p) {
    struct ree_reduce_params *r = &p->p;
    int32_t *outer[] = {r->outer_strides}, *reduce[] = {r->reduce_strides};
    r->outer_rank = ree_merge_dims(r->outer_rank, r->outer_dims, 1, outer);
    for (uint32_t d = 0; d < r->outer_rank; d++)
        p->outer[d] = ree_cuda_divider_of(r->outer_dims[d]);
    p->n_chunks = (uint32_t)(((uint64_t)r->n_reduce + REE_CHUNK - 1) / REE_CHUNK);
    if (r->n_reduce == 0) return;
    r->reduce_rank = ree_merge_dims(r->reduce_rank, r->reduce_dims, 1, reduce);
    for (uint32_t d = 0; d < r->reduce_rank; d++)
        p->reduce[d] = ree_cuda_divider_of(r->reduce_dims[d]);
}

// Returns whether every row begins and ends at a multiple of 16 bytes.
static bool is_wide(const struct ree_dispatch *dispatch, const struct ree_reduce_params *r) {
    bool wide =
        dispatch->operands[0].offset % 16 == 0 && r->offset % 4 == 0 && r->n_reduce % 4 == 0;
    for (uint32_t d = 0; d < r->outer_rank; d++)
        wide = wide && r->outer_strides[d] % 4 == 0;
    return wide;
}

// Adds the steps of float sums and products, whose order is fixed.
static void add_ordered(const struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                        struct ree_cuda_encoding *out) {
    const struct ree_cuda_reduce_params *p = &out->params.reduce;
    const struct ree_reduce_params *r = &p->p;
    uint64_t fill = threads_to_fill(cuda);
    bool split = p->n_chunks > 1 && r->n_outer < fill;
    uint64_t n_vectors = split ? (uint64_t)r->n_outer * p->n_chunks : r->n_outer;
    bool vectors = r->dtype == REE_F32 && r->n_reduce >= SHORT_ROW && r->reduce_rank == 1 &&
                   r->reduce_strides[0] == 1;
    struct ree_cuda_step *step;
    if (vectors) {
        uint32_t threads = MAX_THREADS;
        while (threads > 32 && n_vectors / threads < cuda->limits.n_multiprocessors * 2)
            threads /= 2;
        step = ree_cuda_add_step(out, REE_CUDA_reduce_vectors, threads, n_vectors);
        step->extra[1] = is_wide(dispatch, r);
    } else {
        step = ree_cuda_add_step(
            out, r->dtype == REE_F64 ? REE_CUDA_reduce_chunks_f64 : REE_CUDA_reduce_chunks, 128,
            n_vectors);
    }
    step->extra[0] = split;
    if (!split) return;
    out->scratch_bytes = n_vectors * (r->dtype == REE_F64 ? 8 : 4);
    ree_cuda_add_step(out, REE_CUDA_reduce_join, 128, r->n_outer);
}

// Adds the steps of reductions that may use any order.
static void add_unordered(const struct ree_cuda *cuda, struct ree_cuda_encoding *out) {
    const struct ree_reduce_params *r = &out->params.reduce.p;
    uint64_t fill = threads_to_fill(cuda);
    // If there are many outputs, and neighbouring ones read adjacent elements, each output gets one
    // thread. Otherwise a warp or a block shares the terms of an output that has many.
    bool columns = r->n_outer >= 32 && r->outer_strides[r->outer_rank - 1] == 1;
    uint32_t group = columns || r->n_reduce < 32 ? 1 : r->n_reduce < BLOCK_TERMS ? 32 : 256;
    uint64_t n_threads = (uint64_t)r->n_outer * group;
    uint64_t n_segments = 1, most = r->n_reduce / (group * SEGMENT_TERMS);
    if (n_threads < fill) n_segments = fill / n_threads;
    if (n_segments > most) n_segments = most;
    if (n_segments > MAX_SEGMENTS) n_segments = MAX_SEGMENTS;
    if (n_segments < 1) n_segments = 1;
    uint32_t per_segment = (uint32_t)((r->n_reduce + n_segments - 1) / n_segments);
    if (per_segment > 0) n_segments = (r->n_reduce + per_segment - 1) / per_segment;
    if (n_segments < 1) n_segments = 1;
    struct ree_cuda_step *step = ree_cuda_add_step(out, REE_CUDA_reduce_free, 256, n_threads);
    step->grid[1] = (uint32_t)n_segments;
    step->extra[0] = group;
    step->extra[1] = per_segment;
    if (n_segments == 1) return;
    out->scratch_bytes = n_segments * r->n_outer * 12;
    step = ree_cuda_add_step(out, REE_CUDA_reduce_segments, 256, r->n_outer);
    step->extra[0] = (uint32_t)n_segments;
}

enum ree_status ree_cuda_encode_reduce(const struct ree_cuda *cuda,
                                       const struct ree_dispatch *dispatch,
                                       struct ree_cuda_encoding *out, struct ree_error *err) {
    (void)err;
    struct ree_cuda_reduce_params *p = &out->params.reduce;
    if (p->p.n_outer == 0) return REE_OK;
    merge(p);
    bool is_float = p->p.dtype == REE_F32 || p->p.dtype == REE_F64;
    if (is_float && p->p.kind <= REE_REDUCE_PROD)
        add_ordered(cuda, dispatch, out);
    else
        add_unordered(cuda, out);
    return REE_OK;
}
