// A model opened for `ree-run plan` as a run would open it, and its plan. No device is opened.
#ifndef REE_TOOLS_RUN_PLANNED_H
#define REE_TOOLS_RUN_PLANNED_H

#include "generate/roles.h"
#include "graph/partition/annotate.h"
#include "session/model.h"

struct planned {
    struct ree_model_source source;
    const char *model_path; // an ONNX file, or a checkpoint's folder
    struct ree_model *model;
    bool is_language_model; // its caches are known, if it has any
    struct ree_partition_options options;
    struct ree_partition_state *states;
    char graph_sha256[65];
    const char *origin; // of the plan: "planned", "of the file", "asked for by the nodes"
    struct ree_partition partition;
    struct ree_annotations annotations;
};

struct planned_options {
    const char *plan_path; // NULL: none
    uint64_t n_stages;     // 0: not given
    uint64_t n_devices;    // of each process; 0: not given
    uint64_t n_ranks;      // processes; 0: not given
    uint64_t n_sets;       // of caches; 0: 1
    uint64_t memory;       // of each device; 0: no limit
    uint64_t context;      // 0: as the planner has it
};

// Everything up to the plan and the annotations; `out` is to be finished also after a failure.
enum ree_status planned_make(const char *path, const struct planned_options *options,
                             struct planned *out, struct ree_error *err);
void planned_finish(struct planned *planned);

#endif
