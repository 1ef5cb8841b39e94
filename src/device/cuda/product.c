#include "device/cuda/product.h"

#include <string.h>

#define FINISH_THREADS 128
#define MAX_SLOT_BYTES (32u << 10) // above this limit the epilogue gets its own launch

uint32_t ree_cuda_add_parts(struct ree_cuda_encoding *out, uint64_t n_outputs, uint32_t n_parts) {
    uint32_t at = (uint32_t)(out->scratch_bytes / 4);
    out->scratch_bytes += n_outputs * n_parts * 4;
    return at;
}

void ree_cuda_add_finish(struct ree_cuda_encoding *out, const struct ree_expr *epilogue,
                         uint32_t n_slots, uint64_t n_outputs, enum ree_cuda_kernel words,
                         enum ree_cuda_kernel any, const uint32_t *extra) {
    bool is_any = epilogue && !ree_cuda_expr_is_arithmetic(epilogue);
    uint32_t slot = is_any ? 8 : REE_CUDA_SLOT_BYTES, threads = FINISH_THREADS;
    while (n_slots * slot * threads > 48u << 10)
        threads /= 2;
    struct ree_cuda_step *step = is_any
                                     ? ree_cuda_add_step(out, any, threads, n_outputs)
                                     : ree_cuda_add_step(out, words, threads, (n_outputs + 3) / 4);
    step->shared_bytes = n_slots * slot * threads;
    memcpy(step->extra, extra, sizeof step->extra);
}

bool ree_cuda_epilogue_fits(const struct ree_expr *epilogue, uint32_t n_slots, uint32_t threads) {
    return !epilogue || (ree_cuda_expr_is_arithmetic(epilogue) &&
                         n_slots * REE_CUDA_SLOT_BYTES * threads <= MAX_SLOT_BYTES);
}
