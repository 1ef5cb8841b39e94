// A checkpoint as Hugging Face's libraries save it: a folder with config.json and the weights, in
// model.safetensors or in several shards that model.safetensors.index.json lists. Weights are
// mapped, never read whole. Files are opened as a model's external data are: nothing outside the
// folder, but for the links of a Hugging Face cache into its blobs.
#ifndef REE_GRAPH_HF_CHECKPOINT_H
#define REE_GRAPH_HF_CHECKPOINT_H

#include "base/json.h"
#include "graph/hf/safetensors.h"
#include "graph/mapping.h"

struct ree_checkpoint {
    const char *folder; // as given
    cJSON *config;      // config.json
    cJSON *generation;  // generation_config.json; NULL: there is none
    bool has_code;      // config.json or tokenizer_config.json has an auto_map
    size_t n_files;
    const char **files; // names in the folder, in the order of their first mention
    struct ree_mapping **mappings;
    size_t n_tensors;
    struct ree_stored_tensor *tensors; // sorted by name
    struct ree_arena arena;            // of the above
};

// On failure *out is finished. `folder` has to outlive it.
enum ree_status ree_checkpoint_init(struct ree_checkpoint *out, const char *folder,
                                    struct ree_error *err);
void ree_checkpoint_finish(struct ree_checkpoint *checkpoint);

// The steps of ree_checkpoint_init for files that are in memory already: a zeroed struct with its
// arena and config, then each file (`mapping` is taken over, also on failure), then the order.
enum ree_status ree_checkpoint_add(struct ree_checkpoint *checkpoint, const char *name,
                                   struct ree_mapping *mapping, struct ree_error *err);
enum ree_status ree_checkpoint_sort(struct ree_checkpoint *checkpoint, struct ree_error *err);

const struct ree_stored_tensor *ree_checkpoint_find(const struct ree_checkpoint *checkpoint,
                                                    const char *name); // NULL: there is none
static inline const void *ree_checkpoint_data(const struct ree_checkpoint *checkpoint,
                                              const struct ree_stored_tensor *tensor) {
    return checkpoint->mappings[tensor->file]->data + tensor->offset;
}

#endif
