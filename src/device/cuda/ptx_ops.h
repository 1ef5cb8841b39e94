// Table of the operations of expressions: the PTX instructions that ptx.c writes for each.
#ifndef REE_DEVICE_CUDA_PTX_OPS_H
#define REE_DEVICE_CUDA_PTX_OPS_H

#include "repops/repop.h"

struct ree_cuda_ptx_op {
    const char *text; // PTX instructions; NULL: ptx.c calls a function of cuda/functions.cu
    bool is_number;   // a NaN result may have any bits: canonicalise it before its bits are used
};
extern const struct ree_cuda_ptx_op ree_cuda_ptx_ops[REE_N_MAP_OPS];

#endif
