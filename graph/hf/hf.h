// Loads Hugging Face checkpoints as ONNX models. README.md in this folder describes the written
// graph.
#ifndef REE_GRAPH_HF_HF_H
#define REE_GRAPH_HF_HF_H

#include "base/status.h"

struct ree_graph;

struct ree_hf_options {
    // Same meaning as in struct ree_export_options (ree/model.h).
    uint32_t quantize_bits, quantize_block, quantize_table;
    enum ree_dtype activations;
    struct ree_progress progress;
};

// Returns whether ree supports checkpoints of this architecture (config.json's model_type).
bool ree_hf_knows(const char *model_type);
// Loads the checkpoint in `folder` as a graph. The graph is that of the model that ree_export
// writes with the same quantisation, the same activations and no other option. The caller releases
// it with ree_graph_destroy.
enum ree_status ree_hf_load(const char *folder, const struct ree_hf_options *options,
                            struct ree_graph **out_graph, struct ree_error *err);

#endif
