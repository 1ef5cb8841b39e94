// Stages that the nodes of an ONNX file ask for: pipeline_stage of their device_configurations, or
// else a metadata property of that name. They may stand in for a plan.
#ifndef REE_GRAPH_PARTITION_HINTS_H
#define REE_GRAPH_PARTITION_HINTS_H

#include "graph/partition/partition.h"

#define REE_STAGE_PROPERTY "pipeline_stage"

// Where the stages end that the nodes ask for: *out_n names for ree_partition_from_cuts with
// *out_n + 1 stages, released with ree_plan_ends_free. *out_found: whether any node that is no
// control node asks for one. A node that does not has the stage of the one before it in canonical
// order; stages that no node has are left out. Fails, naming two nodes, where the stages do not
// follow each other in that order. Of the options, the states are used.
enum ree_status ree_partition_hints(const struct ree_graph *graph,
                                    const struct ree_partition_options *options, bool *out_found,
                                    char ***out_ends, size_t *out_n, struct ree_error *err);

#endif
