// Operations of expressions as functions ree_fn_<name>: all of map_ops.def except REE_HOST_MAP_OPS.
// The code that src/device/cuda/ptx.c generates for an expression calls these functions for
// operations that it does not emit as instructions. Compiled only to PTX. NUMERICS.md sections 1,
// 2, 4 and 5.
#include "repops/scalar/ops.h"

#define REE_FN_TYPE_W u32
#define REE_FN_TYPE_D u64
#define REE_FN_1(name, R, A, B, C)                                                                 \
    extern "C" __device__ R ree_fn_##name(A a) {                                                   \
        return ree_op_##name(a);                                                                   \
    }
#define REE_FN_2(name, R, A, B, C)                                                                 \
    extern "C" __device__ R ree_fn_##name(A a, B b) {                                              \
        return ree_op_##name(a, b);                                                                \
    }
#define REE_FN_3(name, R, A, B, C)                                                                 \
    extern "C" __device__ R ree_fn_##name(A a, B b, C c) {                                         \
        return ree_op_##name(a, b, c);                                                             \
    }
#define REE_FN_TYPE__ u32 // the operation has no such argument
#define MAP_OP(name, n_args, result, A, B, C)                                                      \
    REE_FN_##n_args(name, REE_FN_TYPE_##result, REE_FN_TYPE_##A, REE_FN_TYPE_##B, REE_FN_TYPE_##C)
#define REE_DEVICE_MAP_OPS
#include "repops/map_ops.def"
