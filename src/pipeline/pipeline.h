// A pipeline runs a model in stages (graph/partition), on one device or several. Each stage is a
// session on one device; the stages of a run execute one after another. If the model is not
// divided, a pipeline is only a session.
//
// The boundary tensors between two stages (struct ree_boundary) are the values of the cut, in the
// cut's order, in host memory. A pipeline may have several cache slots, each with all kv caches of
// one group of sequences. Runs of different cache slots may be in flight at the same time, each in
// a different stage; a cache slot has at most one run in flight. If there are several devices and
// several cache slots, and all stages run in this process, each device has a thread of its own.
#ifndef REE_PIPELINE_PIPELINE_H
#define REE_PIPELINE_PIPELINE_H

#include "graph/partition/fit.h"
#include "session/observe.h"
#include "session/kv_cache.h"

struct ree_pipeline_options {
    // Options that determine the cuts (graph/partition/choose.h). The model is not cut, whatever
    // its nodes request, if n_stages is 0, there is one device and one process, and max_memory,
    // `ends` and plan_path are not set.
    size_t n_stages; // number of stages; 0: ree_partition_choose decides
    // (n_stages - 1): stage i ends with the node that makes the value named ends[i]. NULL: not
    // given.
    const char *const *ends;
    const char *plan_path;  // plan file with the cuts (plan_file.h), instead of `ends`; NULL: none
    uint64_t context;       // cache positions that the plan assumes; 0: REE_PARTITION_CONTEXT
    int64_t context_length; // maximum cache positions of a sequence; 0: unknown
    size_t n_cache_slots;   // number of cache slots; 0 means 1
    // The stages that this process runs: n_local stages, beginning with stage `first`. n_local 0:
    // all stages. If n_ranks is 2 or more, these two are ignored and the process runs the share of
    // rank `rank` (ree_partition_share).
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

// Creates a pipeline. Stages are numbered from 0; stage i runs on device i modulo n_devices. The
// model and the devices must outlive the pipeline. If the model is divided, this infers its types
// and shapes (ree_model_infer). `kv_caches` and `positions_input` are as for
// ree_session_declare_kv_caches; their ports are those of the whole model. n_kv_caches may be 0.
// `options` may be NULL. Release *out with ree_pipeline_destroy.
enum ree_status ree_pipeline_create(struct ree_model *model, struct ree_device *const *devices,
                                    size_t n_devices, const struct ree_pipeline_options *options,
                                    const struct ree_kv_cache_spec *kv_caches, size_t n_kv_caches,
                                    size_t positions_input, struct ree_pipeline **out,
                                    struct ree_error *err);

// Return the model that the pipeline runs, and the operation set of its devices.
const struct ree_model *ree_pipeline_model(const struct ree_pipeline *pipeline);
enum ree_operation_set ree_pipeline_operation_set(const struct ree_pipeline *pipeline);
// The division of the model into stages, borrowed; NULL if the model is not divided.
const struct ree_partition *ree_pipeline_partition(const struct ree_pipeline *pipeline);
// The session that runs the whole model, borrowed; NULL if the model is divided.
struct ree_session *ree_pipeline_session(struct ree_pipeline *pipeline);

// Asynchronous version of ree_pipeline_run (ree/pipeline.h, which uses cache slot 0): submit starts
// a run of a cache slot, collect waits for it and returns its outputs. All stages must run in this
// process. The inputs' names and data (not the array) must stay valid until collect. After a failed
// submit there is nothing to collect.
enum ree_status ree_pipeline_submit(struct ree_pipeline *pipeline, size_t slot,
                                    const struct ree_tensor *inputs, size_t n_inputs,
                                    struct ree_error *err);
enum ree_status ree_pipeline_collect(struct ree_pipeline *pipeline, size_t slot,
                                     struct ree_tensor *outputs, struct ree_error *err);

// ree_pipeline_run_stage runs one stage of this process, for callers that move boundary tensors
// between processes themselves. `ordered` holds the model's inputs in the model's order, as
// ree_pipeline_match makes them from inputs in any order. `in` holds the boundary tensors from the
// previous stage (NULL for the first stage); the call releases them. The call makes *out (NULL for
// the last stage). `outputs` has one entry per model output, zeroed by the caller before the first
// stage; the call sets the entries that the stage computes.
enum ree_status ree_pipeline_match(struct ree_pipeline *pipeline, size_t slot,
                                   const struct ree_tensor *inputs, size_t n_inputs,
                                   struct ree_tensor *ordered, struct ree_error *err);
enum ree_status ree_pipeline_run_stage(struct ree_pipeline *pipeline, size_t stage, size_t slot,
                                       const struct ree_tensor *ordered, struct ree_boundary *in,
                                       struct ree_boundary *out, struct ree_tensor *outputs,
                                       struct ree_error *err);

// Functions for the kv caches of one cache slot, which must have no run in flight. Each does what
// the session function of the same name in kv_cache.h does, in all stages that this process runs.
enum ree_status ree_pipeline_reset_kv_caches(struct ree_pipeline *pipeline, size_t slot,
                                             int64_t batch, struct ree_error *err);
enum ree_status ree_pipeline_reserve_kv_caches(struct ree_pipeline *pipeline, size_t slot,
                                               int64_t positions, struct ree_error *err);
void ree_pipeline_set_filled_positions(struct ree_pipeline *pipeline, size_t slot,
                                       int64_t positions);
// Sets the number of filled positions of the kv caches that other processes keep, for stages of
// this process that need the shapes of these caches. Call it before each run.
void ree_pipeline_set_positions_elsewhere(struct ree_pipeline *pipeline, size_t slot,
                                          int64_t positions);
// Fails with REE_UNSUPPORTED unless each kv cache that this process keeps has this number of
// positions (NUMERICS.md: a cache has one position for each token).
enum ree_status ree_pipeline_check_positions(const struct ree_pipeline *pipeline, size_t slot,
                                             int64_t positions, struct ree_error *err);
int64_t ree_pipeline_kv_cache_capacity(const struct ree_pipeline *pipeline, size_t slot);
uint64_t ree_pipeline_kv_cache_bytes(const struct ree_pipeline *pipeline, size_t slot);
// Reads positions `first` to first + n - 1 of one sequence from the kv caches of this process.
// `out` has one entry per kv cache of the pipeline, which this call initialises as
// ree_session_read_kv_caches does. The entry of a cache that another process keeps has no name.
enum ree_status ree_pipeline_read_kv_caches(struct ree_pipeline *pipeline, size_t slot,
                                            int64_t sequence, int64_t first, int64_t n,
                                            struct ree_tensor *out, struct ree_error *err);

// Observes the runs of a pipeline as ree_session_observe does for a session (observe.h). Indices of
// nodes and kv caches are those of the whole model. Values arrive stage by stage; a control node's
// value arrives once. All stages must run in this process. Runs of an observed pipeline cannot
// overlap: submitting a run while another is in flight fails with REE_INVALID.
enum ree_status ree_pipeline_observe(struct ree_pipeline *pipeline,
                                     const struct ree_observer *observer, struct ree_error *err);
// Ends the observation, as ree_session_end_observation does.
void ree_pipeline_end_observation(struct ree_pipeline *pipeline);
enum ree_status ree_pipeline_inject(struct ree_pipeline *pipeline, const struct ree_fault *fault,
                                    struct ree_error *err);
// Sums the statistics of the stages that this process runs. peak_bytes is the largest of all
// devices, and 0 without a memory budget.
void ree_pipeline_sum_stats(const struct ree_pipeline *pipeline,
                            struct ree_session_stats *out_stats);

#endif
