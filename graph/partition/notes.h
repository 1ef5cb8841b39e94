// The notes that `ree-run plan --write` writes on each node of an ONNX file: its role, layer and
// phase, the roles of its inputs, and its stage.
#ifndef REE_GRAPH_PARTITION_NOTES_H
#define REE_GRAPH_PARTITION_NOTES_H

#include "graph/onnx/nodes_file.h"
#include "graph/partition/annotate.h"

#define REE_PIPELINE_CONFIGURATION "ree-pipeline"

// Fills notes[i] for node i of the file (file->n entries), allocated in `arena`. `graph` is the
// file's graph after its passes. A node that the passes removed gets the role, layer, phase and
// stage of the first node in the file that reads its results. A node that no remaining node depends
// on gets keys without values, so that earlier notes are removed. Control nodes get no stage.
enum ree_status ree_partition_notes(const struct ree_graph *graph,
                                    const struct ree_partition *partition,
                                    const struct ree_annotations *annotations,
                                    const struct ree_file_nodes *file, struct ree_arena *arena,
                                    struct ree_node_notes *notes, struct ree_error *err);

#endif
