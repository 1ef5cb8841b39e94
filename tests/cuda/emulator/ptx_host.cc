// The functions of cuda/functions.cu, compiled for the host: for modules of the JIT that only
// declare them, because the build has no kernels (REE_CUDA=OFF).
#include "ptx_parse.h"

#include "repops/scalar/ops.h"

namespace ree_ptx {

#define ARGS_1(A, B, C) (REE_AS_##A) a[0]
#define ARGS_2(A, B, C) (REE_AS_##A) a[0], (REE_AS_##B)a[1]
#define ARGS_3(A, B, C) (REE_AS_##A) a[0], (REE_AS_##B)a[1], (REE_AS_##C)a[2]
#define REE_AS_W uint32_t
#define REE_AS_D uint64_t
static const struct {
    const char *name;
    host_function *function;
} functions[] = {
#define MAP_OP(name, n_args, result, A, B, C)                                                      \
    {"ree_fn_" #name,                                                                              \
     [](const uint64_t *a) -> uint64_t { return ree_op_##name(ARGS_##n_args(A, B, C)); }},
#define REE_DEVICE_MAP_OPS
#include "repops/map_ops.def"
};

host_function *find_host_function(const std::string &name) {
    for (auto &f : functions)
        if (name == f.name) return f.function;
    return NULL;
}

} // namespace ree_ptx
