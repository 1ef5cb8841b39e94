// Loads models and tensors. This is the one place that knows all formats: an ONNX file, a folder
// with a Hugging Face checkpoint, and for tensors .npy and .pb files.
#ifndef REE_GRAPH_LOAD_H
#define REE_GRAPH_LOAD_H

#include "base/status.h"

struct ree_graph;

struct ree_load_options {
    // As in struct ree_export_options; folders only.
    uint32_t quantize_bits, quantize_block, quantize_table;
    enum ree_dtype activations;
    struct ree_progress progress; // in bytes
};

// Loads a checked graph from a file or a folder. `options` may be NULL. Fails with REE_INVALID if
// quantisation or a type of activations is requested for a file. The caller releases the graph with
// ree_graph_destroy.
enum ree_status ree_graph_load(const char *path, const struct ree_load_options *options,
                               struct ree_graph **out_graph, struct ree_error *err);
// Loads an ONNX model in memory. It has no folder, so external data is rejected.
// `progress` may be NULL.
enum ree_status ree_graph_load_memory(const void *bytes, size_t nbytes,
                                      const struct ree_progress *progress,
                                      struct ree_graph **out_graph, struct ree_error *err);
// Returns whether ree supports checkpoints of this architecture (config.json's model_type).
bool ree_load_knows_architecture(const char *model_type);

#endif
