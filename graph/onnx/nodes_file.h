// An ONNX file again, with notes on its nodes: metadata_props and device_configurations of nodes of
// the main graph, and the model's configuration that those refer to. Every other byte is as it was,
// also of fields that ree does not know; only the lengths of what encloses a node change.
#ifndef REE_GRAPH_ONNX_NODES_FILE_H
#define REE_GRAPH_ONNX_NODES_FILE_H

#include "base/arena.h"
#include "graph/ir.h"

// A node of the main graph. Inputs and outputs are as in the file: "" where omitted.
struct ree_file_node {
    size_t field, begin, end; // bytes of the file: the field, and the message in it
    size_t n_inputs, n_outputs;
    const char **inputs, **outputs;
};

struct ree_file_nodes {
    struct ree_arena arena;
    const unsigned char *bytes; // the caller's
    size_t nbytes;
    size_t graph_field, graph_begin, graph_end;
    size_t n;
    struct ree_file_node *nodes; // in the order of the file
};

// `bytes`, a whole ModelProto that the reader accepts, have to outlive *out.
enum ree_status ree_file_nodes_find(const void *bytes, size_t nbytes, struct ree_file_nodes *out,
                                    struct ree_error *err);
void ree_file_nodes_finish(struct ree_file_nodes *nodes);

// Writes the file with `notes[i]` on node i. What earlier notes said under the same keys, and for
// the configuration of that name, is replaced; other metadata stay. A key without a value is taken
// away. `n_devices`: of the
// configuration. `path` may be the file that was read, as long as that is mapped or in memory.
enum ree_status ree_file_nodes_write(const char *path, const struct ree_file_nodes *nodes,
                                     const struct ree_node_notes *notes, const char *configuration,
                                     uint32_t n_devices, struct ree_error *err);

#endif
