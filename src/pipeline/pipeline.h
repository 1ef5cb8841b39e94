// A model over several devices. Its stages (graph/partition), each a session on a device, run one
// after another. A pipeline of one stage is only a session.
//
// The boundary tensors between two stages (struct ree_boundary) are the cut's values, in their
// order, in host memory. There may be several cache slots (each with all kv caches), one per group
// of sequences. Runs of different cache slots may be in flight together, each in a different stage;
// a cache slot has at most one run in flight. With several devices, each has its own thread.
#ifndef REE_PIPELINE_PIPELINE_H
#define REE_PIPELINE_PIPELINE_H

#include "graph/partition/fit.h"
#include "session/observe.h"
#include "session/kv_cache.h"

struct ree_pipeline_options {
    // Options that determine the cuts (graph/partition/choose.h). The model is not cut, whatever
    // its nodes request, if n_stages is 0, there is one device and one process, and max_memory,
    // `ends` and plan_path are not set.
    size_t n_stages;         // 0: chosen as in choose.h
    const char *const *ends; // n_stages - 1 names, as for ree_partition_from_cuts; NULL: planned
    const char *plan_path;   // plan file with the cuts (plan_file.h), instead of `ends`; NULL: none
    uint64_t context;        // cache positions that the plan assumes; 0: REE_PARTITION_CONTEXT
    int64_t context_length;  // maximum cache positions of a sequence; 0: unknown
    size_t n_cache_slots;    // cache slots; 0: 1
    // Stages that this process runs: n_local stages from `first` on; 0: all. With n_ranks of at
    // least 2: the share of this rank (ree_partition_share) instead.
    size_t first, n_local;
    uint32_t rank, n_ranks;
    // Memory budget per device in bytes; 0: no limit. With a budget, a stage's weights are on the
    // device only while it runs.
    uint64_t max_memory;
    struct ree_session_options session;
};

struct ree_boundary {
    size_t n;
    struct ree_tensor *tensors;
};
void ree_boundary_finish(struct ree_boundary *boundary);

// Stages are numbered from 0; stage i runs on device i modulo n_devices. The model and the devices
// must outlive the pipeline. Planning infers the model's types and shapes (ree_model_infer).
// `kv_caches` and `positions_input` are as for ree_session_declare_kv_caches, with ports of the
// model; n_kv_caches may be 0. `options` may be NULL.
enum ree_status ree_pipeline_create(struct ree_model *model, struct ree_device *const *devices,
                                    size_t n_devices, const struct ree_pipeline_options *options,
                                    const struct ree_kv_cache_spec *kv_caches, size_t n_kv_caches,
                                    size_t positions_input, struct ree_pipeline **out,
                                    struct ree_error *err);

// The model and the operation set that the pipeline runs.
const struct ree_model *ree_pipeline_model(const struct ree_pipeline *pipeline);
enum ree_operation_set ree_pipeline_operation_set(const struct ree_pipeline *pipeline);
// NULL if the model is not divided.
const struct ree_partition *ree_pipeline_partition(const struct ree_pipeline *pipeline);
// The only session; NULL if there are several stages.
struct ree_session *ree_pipeline_session(struct ree_pipeline *pipeline);

// ree_pipeline_run (ree/pipeline.h) uses cache slot 0. All stages must be local.
// Asynchronous version of ree_pipeline_run: submit, then collect. The inputs' names and data (not
// the array) must stay valid until collect. Do not collect after a failed submission.
enum ree_status ree_pipeline_submit(struct ree_pipeline *pipeline, size_t slot,
                                    const struct ree_tensor *inputs, size_t n_inputs,
                                    struct ree_error *err);
enum ree_status ree_pipeline_collect(struct ree_pipeline *pipeline, size_t slot,
                                     struct ree_tensor *outputs, struct ree_error *err);

// Runs one local stage, for callers that move boundary tensors between processes themselves.
// `ordered` holds the model's inputs in the model's order, from ree_pipeline_match. `in` holds the
// boundary tensors from the previous stage (NULL for the first stage); this call releases them.
// This call makes *out (NULL for the last stage). `outputs` has one entry per model output, zeroed
// by the caller before the first stage; this call sets those that the stage computes.
enum ree_status ree_pipeline_match(struct ree_pipeline *pipeline, size_t slot,
                                   const struct ree_tensor *inputs, size_t n_inputs,
                                   struct ree_tensor *ordered, struct ree_error *err);
enum ree_status ree_pipeline_run_stage(struct ree_pipeline *pipeline, size_t stage, size_t slot,
                                       const struct ree_tensor *ordered, struct ree_boundary *in,
                                       struct ree_boundary *out, struct ree_tensor *outputs,
                                       struct ree_error *err);

// Kv caches of a cache slot that has no run in flight: like the session functions of kv_cache.h,
// for the local stages.
enum ree_status ree_pipeline_reset_kv_caches(struct ree_pipeline *pipeline, size_t slot,
                                             int64_t batch, struct ree_error *err);
enum ree_status ree_pipeline_reserve_kv_caches(struct ree_pipeline *pipeline, size_t slot,
                                               int64_t positions, struct ree_error *err);
void ree_pipeline_set_filled_positions(struct ree_pipeline *pipeline, size_t slot,
                                       int64_t positions);
// Sets the number of filled positions of caches in stages that other processes run. Call it before
// each run.
void ree_pipeline_set_positions_elsewhere(struct ree_pipeline *pipeline, size_t slot,
                                          int64_t positions);
int64_t ree_pipeline_filled_positions(const struct ree_pipeline *pipeline, size_t slot);
int64_t ree_pipeline_kv_cache_capacity(const struct ree_pipeline *pipeline, size_t slot);
uint64_t ree_pipeline_kv_cache_bytes(const struct ree_pipeline *pipeline, size_t slot);
// Reads positions first ... first + n - 1 of one sequence. `out` has one entry per kv cache of the
// pipeline, made as by ree_session_read_kv_caches. Entries of caches kept in another process have
// no name.
enum ree_status ree_pipeline_read_kv_caches(struct ree_pipeline *pipeline, size_t slot,
                                            int64_t sequence, int64_t first, int64_t n,
                                            struct ree_tensor *out, struct ree_error *err);

// Observation and fault injection as for a session (observe.h), with the nodes and kv caches of the
// whole model. Values arrive stage by stage; a control node's value arrives once. All stages must
// be local. Runs of an observed pipeline cannot overlap: submitting while one is in flight fails
// with REE_INVALID.
enum ree_status ree_pipeline_observe(struct ree_pipeline *pipeline,
                                     const struct ree_observer *observer, struct ree_error *err);
// Ends the observation, as ree_session_end_observation does.
void ree_pipeline_end_observation(struct ree_pipeline *pipeline);
enum ree_status ree_pipeline_inject(struct ree_pipeline *pipeline, const struct ree_fault *fault,
                                    struct ree_error *err);
// Sums over the local stages.
void ree_pipeline_sum_stats(const struct ree_pipeline *pipeline,
                            struct ree_session_stats *out_stats);

#endif
