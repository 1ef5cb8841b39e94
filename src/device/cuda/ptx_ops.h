// Which operations of expressions are a few instructions, for ptx.c.
#ifndef REE_DEVICE_CUDA_PTX_OPS_H
#define REE_DEVICE_CUDA_PTX_OPS_H

#include "repops/repop.h"

struct ree_cuda_ptx_op {
    const char *text; // instructions; NULL: a function of cuda/functions.cu
    bool is_number;   // a NaN of it has any bits: to be made canonical before the bits matter
};
extern const struct ree_cuda_ptx_op ree_cuda_ptx_ops[REE_N_MAP_OPS];

#endif
