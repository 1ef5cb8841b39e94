// Rewrites an ONNX file with notes on the nodes of the main graph: their metadata_props and
// device_configurations, and the model's configuration that the latter refer to. Every other byte
// is copied unchanged, including fields that ree does not know; only the lengths of the messages
// that enclose a node change.
#ifndef REE_GRAPH_ONNX_NODES_FILE_H
#define REE_GRAPH_ONNX_NODES_FILE_H

#include "base/arena.h"
#include "graph/ir/ir.h"

// A node of the main graph. Inputs and outputs are named as in the file; "" if omitted.
struct ree_file_node {
    size_t field, begin, end; // byte offsets in the file: start of the field; the message in it
    size_t n_inputs, n_outputs;
    const char **inputs, **outputs;
};

struct ree_file_nodes {
    struct ree_arena arena;
    const unsigned char *bytes; // borrowed from the caller
    size_t nbytes;
    size_t graph_field, graph_begin, graph_end;
    size_t n;
    struct ree_file_node *nodes; // in file order
};

// `bytes` must be a whole ModelProto that the reader accepts, and must outlive *out.
enum ree_status ree_file_nodes_find(const void *bytes, size_t nbytes, struct ree_file_nodes *out,
                                    struct ree_error *err);
void ree_file_nodes_finish(struct ree_file_nodes *nodes);

// Writes the file with `notes[i]` on node i. Earlier notes with the same keys, and earlier notes
// for the configuration of that name, are replaced; other metadata is kept. A key without a value
// is removed. `n_devices` is the number of devices of the configuration. `path` may be the file
// that was read, as long as its bytes are mapped or in memory.
enum ree_status ree_file_nodes_write(const char *path, const struct ree_file_nodes *nodes,
                                     const struct ree_node_notes *notes, const char *configuration,
                                     uint32_t n_devices, struct ree_error *err);

#endif
