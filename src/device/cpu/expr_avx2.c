#define EXPR_KERNELS ree_cpu_expr_kernels_avx2
#include "device/cpu/expr_kernels.inc"
