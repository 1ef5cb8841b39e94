// Where a language model lies and what its folder says about it: genai_config.json of
// onnxruntime-genai, config.json and generation_config.json of Hugging Face.
#ifndef REE_GENERATE_SOURCE_H
#define REE_GENERATE_SOURCE_H

#include "ree.h"

// Names of ports as a folder gives them, with %d for the layer; NULL: not given.
struct ree_port_names {
    char *input_ids, *attention_mask, *position_ids, *logits;
    char *past[2], *present[2]; // keys and values, or both in one (then [1] is NULL)
};

// More tokens that end a text are no model's.
#define REE_MAX_EOS 4096

struct ree_model_source {
    char *model_path; // the ONNX file, or the folder of a checkpoint
    char *folder;     // what lies beside it
    char *model_type; // never NULL
    struct ree_port_names names;
    int64_t context_length; // 0: not known
    int32_t bos;            // -1: not known
    size_t n_eos;           // at most REE_MAX_EOS
    int32_t *eos;
};

// `path` is an ONNX file or a folder. Files that are not there leave what they would say unknown;
// files that make no sense are errors.
enum ree_status ree_model_source_find(const char *path, struct ree_model_source *out,
                                      struct ree_error *err);
// Adds what the model itself says (metadata ree.*, which ree's own exports have): the context is
// the smaller of both, which a model may not be run beyond; tokens and type are the model's where
// the folder names none, as an export's that lies alone.
enum ree_status ree_model_source_complete(struct ree_model_source *source,
                                          const struct ree_model *model, struct ree_error *err);
void ree_model_source_finish(struct ree_model_source *source);

#endif
