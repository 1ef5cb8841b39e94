// Which plan a model runs by: the one place where that is decided, for runs and for `ree-run plan`.
#ifndef REE_GRAPH_PARTITION_CHOOSE_H
#define REE_GRAPH_PARTITION_CHOOSE_H

#include "graph/partition/fit.h"

struct ree_partition_request {
    const char *plan_path;    // a file (plan_file.h); NULL: none
    const char *graph_sha256; // of the model, where there is one
    const char *const *ends;  // n_stages - 1 names for ree_partition_from_cuts; NULL: none
    size_t n_stages;          // 0: not said
    // max_memory 0: no limit. The others count also without one: each device and each process gets
    // a stage at least.
    struct ree_partition_devices devices;
    int64_t context_length; // rows that a sequence can have; 0: not known
};

enum ree_plan_origin {
    REE_PLAN_FOUND,  // by the planner
    REE_PLAN_GIVEN,  // by a file or by names
    REE_PLAN_HINTED, // by what the nodes ask for (hints.h)
};

// The first of these that there is: the plan of the file or the names; one of n_stages; the one
// that the nodes ask for; one with a stage for each device and process, or as many more as it takes
// to keep within the limit. All of them are held to the limit. Of the options, states and context
// count; with a limit, no more rows than context_length. The graph has its shapes inferred.
enum ree_status ree_partition_choose(const struct ree_graph *graph,
                                     const struct ree_partition_options *options,
                                     const struct ree_partition_request *request,
                                     struct ree_partition *out, enum ree_plan_origin *out_origin,
                                     struct ree_error *err);

#endif
