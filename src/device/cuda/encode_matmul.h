// Shared by the encoders of matmul: plain operands and blockwise weights (encode_matmul.c), and
// blockwise activations (encode_matmul_int8.c).
#ifndef REE_DEVICE_CUDA_ENCODE_MATMUL_H
#define REE_DEVICE_CUDA_ENCODE_MATMUL_H

#include "device/cuda/cuda.h"
#include "device/cuda/encode.h"

// Reserves scratch memory for n_parts results of each output, as ree_cuda_add_parts.
uint32_t ree_cuda_matmul_add_parts(struct ree_cuda_encoding *out, const struct ree_matmul_params *p,
                                   uint32_t n_parts);
// Adds the launch that adds the parts and runs the epilogue.
void ree_cuda_matmul_add_finish(struct ree_cuda_encoding *out, const struct ree_dispatch *dispatch,
                                const uint32_t *extra);
// Returns whether the epilogue can run at the end of a kernel with `threads` threads per block.
bool ree_cuda_matmul_epilogue_fits(const struct ree_dispatch *dispatch,
                                   const struct ree_cuda_encoding *out, uint32_t threads);
// Adds a kernel with one thread per output and, if there is an epilogue, its launch.
void ree_cuda_matmul_add_words(struct ree_cuda_encoding *out, const struct ree_dispatch *dispatch,
                               enum ree_cuda_kernel kernel);

// Returns whether every column of blockwise weights begins at a multiple of 16 bytes.
bool ree_cuda_matmul_has_aligned_blocks(const struct ree_dispatch *dispatch);

// Few rows, cuda/matvec.h: a launch of blocks that compute `columns` columns and some chunks each.
#define REE_CUDA_MATVEC_ROWS 8 // maximum
struct ree_cuda_matvec {
    enum ree_cuda_kernel kernel;
    uint32_t flags;         // bits of enum ree_cuda_product_flag
    uint32_t rows, columns; // of a block
    uint64_t n_groups;      // groups of columns, of all batches
    uint32_t stage_bytes;   // shared memory of a stage
    uint32_t a_bytes;       // shared memory of a chunk of A
};
// Bytes of a stage of 32 columns of blockwise weights.
uint32_t ree_cuda_matvec_stage_bytes(const struct ree_matmul_params *p);
// Adds the launch, and the one that finishes it if that needs one. Returns false, and adds nothing,
// if the device has too little shared memory or the chunks' results are too large.
bool ree_cuda_matmul_add_matvec(const struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                                struct ree_cuda_encoding *out,
                                const struct ree_cuda_matvec *launch);

// Encodes a product of blockwise activations that is not empty. The epilogue is prepared.
void ree_cuda_encode_matmul_int8(const struct ree_cuda *cuda, const struct ree_dispatch *dispatch,
                                 struct ree_cuda_encoding *out);

#endif
