// Reads a tensor in any supported format, chosen by the file's extension.
#include "base/npy.h"
#include "base/float_env.h"
#include "base/status.h"
#include "graph/ir.h"

#include <string.h>

enum ree_status ree_tensor_load(struct ree_tensor *tensor, const char *path,
                                struct ree_error *err) {
    REE_FLOAT_ENV_API();
    return ree_tensor_load_for(tensor, path, NULL, err);
}

enum ree_status ree_tensor_load_for(struct ree_tensor *tensor, const char *path,
                                    const struct ree_port *port, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    memset(tensor, 0, sizeof *tensor);
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    if (dot && strcmp(dot, ".npy") == 0) return ree_npy_load(tensor, path, err);
    if (dot && strcmp(dot, ".pb") == 0) return ree_onnx_tensor_load(path, port, tensor, err);
    return ree_fail(err, REE_UNSUPPORTED,
                    "%s: expected a file ending in .npy (NumPy) or .pb (an ONNX TensorProto)",
                    path);
}
