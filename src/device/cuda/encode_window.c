// The encoders of pool and resize: one thread per output.
#include "device/cuda/cuda.h"
#include "device/cuda/encode.h"

#define THREADS 256

enum ree_status ree_cuda_encode_pool(const struct ree_cuda *cuda,
                                     const struct ree_dispatch *dispatch,
                                     struct ree_cuda_encoding *out, struct ree_error *err) {
    (void)cuda, (void)dispatch, (void)err;
    struct ree_cuda_pool_params *p = &out->params.pool;
    uint64_t n = (uint64_t)p->p.planes * p->p.out[0] * p->p.out[1] * p->p.out[2];
    if (n == 0) return REE_OK;
    for (int a = 0; a < 3; a++)
        p->out[a] = ree_cuda_divider_of(p->p.out[a]);
    p->p.has_indices = p->p.has_indices && p->p.kind == REE_POOL_MAX;
    struct ree_cuda_step *step = ree_cuda_add_step(
        out, p->p.kind == REE_POOL_MAX ? REE_CUDA_pool_max : REE_CUDA_pool_sum, THREADS, n);
    step->extra[0] = (uint32_t)n;
    return REE_OK;
}

enum ree_status ree_cuda_encode_resize(const struct ree_cuda *cuda,
                                       const struct ree_dispatch *dispatch,
                                       struct ree_cuda_encoding *out, struct ree_error *err) {
    (void)cuda, (void)dispatch, (void)err;
    struct ree_cuda_resize_params *p = &out->params.resize;
    uint64_t n = (uint64_t)p->p.outer * p->p.k_out * p->p.inner;
    if (n == 0) return REE_OK;
    p->inner = ree_cuda_divider_of(p->p.inner);
    p->k_out = ree_cuda_divider_of(p->p.k_out);
    struct ree_cuda_step *step = ree_cuda_add_step(out, REE_CUDA_resize_taps, THREADS, n);
    step->extra[0] = (uint32_t)n;
    return REE_OK;
}
