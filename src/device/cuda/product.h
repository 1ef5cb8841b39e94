// What the encoders of matmul and conv share: the results of chunks in the scratch memory, and the
// launch that adds them and runs the epilogue (cuda/finish.h).
#ifndef REE_DEVICE_CUDA_PRODUCT_H
#define REE_DEVICE_CUDA_PRODUCT_H

#include "device/cuda/encode.h"

#define REE_CUDA_SLOT_BYTES                                                                        \
    16 // of an epilogue's slot and thread, product_epilogue of cuda/matmul.h

// Reserves the scratch memory of n_parts results of each output, behind what is there; returns the
// first's element.
uint32_t ree_cuda_add_parts(struct ree_cuda_encoding *out, uint64_t n_outputs, uint32_t n_parts);
// Adds the launch: of `words`, or of `any` for an epilogue that is not arithmetic. epilogue: NULL
// without one; n_slots: of the epilogue made ready.
void ree_cuda_add_finish(struct ree_cuda_encoding *out, const struct ree_expr *epilogue,
                         uint32_t n_slots, uint64_t n_outputs, enum ree_cuda_kernel words,
                         enum ree_cuda_kernel any, const uint32_t *extra);
// Whether the epilogue can be the end of a kernel of so many threads.
bool ree_cuda_epilogue_fits(const struct ree_expr *epilogue, uint32_t n_slots, uint32_t threads);

#endif
