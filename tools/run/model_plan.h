// Opens a model for `ree-run plan` as a run would open it, and plans it. Opens no device.
#ifndef REE_TOOLS_RUN_MODEL_PLAN_H
#define REE_TOOLS_RUN_MODEL_PLAN_H

#include "generate/roles.h"
#include "graph/partition/annotate.h"
#include "session/model.h"

struct model_plan {
    struct ree_model_source source;
    const char *model_path; // an ONNX file, or the folder of a checkpoint
    struct ree_model *model;
    bool is_language_model; // its kv caches are known, if it has any
    struct ree_partition_options options;
    struct ree_partition_kv_cache *kv_caches;
    char graph_sha256[65];
    const char *origin; // source of the plan: "planned", "of the file", "asked for by the nodes"
    struct ree_partition partition;
    struct ree_annotations annotations;
};

struct model_plan_options {
    const char *plan_path;  // NULL: none
    uint64_t n_stages;      // 0: not given
    uint64_t n_devices;     // per process; 0: not given
    uint64_t n_ranks;       // processes; 0: not given
    uint64_t n_cache_slots; // number of cache slots; 0: 1
    uint64_t memory;        // memory budget per device in bytes; 0: no limit
    uint64_t context;       // context length in tokens; 0: the planner's default
};

// Loads, plans and annotates. The caller must release `out` with model_plan_finish, also after a
// failure.
enum ree_status model_plan_make(const char *path, const struct model_plan_options *options,
                                struct model_plan *out, struct ree_error *err);
void model_plan_finish(struct model_plan *plan);

#endif
