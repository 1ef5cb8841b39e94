// Loads Hugging Face checkpoints as ONNX models. README.md in this folder describes the written
// graph.
#ifndef REE_GRAPH_HF_HF_H
#define REE_GRAPH_HF_HF_H

#include "base/status.h"

struct ree_graph;

struct ree_hf_options {
    // As in struct ree_export_options.
    uint32_t quantize_bits, quantize_block, quantize_table;
    enum ree_dtype activations;
    struct ree_progress progress;
};

// Returns whether ree supports checkpoints of this architecture (config.json's model_type).
bool ree_hf_knows(const char *model_type);
// Makes the graph of a checkpoint in memory. It is the graph of the model that ree_export writes
// with the same quantisation and no other option, made from the same bytes. The caller releases it
// with ree_graph_destroy.
enum ree_status ree_hf_load(const char *folder, const struct ree_hf_options *options,
                            struct ree_graph **out_graph, struct ree_error *err);

#endif
