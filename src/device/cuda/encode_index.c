// The encoders of gather and scatter.
#include "device/cuda/cuda.h"
#include "device/cuda/encode.h"
#include "repops/merge.h"

// Combines adjacent elements into units of up to 16 bytes. Requires that rows of data are copied
// whole (neighbouring outputs in the last dimension read adjacent elements with the same index),
// and that all sizes, strides and offsets are multiples of the unit.
static void widen(const struct ree_dispatch *dispatch, struct ree_gather_params *p) {
    uint32_t last = p->rank - 1, factor = 16 / p->elem_size;
    if (p->index_strides[last] != 0 || p->data_strides[last] != 1) return;
    for (; factor > 1; factor /= 2) {
        int32_t f = (int32_t)factor;
        bool fits = p->dims[last] % factor == 0 && p->data_offset % f == 0 &&
                    dispatch->operands[0].offset % (factor * p->elem_size) == 0 &&
                    dispatch->operands[2].offset % (factor * p->elem_size) == 0;
        for (uint32_t d = 0; d < last; d++)
            fits = fits && p->data_strides[d] % f == 0;
        for (uint32_t j = 0; j < p->n_components; j++)
            fits = fits && p->component_strides[j] % f == 0;
        if (fits) break;
    }
    p->elem_size *= factor;
    p->n_elements /= factor;
    p->dims[last] /= factor;
    p->data_offset /= (int32_t)factor;
    for (uint32_t d = 0; d < last; d++)
        p->data_strides[d] /= (int32_t)factor;
    for (uint32_t j = 0; j < p->n_components; j++)
        p->component_strides[j] /= (int32_t)factor;
}

enum ree_status ree_cuda_encode_gather(const struct ree_cuda *cuda,
                                       const struct ree_dispatch *dispatch,
                                       struct ree_cuda_encoding *out, struct ree_error *err) {
    (void)cuda, (void)err;
    struct ree_cuda_gather_params *p = &out->params.gather;
    if (p->p.n_elements == 0) return REE_OK;
    int32_t *sets[] = {p->p.data_strides, p->p.index_strides};
    p->p.rank = ree_merge_dims(p->p.rank, p->p.dims, 2, sets);
    widen(dispatch, &p->p);
    for (uint32_t d = 0; d < p->p.rank; d++)
        p->dims[d] = ree_cuda_divider_of(p->p.dims[d]);
    ree_cuda_add_step(out, REE_CUDA_gather_elements, 256, p->p.n_elements);
    return REE_OK;
}

// A scatter that replaces elements applies up to FEW_STEPS steps of a vector one after another.
// With more steps it first finds the last update of each element (cuda/scatter.cu).
#define FEW_STEPS 4
// Maximum number of shares of the target elements. The threads of each share read all indices.
#define MAX_SHARES 256
#define THREADS_TO_FILL 512 // per multiprocessor

enum ree_status ree_cuda_encode_scatter(const struct ree_cuda *cuda,
                                        const struct ree_dispatch *dispatch,
                                        struct ree_cuda_encoding *out, struct ree_error *err) {
    struct ree_cuda_scatter_params *p = &out->params.scatter;
    if (p->p.n_vectors == 0 || p->p.n_steps == 0) return REE_OK;
    for (uint32_t d = 0; d < p->p.rank; d++)
        p->dims[d] = ree_cuda_divider_of(p->p.dims[d]);
    p->vectors = ree_cuda_divider_of(p->p.n_vectors);
    uint64_t n_updates = (uint64_t)p->p.n_vectors * p->p.n_steps;
    if (n_updates > INT32_MAX) // the dividers require less
        return ree_fail(err, REE_UNSUPPORTED, "a scatter of 2^31 updates or more");
    if (p->p.kind == REE_SCATTER_SET && p->p.n_steps > FEW_STEPS) {
        uint32_t size = ree_dtype_size((enum ree_dtype)p->p.dtype);
        out->scratch_bytes = dispatch->operands[0].size / size * sizeof(uint32_t);
        ree_cuda_add_step(out, REE_CUDA_scatter_clear, 128, n_updates);
        ree_cuda_add_step(out, REE_CUDA_scatter_last, 128, n_updates);
        ree_cuda_add_step(out, REE_CUDA_scatter_set, 128, n_updates);
        return REE_OK;
    }
    uint64_t fill = (uint64_t)cuda->limits.n_multiprocessors * THREADS_TO_FILL;
    uint32_t shares = 1;
    while (shares < MAX_SHARES && shares * 2 <= p->p.n_steps &&
           (uint64_t)p->p.n_vectors * shares * 2 <= fill)
        shares *= 2;
    struct ree_cuda_step *step =
        ree_cuda_add_step(out, REE_CUDA_scatter_vectors, 128, (uint64_t)p->p.n_vectors * shares);
    step->extra[0] = shares;
    return REE_OK;
}
