// Locates a language model and reads the configuration in its folder: genai_config.json of
// onnxruntime-genai, config.json and generation_config.json of Hugging Face.
#ifndef REE_GENERATE_SOURCE_H
#define REE_GENERATE_SOURCE_H

#include "ree.h"

// Port names from a folder's configuration, with %d for the layer; NULL: not specified.
struct ree_port_names {
    char *input_ids, *attention_mask, *position_ids, *logits;
    char *past[2], *present[2]; // keys and values; if both are in one port, [1] is NULL
};

// Maximum number of eos tokens; longer lists are rejected.
#define REE_MAX_EOS 4096

struct ree_model_source {
    char *model_path; // the ONNX file, or the checkpoint folder
    char *folder;     // folder with the model's other files
    char *model_type; // never NULL
    struct ree_port_names names;
    int64_t context_length; // 0: unknown
    int32_t bos;            // -1: unknown
    size_t n_eos;           // at most REE_MAX_EOS
    int32_t *eos;
};

// `path` is an ONNX file or a folder. If a file is missing, its values stay unknown. Malformed
// files are errors.
enum ree_status ree_model_source_find(const char *path, struct ree_model_source *out,
                                      struct ree_error *err);
// Adds the model's own metadata (ree.*, which ree's own exports have). The context length becomes
// the smaller of both, because a model must not run beyond either. Tokens and type come from the
// metadata only if the folder has none, as for an export without other files.
enum ree_status ree_model_source_complete(struct ree_model_source *source,
                                          const struct ree_model *model, struct ree_error *err);
void ree_model_source_finish(struct ree_model_source *source);

#endif
