// Plans: say where a model is divided into stages, and why.
#ifndef REE_PLAN_H
#define REE_PLAN_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

// A plan: the list of a model's stages. It depends only on the model's graph and the options below,
// so it is the same on every machine. A run with the same options uses the same plan. A plan
// decides where nodes run, never what they compute.
struct ree_plan;

#define REE_MAX_STAGES 1024

struct ree_plan_options {
    size_t size; // sizeof this struct
    // Path of a plan file, which may have been edited, with the stage boundaries; NULL: none.
    const char *plan_path;
    // Number of stages, at most REE_MAX_STAGES; 0: not set. If plan_path is set, 0 or the number of
    // stages in the plan file.
    uint32_t n_partitions;
    // Number of devices per process and of processes; 0: not set. If neither plan_path nor
    // n_partitions is set and the nodes name no stages, there are at least as many stages as the
    // larger of the two numbers.
    uint32_t n_devices, n_processes;
    // With max_device_memory: number of cache slots whose kv caches need memory; 0 means 1.
    uint32_t n_cache_slots;
    // Memory budget per device in bytes, for the weights of the stage that runs and the kv caches
    // of all the device's stages; a sixteenth of it is for intermediate results. 0: no limit.
    uint64_t max_device_memory;
    uint64_t context;             // kv cache positions that the plan assumes; 0: 1024, as in runs
    struct ree_progress progress; // progress of reading the model
    // How to load a checkpoint's folder; NULL: with default options. on_pass and progress of this
    // struct are not used.
    const struct ree_model_options *model;
};

// Makes the plan of a model. `model` is the path of an ONNX file, or of a folder with a language
// model. Runs nothing and opens no device. `options` may be NULL. If no option is set, the plan is
// the one that the nodes of the file name; fails with REE_INVALID if they name none. Also fails
// with REE_INVALID, and says why, if no plan satisfies the options.
REE_API enum ree_status ree_plan_create(const char *model, const struct ree_plan_options *options,
                                        struct ree_plan **out_plan, struct ree_error *err);
REE_API void ree_plan_destroy(struct ree_plan *plan);

struct ree_plan_info {
    size_t size;              // sizeof this struct
    const char *graph_sha256; // SHA-256 of the model's graph
    // How the stages were chosen: "planned", "from the file" or "named by the nodes".
    const char *origin;
    size_t n_stages;
    bool is_language_model; // the model is a language model, so its kv caches are known
    size_t n_kv_caches;
    uint64_t context;  // kv cache positions that the plan assumes
    size_t n_branches; // number of branches that ree_plan_branch describes
};
// Describes a plan. The caller sets out_info->size. Strings are borrowed from the plan.
REE_API enum ree_status ree_plan_info(const struct ree_plan *plan, struct ree_plan_info *out_info,
                                      struct ree_error *err);

struct ree_plan_stage {
    size_t size;             // sizeof this struct
    size_t n_nodes;          // number of nodes, without control nodes (masks, positions, sizes)
    uint64_t weight_bytes;   // size of the weights; a tensor that two stages read counts in both
    uint64_t kv_cache_bytes; // size of the kv caches per token of a sequence
    uint64_t flops;          // floating-point operations per token
    uint64_t work;           // cost that a plan balances between stages; it has no unit
    const char *contents;    // what the stage contains, for example "embedding, layers 0-2"
    // The fields below describe the boundary to the next stage; they are NULL and 0 for the last
    // stage. Names come from the model and may contain control characters.
    const char *ends_with;  // name of the value that the stage's last node computes
    const char *cut_reason; // why the boundary is there
    size_t n_cut_values;    // number of boundary tensors
    uint64_t cut_bytes;     // size of the boundary tensors per token
};
// Describes a stage, counted from 0. The caller sets out_stage->size. Strings are borrowed from the
// plan. Fails with REE_NOT_FOUND if there is no such stage.
REE_API enum ree_status ree_plan_stage(const struct ree_plan *plan, size_t stage,
                                       struct ree_plan_stage *out_stage, struct ree_error *err);

// A branch of an If node in a merged decoder, which is a model with one branch for the prompt
// (prefill) and one for single tokens (decode).
struct ree_plan_branch {
    size_t size;        // sizeof this struct
    const char *phases; // when the branch runs: "prefill" or "decode"
    const char *branch; // "then_branch"
    const char *node;   // the If node, for example "node 'optimum::if' (If)"
};
// Describes a branch, counted from 0. The caller sets out_branch->size. Strings are borrowed from
// the plan. Fails with REE_NOT_FOUND if there is no such branch.
REE_API enum ree_status ree_plan_branch(const struct ree_plan *plan, size_t branch,
                                        struct ree_plan_branch *out_branch, struct ree_error *err);

// Makes the contents of a plan file, for the options partition_plan and plan_path: NUL-terminated
// JSON. A reader of the file uses only "ends_with" of each stage and the hash of the graph. Release
// *out_json with ree_free.
REE_API enum ree_status ree_plan_json(const struct ree_plan *plan, char **out_json,
                                      struct ree_error *err);
// Writes a plan file with the contents of ree_plan_json; it appears whole or not at all.
REE_API enum ree_status ree_plan_save(const struct ree_plan *plan, const char *path,
                                      struct ree_error *err);
// Writes the model's ONNX file to `path`, unchanged except for notes on its nodes: ree.role,
// ree.layer, ree.phase, ree.values and pipeline_stage as metadata, and pipeline_stage as a device
// configuration. The new file has the same hashes as the old one. Fails with REE_INVALID if the
// model is a checkpoint's folder, or if its weights are in other files and `path` is in another
// folder.
REE_API enum ree_status ree_plan_write_model(const struct ree_plan *plan, const char *path,
                                             struct ree_error *err);

#ifdef __cplusplus
}
#endif
#endif
