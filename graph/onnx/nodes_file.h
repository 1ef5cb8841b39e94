// Rewrites an ONNX file with new notes on the nodes of the main graph. Notes are entries of a
// node's metadata_props and device_configurations, and the entry of the model's `configuration` to
// which device_configurations refer. Every other byte is copied unchanged, including fields that
// ree does not know; only the lengths of the messages that enclose a node change.
#ifndef REE_GRAPH_ONNX_NODES_FILE_H
#define REE_GRAPH_ONNX_NODES_FILE_H

#include "base/arena.h"
#include "graph/ir/ir.h"

// A node of the main graph. `inputs` and `outputs` are names as in the file; "": omitted.
struct ree_file_node {
    // Byte offsets in the file: `field` is the start of the protobuf field that holds the node; the
    // NodeProto itself is [begin, end).
    size_t field, begin, end;
    size_t n_inputs, n_outputs;
    const char **inputs, **outputs;
};

struct ree_file_nodes {
    struct ree_arena arena;
    const unsigned char *bytes; // contents of the file; borrowed from the caller
    size_t nbytes;
    size_t graph_field, graph_begin, graph_end;
    size_t n;
    struct ree_file_node *nodes; // [n], in the order of the file
};

// Finds the nodes of the main graph. `bytes` must be a whole ModelProto that the ONNX reader
// accepts, and must outlive *out. Fails with REE_INVALID if it is malformed or has no graph.
enum ree_status ree_file_nodes_find(const void *bytes, size_t nbytes, struct ree_file_nodes *out,
                                    struct ree_error *err);
void ree_file_nodes_finish(struct ree_file_nodes *nodes);

// Writes a copy of the model to `path`, with notes[i] on node i (nodes->n entries). A note replaces
// an earlier note with the same key; a key whose value is NULL is only removed. Other metadata is
// kept. `configuration` is the name under which the stages of the nodes and n_devices, the number
// of devices, are stored; earlier entries of that name are replaced. `path` may be the file that
// nodes->bytes were read or mapped from. Fails with REE_UNSUPPORTED if the file would exceed 2 GiB.
enum ree_status ree_file_nodes_write(const char *path, const struct ree_file_nodes *nodes,
                                     const struct ree_node_notes *notes, const char *configuration,
                                     uint32_t n_devices, struct ree_error *err);

#endif
