// Declarations shared by the files of a pipeline.
#ifndef REE_PIPELINE_PIPELINE_INTERNAL_H
#define REE_PIPELINE_PIPELINE_INTERNAL_H

#include <pthread.h>

#include "pipeline/pipeline.h"
#include "base/float_env.h"
#include "session/session_internal.h"

#define REE_NO_INDEX SIZE_MAX
#define REE_NO_PORT SIZE_MAX

// Pages of a mapped file that hold weights of a stage.
struct ree_page_range {
    void *data;
    size_t size;
    bool is_table; // a table of which a run reads only some rows
};

struct ree_pipeline_stage {
    struct ree_pipeline *pipeline;
    size_t device;                // index in pipeline->workers
    struct ree_stage_graph graph; // set if the model is divided and the stage is local
    struct ree_model *model;      // model of `graph`; owned
    struct ree_session *session;  // NULL: not local
    size_t n_ranges;
    struct ree_page_range *ranges; // only if the pipeline streams
    // Per input of the stage: index of the model's input, or index in the incoming boundary
    // tensors.
    size_t *source;
    // Per output of the stage: index of the model's output, or index in the outgoing boundary
    // tensors.
    size_t *target;
    // Per value of the next cut: its index in the previous cut if the stage only forwards it;
    // otherwise REE_NO_INDEX.
    size_t *passes;
    size_t *kv_cache_of; // per kv cache of the session: index of the pipeline's kv cache
};

// The state of a cache slot's run.
enum ree_job_phase { REE_JOB_NONE, REE_JOB_WAITS, REE_JOB_RUNS, REE_JOB_DONE };

struct ree_pipeline_job {
    enum ree_job_phase phase;
    uint64_t ticket; // order of waiting jobs
    size_t stage;    // next stage to run
    struct ree_tensor *ordered, *outputs;
    struct ree_boundary boundary;
    enum ree_status status;
    struct ree_error err;
};

struct ree_pipeline_worker {
    struct ree_pipeline *pipeline;
    struct ree_device *device;
    struct ree_memory_budget memory; // bytes held, and the memory budget if there is one
    pthread_mutex_t lock;            // held while the device is used
    pthread_t thread;
    bool has_thread;
};

struct ree_pipeline {
    struct ree_model *model; // the whole model
    bool divided;
    struct ree_partition partition; // if divided
    size_t n_stages, first, n_local;
    struct ree_pipeline_stage *stages;
    size_t n_workers; // one per device
    struct ree_pipeline_worker *workers;
    // Per input of the model: index of the graph's input, and the reverse.
    size_t *graph_inputs, *model_inputs;
    size_t n_kv_caches;
    struct ree_kv_cache_spec *specs;
    struct ree_partition_kv_cache *graph_kv_caches; // specs, by inputs and outputs of the graph
    size_t *owner;                                  // per kv cache: the stage that keeps it
    size_t positions_input;
    size_t n_cache_slots;
    struct ree_pipeline_job *jobs; // one per cache slot
    // Per cache slot: number of sequences, and filled positions of the caches that stages in other
    // processes keep.
    int64_t *batches, *positions_elsewhere;
    bool threaded, stopping;
    uint64_t tickets;
    pthread_mutex_t lock; // protects the jobs
    pthread_cond_t changed;
    uint64_t max_memory; // memory budget per device in bytes; 0: no limit
    bool streams;        // pipeline_stream.c: weights are on the device only while a stage runs
    size_t ahead;        // stage whose pages to read ahead next; REE_NO_INDEX: none
    pthread_t reader;
    bool has_observer;
    struct ree_observer observer;
    struct ree_session_options session;
    pthread_mutex_t reporting;
    struct ree_progress progress; // the caller's
    void (*on_program)(void *user, const char *what, const char *text);
    void *program_user; // `user` of on_program
    // for callbacks: environment of the thread that created the pipeline
    struct ree_float_env caller_env;
};

// pipeline_plan.c
enum ree_status ree_pipeline_set_kv_caches(struct ree_pipeline *pipeline,
                                           const struct ree_kv_cache_spec *kv_caches, size_t n,
                                           struct ree_error *err);
struct ree_partition_options ree_pipeline_plan_options(const struct ree_pipeline *pipeline,
                                                       uint64_t context);
// Divides the model if the options require it.
enum ree_status ree_pipeline_divide(struct ree_pipeline *pipeline,
                                    const struct ree_pipeline_options *options,
                                    struct ree_error *err);
// pipeline_run.c
enum ree_status ree_pipeline_start(struct ree_pipeline *pipeline, struct ree_error *err);
void ree_pipeline_stop(struct ree_pipeline *pipeline);
// Whether a run was submitted and not yet collected. The caller must not hold the pipeline's lock.
bool ree_pipeline_is_in_flight(struct ree_pipeline *pipeline, size_t slot);
// Locks the stage's device and returns its session with the cache slot selected. Unlock with
// ree_pipeline_release.
struct ree_session *ree_pipeline_hold(struct ree_pipeline *pipeline, size_t stage, size_t slot);
void ree_pipeline_release(struct ree_pipeline *pipeline, size_t stage);
// pipeline_stream.c: makes all sessions count the bytes they hold on their devices. With a memory
// budget, prepares for stages that are on the device only while they run.
enum ree_status ree_pipeline_stream(struct ree_pipeline *pipeline, struct ree_error *err);
// Called before and after a stage's run, with its device locked.
enum ree_status ree_pipeline_load(struct ree_pipeline *pipeline, size_t stage,
                                  struct ree_error *err);
void ree_pipeline_unload(struct ree_pipeline *pipeline, size_t stage);
// pipeline_kv_cache.c: before a run, copies the shapes of caches that other stages keep into the
// sessions that need only these shapes.
void ree_pipeline_set_shapes(struct ree_pipeline *pipeline, size_t slot);

#endif
