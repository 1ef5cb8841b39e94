#include "graph/load.h"

#include <string.h>
#include <sys/stat.h>

#include "base/float_env.h"
#include "base/npy.h"
#include "graph/hf/hf.h"
#include "graph/onnx/onnx.h"

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

enum ree_status ree_graph_load(const char *path, const struct ree_load_options *options,
                               struct ree_graph **out_graph, struct ree_error *err) {
    static const struct ree_load_options none;
    if (!options) options = &none;
    *out_graph = NULL;
    if (is_folder(path)) {
        struct ree_hf_options hf = {.quantize_bits = options->quantize_bits,
                                    .quantize_block = options->quantize_block,
                                    .quantize_table = options->quantize_table,
                                    .activations = options->activations,
                                    .progress = options->progress};
        return ree_hf_load(path, &hf, out_graph, err);
    }
    if (options->quantize_bits ||
        (options->quantize_table && options->quantize_table != REE_QUANTIZE_KEEP))
        return ree_fail(err, REE_INVALID,
                        "%s: is not a folder with a Hugging Face checkpoint; only these can be "
                        "quantised when loaded",
                        path);
    if (options->activations != REE_DTYPE_NONE && options->activations != REE_F32)
        return ree_fail(
            err, REE_INVALID,
            "%s: is not a folder with a Hugging Face checkpoint; only for these can the "
            "type of activations be chosen",
            path);
    return ree_onnx_load(path, &options->progress, out_graph, err);
}

enum ree_status ree_graph_load_memory(const void *bytes, size_t nbytes,
                                      const struct ree_progress *progress,
                                      struct ree_graph **out_graph, struct ree_error *err) {
    return ree_onnx_load_memory(bytes, nbytes, progress, out_graph, err);
}

bool ree_load_knows_architecture(const char *model_type) {
    return ree_hf_knows(model_type);
}

// Tensors

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
