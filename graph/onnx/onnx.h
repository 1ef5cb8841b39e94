// Reads ONNX files: models, and files that hold one value.
#ifndef REE_GRAPH_ONNX_ONNX_H
#define REE_GRAPH_ONNX_ONNX_H

#include "graph/ir/ir.h"

// Loads an ONNX file into a checked graph. External data is searched in the folder of `path`; a
// model in memory has no folder. Reports done and total in bytes; `progress` may be
// NULL.
enum ree_status ree_onnx_load(const char *path, const struct ree_progress *progress,
                              struct ree_graph **out_graph, struct ree_error *err);
enum ree_status ree_onnx_load_memory(const void *bytes, size_t nbytes,
                                     const struct ree_progress *progress,
                                     struct ree_graph **out_graph, struct ree_error *err);
// Reads bytes in memory as if they were the file at `path`. `data` holds the external data whose
// location is data->location; ownership passes to this function, also on failure. NULL: all
// external data is in the folder.
enum ree_status ree_onnx_load_as(const char *path, const void *bytes, size_t nbytes,
                                 struct ree_mapping *data, const struct ree_progress *progress,
                                 struct ree_graph **out_graph, struct ree_error *err);

// Loads a file that holds one serialised TensorProto, or a SequenceProto or OptionalProto if `port`
// requires it. `port` may be NULL.
enum ree_status ree_onnx_tensor_load(const char *path, const struct ree_port *port,
                                     struct ree_tensor *out_tensor, struct ree_error *err);

#endif
