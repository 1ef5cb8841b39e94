// Enumerators for the modules and kernels that kernels.def lists, in its order.
#ifndef REE_DEVICE_CUDA_KERNEL_NUMBERS_H
#define REE_DEVICE_CUDA_KERNEL_NUMBERS_H

enum ree_cuda_module {
#define MODULE(name) REE_CUDA_MODULE_##name,
#define KERNEL(name)
#include "device/cuda/kernels.def"
    REE_CUDA_N_MODULES
};

enum ree_cuda_kernel {
#define MODULE(name)
#define KERNEL(name) REE_CUDA_##name,
#include "device/cuda/kernels.def"
    REE_CUDA_N_KERNELS
};

#endif
