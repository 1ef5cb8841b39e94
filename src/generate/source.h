// Locates a language model and reads the configuration in its folder: genai_config.json of
// onnxruntime-genai, config.json and generation_config.json of Hugging Face.
#ifndef REE_GENERATE_SOURCE_H
#define REE_GENERATE_SOURCE_H

#include "ree.h"

// Names of a model's inputs and outputs as the folder's configuration states them; NULL: not
// stated. Names of kv caches contain %d for the number of the layer.
struct ree_port_names {
    char *input_ids, *attention_mask, *position_ids, *logits;
    // kv cache inputs and outputs: [0] keys, [1] values; if one port has both, [1] is NULL
    char *past[2], *present[2];
};

// Maximum number of eos tokens of a model; a longer list fails with REE_INVALID.
#define REE_MAX_EOS 4096

struct ree_model_source {
    char *model_path; // path of the ONNX file, or of the checkpoint folder
    char *folder;     // folder with the configuration and the tokenizer
    char *model_type; // "llama", ...; "" if unknown
    struct ree_port_names names;
    int64_t context_length; // maximum tokens of prompt and answer; 0: unknown
    int32_t bos;            // id of the token that begins a text; -1: unknown
    size_t n_eos;           // number of eos tokens, at most REE_MAX_EOS
    int32_t *eos;           // (n_eos): ids of the tokens that end a text
};

// Finds the model in `path`, an ONNX file or a folder, and reads the configuration in its folder.
// The values of a missing configuration file stay unknown. Fails with REE_NOT_FOUND if there is no
// model, and with REE_INVALID if a configuration file is malformed. Release *out with
// ree_model_source_finish.
enum ree_status ree_model_source_find(const char *path, struct ree_model_source *out,
                                      struct ree_error *err);
// Adds the values in the model's own metadata (keys ree.*, which ree's exports have). If the folder
// and the metadata both state a context length, the smaller one is used, because a model must not
// run beyond either. The bos token, the eos tokens and the model type come from the metadata only
// if the folder states none. Fails with REE_INVALID if the metadata is malformed.
enum ree_status ree_model_source_complete(struct ree_model_source *source,
                                          const struct ree_model *model, struct ree_error *err);
void ree_model_source_finish(struct ree_model_source *source);

#endif
