// What the files of a pipeline share.
#ifndef REE_SESSION_PIPELINE_INTERNAL_H
#define REE_SESSION_PIPELINE_INTERNAL_H

#include <pthread.h>

#include "session/pipeline.h"
#include "base/float_env.h"
#include "session/session_internal.h"

#define REE_NO_PLACE SIZE_MAX
#define REE_NO_PORT SIZE_MAX

// Pages of a mapped file that a stage's weights lie in.
struct ree_page_range {
    void *data;
    size_t size;
    bool is_table; // of which a run reads some rows
};

struct ree_pipeline_stage {
    struct ree_pipeline *pipeline;
    size_t device;                // index
    struct ree_stage_graph piece; // where the model is divided and the stage is local
    struct ree_model *model;      // of the piece; owned
    struct ree_session *session;  // NULL: not local
    size_t n_ranges;
    struct ree_page_range *ranges; // of a pipeline that streams
    size_t *source;   // per input of the stage: the model's input, or the place in the parcel
    size_t *whole_of; // per output of the stage: the model's output, or the place in the parcel
    size_t *passes;   // per value of the cut behind: its place in the cut before, or REE_NO_PLACE
    size_t *state_of; // per state of the session: which of the pipeline's
};

// A run of a set.
enum ree_job_phase { REE_JOB_NONE, REE_JOB_WAITS, REE_JOB_RUNS, REE_JOB_DONE };

struct ree_pipeline_job {
    enum ree_job_phase phase;
    uint64_t ticket; // order of waiting jobs
    size_t stage;    // that is next
    struct ree_tensor *ordered, *outputs;
    struct ree_parcel parcel;
    enum ree_status status;
    struct ree_error err;
};

struct ree_pipeline_worker {
    struct ree_pipeline *pipeline;
    struct ree_device *device;
    struct ree_memory_count memory; // where it is limited
    pthread_mutex_t lock;           // held while the device is used
    pthread_t thread;
    bool has_thread;
};

struct ree_pipeline {
    struct ree_model *model; // the whole
    bool divided;
    struct ree_partition partition; // if so
    size_t n_stages, first, n_local;
    struct ree_pipeline_stage *stages;
    size_t n_workers; // a device each
    struct ree_pipeline_worker *workers;
    size_t *graph_inputs, *model_inputs; // per input of the model the graph's, and the other way
    size_t n_states;
    struct ree_state_spec *specs;
    struct ree_partition_state *part_states; // the same by inputs and outputs of the graph
    size_t *owner;                           // per state: the stage that keeps it
    size_t rows_input;
    size_t n_sets;
    struct ree_pipeline_job *jobs; // per set
    // Per set, of the states that stages elsewhere keep: sequences and filled rows.
    int64_t *batches, *rows_elsewhere;
    bool threaded, stopping;
    uint64_t tickets;
    pthread_mutex_t lock; // of the jobs
    pthread_cond_t changed;
    uint64_t max_memory; // of a device; 0: no limit
    bool streams;        // pipeline_stream.c: stages are on the device while they run
    size_t ahead;        // the stage whose pages are wanted next; REE_NO_PLACE: none
    pthread_t reader;
    bool has_observer;
    struct ree_observer observer;
    struct ree_session_options session;
    pthread_mutex_t reporting;
    void (*on_progress)(void *user, const char *what, uint64_t done, uint64_t total);
    void (*on_program)(void *user, const char *what, const char *text);
    void *report_user;               // of both
    struct ree_float_env caller_env; // of the thread that made the pipeline, for callbacks
};

// pipeline_plan.c
enum ree_status ree_pipeline_take_states(struct ree_pipeline *pipeline,
                                         const struct ree_state_spec *states, size_t n,
                                         struct ree_error *err);
struct ree_partition_options ree_pipeline_plan_options(const struct ree_pipeline *pipeline,
                                                       uint64_t context);
// Divides the model if the options ask for it.
enum ree_status ree_pipeline_divide(struct ree_pipeline *pipeline,
                                    const struct ree_pipeline_options *options,
                                    struct ree_error *err);
// pipeline_run.c
enum ree_status ree_pipeline_start(struct ree_pipeline *pipeline, struct ree_error *err);
void ree_pipeline_stop(struct ree_pipeline *pipeline);
// Submitted and not collected. With the pipeline's lock free.
bool ree_pipeline_is_in_flight(struct ree_pipeline *pipeline, size_t set);
// The session's states of the set, with the device held; give it back.
struct ree_session *ree_pipeline_hold(struct ree_pipeline *pipeline, size_t stage, size_t set);
void ree_pipeline_release(struct ree_pipeline *pipeline, size_t stage);
// pipeline_stream.c: has all sessions count what they hold of their devices; with a limit, makes
// ready for stages that are there only while they run.
enum ree_status ree_pipeline_stream(struct ree_pipeline *pipeline, struct ree_error *err);
// Around a stage's run, with its device held.
enum ree_status ree_pipeline_load(struct ree_pipeline *pipeline, size_t stage,
                                  struct ree_error *err);
void ree_pipeline_unload(struct ree_pipeline *pipeline, size_t stage);
// pipeline_states.c: what stages know of the shapes of states elsewhere, before a run.
void ree_pipeline_tell_shapes(struct ree_pipeline *pipeline, size_t set);

#endif
