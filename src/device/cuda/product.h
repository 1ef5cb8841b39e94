// Shared by the encoders of matmul and conv: the chunks' results in the scratch memory, and the
// launch that adds them and runs the epilogue (cuda/finish.h).
#ifndef REE_DEVICE_CUDA_PRODUCT_H
#define REE_DEVICE_CUDA_PRODUCT_H

#include "device/cuda/encode.h"

#define REE_CUDA_SLOT_BYTES                                                                        \
    16 // bytes per epilogue slot and thread, product_epilogue of cuda/matmul.h

// Reserves scratch memory after that already reserved, for n_parts results of each output. Returns
// the index of its first element.
uint32_t ree_cuda_add_parts(struct ree_cuda_encoding *out, uint64_t n_outputs, uint32_t n_parts);
// Adds the launch: kernel `any` if the epilogue is not arithmetic, otherwise `words`. epilogue may
// be NULL. n_slots: slots of the prepared epilogue. extra: the step's extra values.
void ree_cuda_add_finish(struct ree_cuda_encoding *out, const struct ree_expr *epilogue,
                         uint32_t n_slots, uint64_t n_outputs, enum ree_cuda_kernel words,
                         enum ree_cuda_kernel any, const uint32_t *extra);
// Returns whether the epilogue can run at the end of a kernel with `threads` threads per block.
bool ree_cuda_epilogue_fits(const struct ree_expr *epilogue, uint32_t n_slots, uint32_t threads);

#endif
