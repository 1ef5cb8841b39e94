// Internal state of a pipeline (pipeline.h), shared by the pipeline*.c files.
#ifndef REE_PIPELINE_PIPELINE_INTERNAL_H
#define REE_PIPELINE_PIPELINE_INTERNAL_H

#include <pthread.h>

#include "pipeline/pipeline.h"
#include "base/float_env.h"
#include "session/session_internal.h"

#define REE_NO_INDEX SIZE_MAX
#define REE_NO_PORT SIZE_MAX

// Pages of a mapped model file that contain one weight of a stage.
struct ree_page_range {
    void *data;
    size_t size;
    bool is_table; // the weight is a table of which a run reads only some rows
};

struct ree_pipeline_stage {
    struct ree_pipeline *pipeline;
    size_t device; // index in pipeline->workers
    // The stage's part of the graph; set only if the model is divided and this process runs the
    // stage.
    struct ree_stage_graph graph;
    struct ree_model *model;     // the model made from `graph`; owned; NULL if `graph` is not set
    struct ree_session *session; // owned; NULL: another process runs the stage
    size_t n_ranges;
    struct ree_page_range *ranges; // pages of the stage's weights; set only if `streams` is set
    // For each input of the stage: index of the model's input, or index in the boundary tensors
    // that the stage receives.
    size_t *source;
    // For each output of the stage: index of the model's output, or index in the boundary tensors
    // that the stage sends.
    size_t *target;
    // For each value of the cut after this stage: its index in the cut before this stage, if the
    // stage only forwards the value; otherwise REE_NO_INDEX.
    size_t *passes;
    size_t *kv_cache_of; // for each kv cache of the session: index of the pipeline's kv cache
};

// The state of a cache slot's run: none, waiting for the device of its next stage, running a stage,
// or finished and not yet collected.
enum ree_job_phase { REE_JOB_NONE, REE_JOB_WAITS, REE_JOB_RUNS, REE_JOB_DONE };

struct ree_pipeline_job {
    enum ree_job_phase phase;
    uint64_t ticket; // a device runs the waiting job with the smallest ticket first
    size_t stage;    // index of the next stage to run
    struct ree_tensor *ordered, *outputs;
    struct ree_boundary boundary;
    enum ree_status status;
    struct ree_error err;
};

struct ree_pipeline_worker {
    struct ree_pipeline *pipeline;
    struct ree_device *device;
    struct ree_memory_budget memory; // bytes that the sessions hold on the device, and their limit
    pthread_mutex_t lock;            // held while a thread uses the device
    pthread_t thread;
    bool has_thread;
};

struct ree_pipeline {
    struct ree_model *model; // the whole model
    bool divided;
    struct ree_partition partition; // set only if `divided` is set
    size_t n_stages, first, n_local;
    struct ree_pipeline_stage *stages;
    size_t n_workers; // one per device
    struct ree_pipeline_worker *workers;
    // graph_inputs: for each input of the model, the index of the graph's input. model_inputs: for
    // each input of the graph, the index of the model's input; REE_NO_PORT: the input is a weight.
    size_t *graph_inputs, *model_inputs;
    size_t n_kv_caches;
    struct ree_kv_cache_spec *specs;
    // (n_kv_caches): the ports in `specs` as indices of the graph's inputs and outputs
    struct ree_partition_kv_cache *graph_kv_caches;
    size_t *owner; // (n_kv_caches): index of the stage that keeps each kv cache
    size_t positions_input;
    size_t n_cache_slots;
    struct ree_pipeline_job *jobs; // (n_cache_slots)
    // For each cache slot: number of sequences; number of filled positions of the kv caches that
    // other processes keep.
    int64_t *batches, *positions_elsewhere;
    bool threaded, stopping;
    uint64_t tickets;
    pthread_mutex_t lock; // protects the jobs
    pthread_cond_t changed;
    uint64_t max_memory; // memory budget per device in bytes; 0: no limit
    bool streams;        // a stage's weights are on the device only while it runs
    size_t ahead;        // stage whose pages `reader` reads ahead next; REE_NO_INDEX: none
    pthread_t reader;
    bool has_observer;
    struct ree_observer observer;
    struct ree_session_options session;
    pthread_mutex_t reporting;
    struct ree_progress progress; // the caller's callback, called with `reporting` locked
    void (*on_program)(void *user, const char *what, const char *text);
    void (*on_kernel)(void *user, const struct ree_kernel *kernel);
    void *program_user; // passed to on_program and on_kernel
    // Floating-point environment of the thread that created the pipeline; callbacks run in it.
    struct ree_float_env caller_env;
};

// pipeline_plan.c
enum ree_status ree_pipeline_set_kv_caches(struct ree_pipeline *pipeline,
                                           const struct ree_kv_cache_spec *kv_caches, size_t n,
                                           struct ree_error *err);
struct ree_partition_options ree_pipeline_plan_options(const struct ree_pipeline *pipeline,
                                                       uint64_t context);
// Divides the model into stages if the options require it, and sets divided, partition and owner.
enum ree_status ree_pipeline_divide(struct ree_pipeline *pipeline,
                                    const struct ree_pipeline_options *options,
                                    struct ree_error *err);
// pipeline_run.c
enum ree_status ree_pipeline_start(struct ree_pipeline *pipeline, struct ree_error *err);
void ree_pipeline_stop(struct ree_pipeline *pipeline);
// Returns whether a run of the cache slot was submitted and not yet collected. The caller must not
// hold the pipeline's lock.
bool ree_pipeline_is_in_flight(struct ree_pipeline *pipeline, size_t slot);
// Locks the stage's device, selects the cache slot in the stage's session and returns this session.
// Unlock with ree_pipeline_release.
struct ree_session *ree_pipeline_hold(struct ree_pipeline *pipeline, size_t stage, size_t slot);
void ree_pipeline_release(struct ree_pipeline *pipeline, size_t stage);
// pipeline_stream.c: makes all sessions count the bytes that they hold on their devices. With a
// memory budget and several stages, also starts the thread that reads weights ahead, and sets
// `streams`.
enum ree_status ree_pipeline_stream(struct ree_pipeline *pipeline, struct ree_error *err);
// Load and unload the weights of a stage if `streams` is set. Called before and after each run of
// the stage, with the stage's device locked.
enum ree_status ree_pipeline_load(struct ree_pipeline *pipeline, size_t stage,
                                  struct ree_error *err);
void ree_pipeline_unload(struct ree_pipeline *pipeline, size_t stage);
// pipeline_kv_cache.c, called before a run: a stage may need the shape of a kv cache that another
// stage of this process keeps. Copies these shapes into the sessions that need them.
void ree_pipeline_set_shapes(struct ree_pipeline *pipeline, size_t slot);

#endif
