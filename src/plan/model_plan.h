// Loads a model as a run would load it, and plans its division into stages. Opens no device.
#ifndef REE_PLAN_MODEL_PLAN_H
#define REE_PLAN_MODEL_PLAN_H

#include "generate/roles.h"
#include "graph/partition/annotate.h"
#include "session/model.h"

struct ree_model_plan {
    struct ree_model_source source;
    const char *model_path; // path of an ONNX file, or the folder of a checkpoint; borrowed
    struct ree_model *model;
    bool is_language_model; // the model is a language model, so its kv caches are known
    struct ree_partition_options options;
    struct ree_partition_kv_cache *kv_caches;
    char graph_sha256[65];
    const char *origin; // source of the plan: "planned", "from the file", "named by the nodes"
    struct ree_partition partition;
    struct ree_annotations annotations;
};

// Loads the model at `path`, an ONNX file or a folder, plans its stages, and finds the role and the
// layer of each node (`annotations`). Release *out with ree_model_plan_finish, also after a
// failure.
enum ree_status ree_model_plan_make(const char *path, const struct ree_plan_options *options,
                                    struct ree_model_plan *out, struct ree_error *err);
void ree_model_plan_finish(struct ree_model_plan *plan);

// Writes the model's ONNX file to `path`, with notes on its nodes; see ree_plan_write_model in
// ree/plan.h.
enum ree_status ree_model_plan_write(const struct ree_model_plan *plan, const char *path,
                                     struct ree_error *err);

#endif
