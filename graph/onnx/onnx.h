// Reads ONNX files: models, and files that hold one value.
#ifndef REE_GRAPH_ONNX_ONNX_H
#define REE_GRAPH_ONNX_ONNX_H

#include "graph/ir/ir.h"

// ree_onnx_load loads a model from a file, ree_onnx_load_memory from memory, into a checked graph;
// release *out_graph with ree_graph_destroy. External data is searched for in the folder of `path`;
// a model in memory cannot have any. Progress is reported in bytes of the model; `progress` may be
// NULL.
enum ree_status ree_onnx_load(const char *path, const struct ree_progress *progress,
                              struct ree_graph **out_graph, struct ree_error *err);
enum ree_status ree_onnx_load_memory(const void *bytes, size_t nbytes,
                                     const struct ree_progress *progress,
                                     struct ree_graph **out_graph, struct ree_error *err);
// Loads a model from `bytes` as if they were the file at `path`. `data` holds the contents of the
// external data file data->location; this function takes ownership of `data`, also on failure.
// Other external data is searched for in the folder of `path`. `data` may be NULL.
enum ree_status ree_onnx_load_as(const char *path, const void *bytes, size_t nbytes,
                                 struct ree_mapping *data, const struct ree_progress *progress,
                                 struct ree_graph **out_graph, struct ree_error *err);

// Loads a file that holds one serialised TensorProto. If `port` declares an optional or a sequence,
// the file must hold an OptionalProto or a SequenceProto instead. `port` may be NULL. Release
// *out_tensor with ree_tensor_finish.
enum ree_status ree_onnx_tensor_load(const char *path, const struct ree_port *port,
                                     struct ree_tensor *out_tensor, struct ree_error *err);

#endif
