// Stages that the nodes of an ONNX file request: pipeline_stage in their device_configurations, or
// else a metadata property of that name. They can serve as a plan.
#ifndef REE_GRAPH_PARTITION_HINTS_H
#define REE_GRAPH_PARTITION_HINTS_H

#include "graph/partition/partition.h"

#define REE_STAGE_PROPERTY "pipeline_stage"

// Finds where the requested stages end: *out_n names for ree_partition_from_cuts with *out_n + 1
// stages, released with ree_plan_ends_free. *out_found is false if no node, except control nodes,
// requests a stage. A node without a request has the stage of its predecessor in canonical order.
// Stages without nodes are left out. Fails, naming two nodes, if the stages decrease along the
// canonical order. From the options, only the kv caches are used.
enum ree_status ree_partition_hints(const struct ree_graph *graph,
                                    const struct ree_partition_options *options, bool *out_found,
                                    char ***out_ends, size_t *out_n, struct ree_error *err);

#endif
