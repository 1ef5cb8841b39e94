// Helpers of the encoders of matmul and conv. They reserve scratch memory for the sums of chunks,
// and add the launch that adds these sums up and applies the epilogue (cuda/finish.h).
#ifndef REE_DEVICE_CUDA_PRODUCT_H
#define REE_DEVICE_CUDA_PRODUCT_H

#include "device/cuda/encode.h"

#define REE_CUDA_SLOT_BYTES                                                                        \
    16 // bytes of shared memory per epilogue slot and thread: product_epilogue in cuda/product.h

// Extends the scratch memory by an array of 32-bit elements [n_parts][n_outputs]. Returns the index
// of the array's first element, counted in such elements from the beginning of the scratch memory.
uint32_t ree_cuda_add_parts(struct ree_cuda_encoding *out, uint64_t n_outputs, uint32_t n_parts);
// Adds the launch that adds up the parts of each output and applies the epilogue (NULL if none).
// The kernel is `words` if ree_cuda_expr_is_arithmetic(epilogue) or there is none, otherwise `any`.
// n_slots: slots of the prepared epilogue. extra: the step's extra values, copied.
void ree_cuda_add_finish(struct ree_cuda_encoding *out, const struct ree_expr *epilogue,
                         uint32_t n_slots, uint64_t n_outputs, enum ree_cuda_kernel words,
                         enum ree_cuda_kernel any, const uint32_t *extra);
// Returns whether the epilogue (may be NULL) can run at the end of the product's kernel, which has
// `threads` threads per block: it must be arithmetic, and its slots must fit in shared memory.
bool ree_cuda_epilogue_fits(const struct ree_expr *epilogue, uint32_t n_slots, uint32_t threads);

#endif
