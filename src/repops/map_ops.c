// The table of scalar operations, built from map_ops.def.
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
    case REE_U64:
    case REE_F64: return REE_CLASS_D;
    case REE_F32:
    case REE_U8:
    case REE_I8:
    case REE_U16:
    case REE_I16:
    case REE_I32:
    case REE_U32:
    case REE_BOOL:
    case REE_F16:
    case REE_BF16:
    case REE_F8E4M3FN:
    case REE_F8E4M3FNUZ:
    case REE_F8E5M2:
    case REE_F8E5M2FNUZ:
    case REE_F8E8M0:
    case REE_F4E2M1:
    case REE_U4:
    case REE_I4:
    case REE_U2:
    case REE_I2: return REE_CLASS_W;
    default: return REE_CLASS_NONE;
    }
}

// Indexed by a float32 operation: the float64 operation that corresponds to it; 0: none.
#define PAIR(name) [REE_MAP_##name##_f32] = REE_MAP_##name##_f64
static const uint16_t in_f64[REE_N_MAP_OPS] = {
    PAIR(add),      PAIR(sub),      PAIR(mul),   PAIR(div),   PAIR(fma),   PAIR(mod),
    PAIR(fmod),     PAIR(pow),      PAIR(sqrt),  PAIR(rsqrt), PAIR(neg),   PAIR(abs),
    PAIR(min),      PAIR(max),      PAIR(sign),  PAIR(floor), PAIR(ceil),  PAIR(trunc),
    PAIR(round),    PAIR(eq),       PAIR(lt),    PAIR(le),    PAIR(isnan), PAIR(isposinf),
    PAIR(isneginf), PAIR(exp),      PAIR(expm1), PAIR(log),   PAIR(log1p), PAIR(sin),
    PAIR(cos),      PAIR(tan),      PAIR(asin),  PAIR(acos),  PAIR(atan),  PAIR(sinh),
    PAIR(cosh),     PAIR(tanh),     PAIR(asinh), PAIR(acosh), PAIR(atanh), PAIR(erf),
    PAIR(sigmoid),  PAIR(softplus),
};

enum ree_map_op ree_map_op_in_f64(enum ree_map_op op) {
    return in_f64[op] ? (enum ree_map_op)in_f64[op] : REE_N_MAP_OPS;
}
