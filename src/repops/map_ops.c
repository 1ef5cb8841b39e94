// The table of scalar operations, from map_ops.def.
#include "repops/repop.h"

#define REE_CLASS_OF(c) REE_CLASS_OF_##c
#define REE_CLASS_OF_W REE_CLASS_W
#define REE_CLASS_OF_D REE_CLASS_D
#define REE_CLASS_OF__ REE_CLASS_NONE

const struct ree_map_op_info ree_map_op_infos[REE_N_MAP_OPS] = {
    [REE_MAP_CONST32] = {"const32", 0, REE_CLASS_W, {REE_CLASS_NONE}},
    [REE_MAP_CONST64] = {"const64", 0, REE_CLASS_D, {REE_CLASS_NONE}},
#define MAP_OP(name, n_args, result, a, b, c)                                                      \
    [REE_MAP_##name] = {                                                                           \
        #name, n_args, REE_CLASS_OF(result), {REE_CLASS_OF(a), REE_CLASS_OF(b), REE_CLASS_OF(c)}},
#include "repops/map_ops.def"
};

enum ree_class ree_dtype_class(enum ree_dtype dtype) {
    switch (dtype) {
    case REE_I64:
    case REE_U64: return REE_CLASS_D;
    case REE_F32:
    case REE_U8:
    case REE_I8:
    case REE_U16:
    case REE_I16:
    case REE_I32:
    case REE_U32:
    case REE_BOOL:
    case REE_F16:
    case REE_BF16: return REE_CLASS_W;
    default: return REE_CLASS_NONE;
    }
}
