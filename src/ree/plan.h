// Plans: where a model is divided into stages, and why.
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
    // Take the stage boundaries from this plan file, which may have been edited; NULL: none.
    const char *plan_path;
    uint32_t n_partitions; // stages, at most REE_MAX_STAGES; 0: not set. Not with plan_path
    // Each device of each process gets at least one stage; 0: not set.
    uint32_t n_devices, n_processes;
    uint32_t n_cache_slots; // with max_device_memory: cache slots that take memory; 0: 1
    // Memory budget per device in bytes: the weights of the stage that runs, the kv caches of all
    // the device's stages, and a sixteenth for intermediate results. 0: no limit.
    uint64_t max_device_memory;
    uint64_t context;             // tokens for which kv caches are counted; 0: 1024, as in runs
    struct ree_progress progress; // of reading the model
    // How a checkpoint's folder is loaded; NULL: with its defaults. Its on_pass and progress are
    // not used.
    const struct ree_model_options *model;
};

// Plans a model: an ONNX file, or a folder with a language model. Runs nothing and opens no device.
// `options` may be NULL. Without any option, the plan is the one that the file's nodes name; fails
// with REE_INVALID if they name none. Also fails with REE_INVALID, and says why, if no plan
// satisfies the options.
REE_API enum ree_status ree_plan_create(const char *model, const struct ree_plan_options *options,
                                        struct ree_plan **out_plan, struct ree_error *err);
REE_API void ree_plan_destroy(struct ree_plan *plan);

struct ree_plan_info {
    size_t size;              // sizeof this struct
    const char *graph_sha256; // of the model
    const char *origin;       // "planned", "from the file", "named by the nodes"
    size_t n_stages;
    bool is_language_model; // its kv caches are known, if it has any
    size_t n_kv_caches;
    uint64_t context;  // tokens for which kv caches are counted
    size_t n_branches; // see ree_plan_branch
};
// For this function and the next two the caller sets the struct's size. Strings are borrowed from
// the plan.
REE_API enum ree_status ree_plan_info(const struct ree_plan *plan, struct ree_plan_info *out_info,
                                      struct ree_error *err);

struct ree_plan_stage {
    size_t size;             // sizeof this struct
    size_t n_nodes;          // without control nodes (masks, positions, sizes)
    uint64_t weight_bytes;   // a tensor that two stages read counts in both
    uint64_t kv_cache_bytes; // per token of a sequence
    uint64_t flops;          // per token
    uint64_t work;           // what a plan balances; only ratios have a meaning
    const char *contents;    // "embedding, layers 0-2"
    // Of the boundary to the next stage; NULL and 0 for the last one. Names come from the model and
    // may contain control characters.
    const char *ends_with; // the value that the stage's last node computes
    const char *cut_reason;
    size_t n_cut_values;
    uint64_t cut_bytes; // per token
};
// Fails with REE_NOT_FOUND if there is no such stage.
REE_API enum ree_status ree_plan_stage(const struct ree_plan *plan, size_t stage,
                                       struct ree_plan_stage *out_stage, struct ree_error *err);

// A branch of an If node in a merged decoder: a model file that has one branch for the prompt
// (prefill) and one for single tokens (decode).
struct ree_plan_branch {
    size_t size;        // sizeof this struct
    const char *phases; // "prefill" or "decode"
    const char *branch; // "then_branch"
    const char *node;   // "node 'optimum::if' (If)"
};
// Fails with REE_NOT_FOUND if there is no such branch.
REE_API enum ree_status ree_plan_branch(const struct ree_plan *plan, size_t branch,
                                        struct ree_plan_branch *out_branch, struct ree_error *err);

// The contents of a plan file, for the options partition_plan and plan_path: JSON, NUL-terminated.
// Readers use only "ends_with" of each stage and the hash of the graph. Release *out_json with
// ree_free.
REE_API enum ree_status ree_plan_json(const struct ree_plan *plan, char **out_json,
                                      struct ree_error *err);
// Writes the plan file; it appears whole or not at all.
REE_API enum ree_status ree_plan_save(const struct ree_plan *plan, const char *path,
                                      struct ree_error *err);
// Writes the ONNX file again, unchanged except for notes on its nodes: ree.role, ree.layer,
// ree.phase, ree.values and pipeline_stage as metadata, and pipeline_stage as a device
// configuration. For ree it is the same model, with the same hashes. Fails with REE_INVALID if the
// model is a checkpoint's folder, or if its weights are in other files and `path` is in another
// folder.
REE_API enum ree_status ree_plan_write_model(const struct ree_plan *plan, const char *path,
                                             struct ree_error *err);

#ifdef __cplusplus
}
#endif
#endif
