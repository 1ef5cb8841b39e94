// The operations of expressions that ptx.c writes as a few instructions.
#ifndef REE_DEVICE_CUDA_PTX_OPS_H
#define REE_DEVICE_CUDA_PTX_OPS_H

#include "repops/repop.h"

struct ree_cuda_ptx_op {
    const char *text; // instructions; NULL: call a function of cuda/functions.cu
    bool is_number;   // a NaN result has arbitrary bits: canonicalise it before its bits are used
};
extern const struct ree_cuda_ptx_op ree_cuda_ptx_ops[REE_N_MAP_OPS];

#endif
