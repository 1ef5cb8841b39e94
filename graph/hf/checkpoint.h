// A checkpoint as Hugging Face's libraries save it: a folder with config.json and the weights. The
// weights are in model.safetensors, or in several shards that model.safetensors.index.json lists.
// They are mapped, never read as a whole. Files are opened like a model's external data: nothing
// outside the folder is opened, except through the links of a Hugging Face cache into its blobs.
#ifndef REE_GRAPH_HF_CHECKPOINT_H
#define REE_GRAPH_HF_CHECKPOINT_H

#include "base/json.h"
#include "graph/hf/safetensors.h"
#include "graph/ir/mapping.h"

struct ree_checkpoint {
    const char *folder; // borrowed
    cJSON *config;      // config.json
    cJSON *generation;  // generation_config.json; NULL: absent
    bool has_code;      // config.json or tokenizer_config.json has an auto_map
    size_t n_files;
    const char **files; // names of the weight files; mappings[i] maps files[i]
    struct ree_mapping **mappings;
    size_t n_tensors;
    struct ree_stored_tensor *tensors; // sorted by name
    struct ree_arena arena;            // holds the names of files and of tensors
};

// Opens the checkpoint in a folder. On failure *out owns nothing. `folder` must outlive *out. Fails
// with REE_NOT_FOUND if there is no such folder, config.json or weights.
enum ree_status ree_checkpoint_init(struct ree_checkpoint *out, const char *folder,
                                    struct ree_error *err);
void ree_checkpoint_finish(struct ree_checkpoint *checkpoint);

// The steps of ree_checkpoint_init for files that are already in memory. The caller begins with a
// zeroed struct, initialises its arena and sets `config`. It adds each file, and then sorts the
// tensors. ree_checkpoint_add takes ownership of `mapping`, also on failure.
enum ree_status ree_checkpoint_add(struct ree_checkpoint *checkpoint, const char *name,
                                   struct ree_mapping *mapping, struct ree_error *err);
enum ree_status ree_checkpoint_sort(struct ree_checkpoint *checkpoint, struct ree_error *err);

const struct ree_stored_tensor *ree_checkpoint_find(const struct ree_checkpoint *checkpoint,
                                                    const char *name); // NULL: no such tensor
static inline const void *ree_checkpoint_data(const struct ree_checkpoint *checkpoint,
                                              const struct ree_stored_tensor *tensor) {
    return checkpoint->mappings[tensor->file]->data + tensor->offset;
}

#endif
