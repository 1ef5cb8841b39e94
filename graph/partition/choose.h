// Chooses the plan of a model. All runs and `ree-run plan` choose it here.
#ifndef REE_GRAPH_PARTITION_CHOOSE_H
#define REE_GRAPH_PARTITION_CHOOSE_H

#include "graph/partition/fit.h"

struct ree_partition_request {
    const char *plan_path;    // path of a plan file (plan_file.h); NULL: none
    const char *graph_sha256; // SHA-256 of the model's graph in hexadecimal; NULL: not known
    // [n_stages - 1]: name of the value with which stage i ends (ree_partition_from_cuts); NULL:
    // none
    const char *const *ends;
    size_t n_stages; // requested number of stages; 0: not requested
    // The devices that run the stages. max_memory 0: no limit. If no plan file, names or n_stages
    // are given, the plan has at least as many stages as devices.n_devices and as devices.n_ranks,
    // even without a limit.
    struct ree_partition_devices devices;
    int64_t context_length; // maximum positions of a sequence; 0: not known
};

enum ree_plan_origin {
    REE_PLAN_FOUND,     // the planner found it
    REE_PLAN_REQUESTED, // a plan file or names of values gave it
    REE_PLAN_HINTED,    // the notes of the nodes requested it (hints.h)
};

// Chooses a plan of `graph`, which must have its shapes inferred. Takes the first of these that is
// given:
// - the plan of the plan file;
// - the plan that the names `ends` describe;
// - n_stages: the best plan with that many stages;
// - the plan that the nodes' notes request (hints.h);
// - otherwise the best plan with as many stages as devices or processes, whichever are more, or
//   with more stages if the memory limit requires it.
//
// Fails with REE_INVALID if the plan exceeds the memory limit. Of `options`, only the kv caches and
// the context are used. With a limit, the context is at most context_length, rounded up to a
// multiple of REE_PARTITION_POSITIONS. Release *out with ree_partition_finish.
enum ree_status ree_partition_choose(const struct ree_graph *graph,
                                     const struct ree_partition_options *options,
                                     const struct ree_partition_request *request,
                                     struct ree_partition *out, enum ree_plan_origin *out_origin,
                                     struct ree_error *err);

#endif
