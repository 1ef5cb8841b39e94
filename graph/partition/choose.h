// Chooses the plan of a model. This is the only place where that is decided, for runs and for
// `ree-run plan`.
#ifndef REE_GRAPH_PARTITION_CHOOSE_H
#define REE_GRAPH_PARTITION_CHOOSE_H

#include "graph/partition/fit.h"

struct ree_partition_request {
    const char *plan_path;    // path of a plan file (plan_file.h); NULL: none
    const char *graph_sha256; // of the model; NULL: not known
    const char *const *ends;  // n_stages - 1 names for ree_partition_from_cuts; NULL: none
    size_t n_stages;          // 0: not requested
    // max_memory 0: no limit. The other fields count even without a limit: each device and each
    // process gets at least one stage.
    struct ree_partition_devices devices;
    int64_t context_length; // positions that a sequence can have; 0: not known
};

enum ree_plan_origin {
    REE_PLAN_FOUND,  // the planner found it
    REE_PLAN_GIVEN,  // a file or names gave it
    REE_PLAN_HINTED, // the notes of the nodes gave it (hints.h)
};

// Takes the first of these that exists:
// - the plan of the file, or of the names;
// - the best plan of n_stages stages;
// - the plan that the nodes' notes request (hints.h);
// - a plan with as many stages as devices or processes, whichever are more, or with as many more as
//   the limit requires.
//
// Every plan must keep within the memory limit. From the options, only kv caches and context are
// used; with a limit, the context is at most context_length (rounded up). The graph must have its
// shapes inferred.
enum ree_status ree_partition_choose(const struct ree_graph *graph,
                                     const struct ree_partition_options *options,
                                     const struct ree_partition_request *request,
                                     struct ree_partition *out, enum ree_plan_origin *out_origin,
                                     struct ree_error *err);

#endif
