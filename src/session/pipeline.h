// A model over several devices: its stages (graph/partition), each a session on a device, run one
// after the other. With one stage it is a session and nothing else.
//
// What crosses a cut is a parcel: the tensors of the cut's values, in their order, in host memory.
// Several sets of states (caches) may be kept, one for each group of sequences; then runs of
// different sets may be in flight together, each at a stage of its own, one run of a set at a time.
// Where there are several devices, each has a thread of its own.
#ifndef REE_SESSION_PIPELINE_H
#define REE_SESSION_PIPELINE_H

#include "graph/partition/fit.h"
#include "session/observe.h"
#include "session/state.h"

struct ree_pipeline_options {
    // What decides where the model is cut (graph/partition/choose.h). With n_stages of 0, one
    // device and one process, no limit, names or file it is not cut, whatever its nodes ask for.
    size_t n_stages;         // 0: as choose.h says
    const char *const *ends; // n_stages - 1 names, as ree_partition_from_cuts takes; NULL: planned
    const char *plan_path;   // where they are read from (plan_file.h) instead; NULL: not
    uint64_t context;        // rows of caches that the plan counts with; 0: REE_PARTITION_CONTEXT
    int64_t context_length;  // rows that a sequence can have; 0: not known
    size_t n_sets;           // 0: 1
    // Stages that run here, for pipelines over several processes: n_local from `first` on; 0: all.
    // Or, with n_ranks of 2 and more, the share of this rank (ree_partition_share).
    size_t first, n_local;
    uint32_t rank, n_ranks;
    // Bytes that a device may hold; 0: no limit. Stages' weights are then on the device only while
    // they run.
    uint64_t max_memory;
    struct ree_session_options session;
};

struct ree_parcel {
    size_t n;
    struct ree_tensor *tensors;
};
void ree_parcel_finish(struct ree_parcel *parcel);

struct ree_pipeline;

// Stages are numbered from 0; stage i runs on device i modulo n_devices. The model and the devices
// have to outlive the pipeline; planning infers the model's types and shapes (ree_model_infer).
// `states` and `rows_input` are as for ree_session_keep, ports of the model; n_states may be 0.
// `options` may be NULL.
enum ree_status ree_pipeline_create(struct ree_model *model, struct ree_device *const *devices,
                                    size_t n_devices, const struct ree_pipeline_options *options,
                                    const struct ree_state_spec *states, size_t n_states,
                                    size_t rows_input, struct ree_pipeline **out,
                                    struct ree_error *err);
void ree_pipeline_destroy(struct ree_pipeline *pipeline);

size_t ree_pipeline_n_stages(const struct ree_pipeline *pipeline);
// The name of the value that the last node of a stage makes, as plan files have it; NULL: of the
// last stage.
const char *ree_pipeline_stage_end(const struct ree_pipeline *pipeline, size_t stage);
// NULL where there is one stage that was not asked for by a plan.
const struct ree_partition *ree_pipeline_partition(const struct ree_pipeline *pipeline);
// The only session; NULL where there are several stages.
struct ree_session *ree_pipeline_session(struct ree_pipeline *pipeline);

// Runs. As ree_session_run, of set 0. All stages have to be local.
enum ree_status ree_pipeline_run(struct ree_pipeline *pipeline, const struct ree_tensor *inputs,
                                 size_t n_inputs, struct ree_tensor *outputs,
                                 struct ree_error *err);
// The same in two halves. The inputs' names and data (not the array) have to live until collect;
// a submission that fails needs no collect.
enum ree_status ree_pipeline_submit(struct ree_pipeline *pipeline, size_t set,
                                    const struct ree_tensor *inputs, size_t n_inputs,
                                    struct ree_error *err);
enum ree_status ree_pipeline_collect(struct ree_pipeline *pipeline, size_t set,
                                     struct ree_tensor *outputs, struct ree_error *err);

// One local stage, for those who bring parcels from process to process themselves. `ordered` are
// the model's inputs in its order, made by ree_pipeline_match; `in` is what the stage before gave
// (NULL for the first), and is used up; *out (NULL for the last) is made by this call. `outputs`
// has an entry for each of the model's outputs, zeroed by the caller before the first stage; those
// that this stage makes are set.
enum ree_status ree_pipeline_match(struct ree_pipeline *pipeline, size_t set,
                                   const struct ree_tensor *inputs, size_t n_inputs,
                                   struct ree_tensor *ordered, struct ree_error *err);
enum ree_status ree_pipeline_run_stage(struct ree_pipeline *pipeline, size_t stage, size_t set,
                                       const struct ree_tensor *ordered, struct ree_parcel *in,
                                       struct ree_parcel *out, struct ree_tensor *outputs,
                                       struct ree_error *err);

// States, of a set that no run is in flight of: as the functions of sessions (state.h), for the
// stages that are local.
enum ree_status ree_pipeline_reset_states(struct ree_pipeline *pipeline, size_t set, int64_t batch,
                                          struct ree_error *err);
enum ree_status ree_pipeline_reserve_states(struct ree_pipeline *pipeline, size_t set, int64_t rows,
                                            struct ree_error *err);
void ree_pipeline_set_state_rows(struct ree_pipeline *pipeline, size_t set, int64_t rows);
// How many rows the caches of stages that run elsewhere have; before each run.
void ree_pipeline_set_rows_elsewhere(struct ree_pipeline *pipeline, size_t set, int64_t rows);
int64_t ree_pipeline_state_rows(const struct ree_pipeline *pipeline, size_t set);
int64_t ree_pipeline_state_capacity(const struct ree_pipeline *pipeline, size_t set);
uint64_t ree_pipeline_state_bytes(const struct ree_pipeline *pipeline, size_t set);
// Rows first ... first + n - 1 of one sequence: `out` has an entry for each of the pipeline's
// states, as ree_session_read_states makes them; those that are kept in another process have no
// name.
enum ree_status ree_pipeline_read_states(struct ree_pipeline *pipeline, size_t set,
                                         int64_t sequence, int64_t first, int64_t n,
                                         struct ree_tensor *out, struct ree_error *err);

// Observing and damaging, as of a session (observe.h) with the nodes and states of the whole model;
// the stages' values come stage by stage, a control node's once. All stages have to be local. Runs
// of an observed pipeline follow one another: while one is in flight, submitting is REE_INVALID.
enum ree_status ree_pipeline_observe(struct ree_pipeline *pipeline,
                                     const struct ree_observer *observer, struct ree_error *err);
enum ree_status ree_pipeline_inject(struct ree_pipeline *pipeline, const struct ree_fault *fault,
                                    struct ree_error *err);
// Sums over the local stages.
void ree_pipeline_stats(const struct ree_pipeline *pipeline, struct ree_session_stats *out_stats);

#endif
