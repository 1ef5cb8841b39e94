// Loads models and tensors. This is the one place that knows all formats: an ONNX file, a folder
// with a Hugging Face checkpoint, and for tensors .npy and .pb files.
#ifndef REE_GRAPH_LOAD_H
#define REE_GRAPH_LOAD_H

#include "base/status.h"

struct ree_graph;

struct ree_load_options {
    // Same meaning as in struct ree_export_options (ree/model.h). Only for checkpoint folders.
    uint32_t quantize_bits, quantize_block, quantize_table;
    enum ree_dtype activations;
    struct ree_progress progress; // in bytes
};

// Loads the model in a file or a folder as a checked graph. `options` may be NULL. Fails with
// REE_INVALID if quantisation, or a type of activations other than float32, is requested for a
// file. The caller releases the graph with ree_graph_destroy.
enum ree_status ree_graph_load(const char *path, const struct ree_load_options *options,
                               struct ree_graph **out_graph, struct ree_error *err);
// As ree_graph_load, for an ONNX model of `nbytes` bytes in memory. It has no folder, so a model
// with external data is rejected. `progress` may be NULL.
enum ree_status ree_graph_load_memory(const void *bytes, size_t nbytes,
                                      const struct ree_progress *progress,
                                      struct ree_graph **out_graph, struct ree_error *err);
// Returns whether ree supports checkpoints of this architecture (config.json's model_type).
bool ree_load_knows_architecture(const char *model_type);

#endif
