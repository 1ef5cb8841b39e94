// What `ree-run plan --write` says of each node of an ONNX file: its role, layer and phase, what
// each of its inputs is, and its stage.
#ifndef REE_GRAPH_PARTITION_NOTES_H
#define REE_GRAPH_PARTITION_NOTES_H

#include "graph/onnx/nodes_file.h"
#include "graph/partition/annotate.h"

#define REE_PIPELINE_CONFIGURATION "ree-pipeline"

// Fills notes[i] of node i of the file (file->n), in `arena`. `graph` is the file's after its
// passes: nodes that the passes removed have the role, layer and stage of the first node of the
// file that reads what they make; nodes that nothing needs have none. Control nodes have no stage.
enum ree_status ree_partition_notes(const struct ree_graph *graph,
                                    const struct ree_partition *partition,
                                    const struct ree_annotations *annotations,
                                    const struct ree_file_nodes *file, struct ree_arena *arena,
                                    struct ree_node_notes *notes, struct ree_error *err);

#endif
