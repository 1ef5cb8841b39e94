// Reads the stages that the nodes of an ONNX file request, to use them as a plan. A node requests a
// stage with pipeline_stage in its device_configurations, or else with a metadata property of that
// name.
#ifndef REE_GRAPH_PARTITION_HINTS_H
#define REE_GRAPH_PARTITION_HINTS_H

#include "graph/partition/partition.h"

#define REE_STAGE_PROPERTY "pipeline_stage"

// Finds where the requested stages end: *out_n names, which ree_partition_from_cuts takes to make a
// plan of *out_n + 1 stages. Release them with ree_plan_ends_free. Requests of control nodes are
// ignored; *out_found is false if no other node requests a stage. A node without a request has the
// stage of its predecessor in canonical order. Stages without nodes are left out. Fails with
// REE_INVALID if a request is not a number below REE_MAX_STAGES, or, naming two nodes, if the
// stages decrease along the canonical order. Of `options`, only the kv caches are used.
enum ree_status ree_partition_hints(const struct ree_graph *graph,
                                    const struct ree_partition_options *options, bool *out_found,
                                    char ***out_ends, size_t *out_n, struct ree_error *err);

#endif
