#define EXPR_KERNELS ree_cpu_expr_kernels_portable
#include "device/cpu/expr_kernels.inc"
