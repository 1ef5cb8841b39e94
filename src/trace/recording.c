// The public functions that record a run: its trace and chosen values. They also inject the fault
// that a test requests.
#include <stdlib.h>
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "generate/generator.h"
#include "session/identity.h"
#include "trace/dump.h"
#include "trace/fault.h"
#include "trace/record.h"

struct ree_recording {
    struct ree_recorder *recorder; // NULL: no trace is requested
    struct ree_dump *dump;         // NULL: no values are requested
    char *folder;                  // folder of the dump, owned
    bool has_fault;
    struct ree_fault fault;
    struct ree_observer observers[2]; // those of recorder and dump, if present
    size_t n_observers;
    uint64_t n_steps;
    uint32_t prefill_chunk;
    // The session or the pipeline that calls this recording; the other is NULL. Both are NULL if
    // the observation has not started.
    struct ree_session *session;
    struct ree_pipeline *pipeline;
};

// What is recorded: the runs of a session or of a pipeline, the other of which is NULL.
struct subject {
    const struct ree_model *model;
    enum ree_operation_set operation_set;
    uint32_t prefill_chunk;
    size_t n_kv_caches;
    const struct ree_kv_cache_spec *kv_caches;
    const struct ree_model_hashes *hashes; // NULL: not known
    struct ree_session *session;
    struct ree_pipeline *pipeline;
};

// The observer that calls those of recorder and dump

static enum ree_status on_inputs(void *user, const struct ree_tensor *inputs, size_t n,
                                 struct ree_error *err) {
    const struct ree_recording *r = user;
    for (size_t i = 0; i < r->n_observers; i++)
        if (r->observers[i].on_inputs)
            REE_TRY(r->observers[i].on_inputs(r->observers[i].user, inputs, n, err));
    return REE_OK;
}

static enum ree_status on_value(void *user, const struct ree_observed *value,
                                struct ree_error *err) {
    const struct ree_recording *r = user;
    for (size_t i = 0; i < r->n_observers; i++)
        if (r->observers[i].on_value)
            REE_TRY(r->observers[i].on_value(r->observers[i].user, value, err));
    return REE_OK;
}

static enum ree_status on_end(void *user, struct ree_error *err) {
    struct ree_recording *r = user;
    for (size_t i = 0; i < r->n_observers; i++)
        if (r->observers[i].on_end) REE_TRY(r->observers[i].on_end(r->observers[i].user, err));
    r->n_steps++;
    return REE_OK;
}

// Starting

static enum ree_status start_recorder(struct ree_recording *r, const struct subject *of,
                                      const struct ree_record_options *o, struct ree_error *err) {
    struct ree_model_hashes own;
    struct ree_trace_header_options options = {.graph_sha256 = o->graph_sha256,
                                               .weights_sha256 = o->weights_sha256,
                                               .operation_set = of->operation_set,
                                               .prefill_chunk = of->prefill_chunk,
                                               .is_secret = o->is_private,
                                               .n_kv_caches = of->n_kv_caches,
                                               .kv_caches = of->kv_caches,
                                               .progress = o->progress};
    if (!o->graph_sha256 || !o->weights_sha256) {
        const struct ree_model_hashes *hashes = of->hashes;
        if (!hashes) {
            REE_TRY(ree_model_hashes_make(of->model, &o->progress, &own, err));
            hashes = &own;
        }
        options.graph_sha256 = hashes->graph;
        options.weights_sha256 = hashes->weights;
    }
    REE_TRY(ree_recorder_create(of->model, &options, o->trace, &r->recorder, err));
    r->observers[r->n_observers++] = ree_recorder_observer(r->recorder);
    return REE_OK;
}

static enum ree_status start(struct ree_recording *r, const struct subject *of,
                             const struct ree_record_options *o, struct ree_error *err) {
    r->prefill_chunk = of->prefill_chunk;
    r->has_fault = o->fault != NULL;
    if (r->has_fault) {
        REE_TRY(ree_fault_parse(o->fault, of->model, &r->fault, err));
        REE_TRY(of->session ? ree_session_inject(of->session, &r->fault, err)
                            : ree_pipeline_inject(of->pipeline, &r->fault, err));
    }
    if (o->trace) REE_TRY(start_recorder(r, of, o, err));
    if (o->dump_names) {
        r->folder = ree_strdup(o->dump_folder);
        if (!r->folder) return ree_no_memory(err);
        REE_TRY(ree_dump_create(o->dump_names, r->folder, o->is_private, of->model, &r->dump, err));
        r->observers[r->n_observers++] = ree_dump_observer(r->dump);
    }
    // If neither a trace nor values are requested, the observer only counts steps. Without
    // on_value, a run reads no values back.
    struct ree_observer observer = {r->n_observers ? on_inputs : NULL,
                                    r->n_observers ? on_value : NULL, on_end, r,
                                    r->n_observers == 1 && r->observers[0].concurrent};
    REE_TRY(of->session ? ree_session_observe(of->session, &observer, err)
                        : ree_pipeline_observe(of->pipeline, &observer, err));
    r->session = of->session;
    r->pipeline = of->pipeline;
    return REE_OK;
}

static enum ree_status read_options(const struct ree_record_options *requested,
                                    struct ree_record_options *out, struct ree_error *err) {
    REE_TRY(ree_options_read(out, sizeof *out, requested, "ree_record_options", err));
    if (!out->dump_names != !out->dump_folder)
        return ree_fail(err, REE_INVALID, "dump_names and dump_folder must be given together");
    return REE_OK;
}

static enum ree_status record(const struct subject *of, const struct ree_record_options *requested,
                              struct ree_recording **out, struct ree_error *err) {
    struct ree_record_options options;
    *out = NULL;
    REE_TRY(read_options(requested, &options, err));
    struct ree_recording *r = ree_alloc_zeroed(1, sizeof *r);
    if (!r) return ree_no_memory(err);
    enum ree_status status = start(r, of, &options, err);
    if (status == REE_OK)
        *out = r;
    else
        ree_recording_destroy(r);
    return status;
}

enum ree_status ree_record_check(const struct ree_record_options *requested,
                                 struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_record_options options;
    REE_TRY(read_options(requested, &options, err));
    if (options.fault) REE_TRY(ree_fault_check(options.fault, err));
    return options.dump_names ? ree_dump_check(options.dump_names, err) : REE_OK;
}

enum ree_status ree_record_session(struct ree_session *session,
                                   const struct ree_record_options *options,
                                   struct ree_recording **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    const struct subject of = {.model = ree_session_model(session),
                               .operation_set = ree_session_operation_set(session),
                               .session = session};
    return record(&of, options, out, err);
}

enum ree_status ree_record_pipeline(struct ree_pipeline *pipeline,
                                    const struct ree_record_options *options,
                                    struct ree_recording **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    const struct subject of = {.model = ree_pipeline_model(pipeline),
                               .operation_set = ree_pipeline_operation_set(pipeline),
                               .pipeline = pipeline};
    return record(&of, options, out, err);
}

enum ree_status ree_record_generator(struct ree_generator *g,
                                     const struct ree_record_options *options,
                                     struct ree_recording **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    const struct subject of = {.model = g->model,
                               .operation_set = ree_pipeline_operation_set(g->pipeline),
                               .prefill_chunk = g->options.prefill_chunk,
                               .n_kv_caches = g->roles.n_kv_caches,
                               .kv_caches = g->roles.kv_caches,
                               .hashes = g->hashes.graph[0] ? &g->hashes : NULL,
                               .pipeline = g->pipeline};
    return record(&of, options, out, err);
}

// Ending

enum ree_status ree_recording_finish(struct ree_recording *r, struct ree_recorded *out,
                                     struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_recorded recorded = {.n_steps = r->n_steps, .prefill_chunk = r->prefill_chunk};
    enum ree_status status = REE_OK;
    if (r->has_fault && r->fault.run >= r->n_steps)
        status = ree_fault_not_reached(&r->fault, r->n_steps, err);
    if (r->dump) ree_dump_count(r->dump, &recorded);
    if (status == REE_OK && r->recorder) {
        struct ree_record_summary summary;
        struct ree_recorder *recorder = r->recorder;
        r->recorder = NULL;
        status = ree_recorder_finish(recorder, &summary, err);
        if (status == REE_OK) ree_hex(summary.root, recorded.root);
    }
    if (out && status == REE_OK)
        status = ree_stats_write(out, &recorded, sizeof recorded, "ree_recorded", err);
    ree_recording_destroy(r);
    return status;
}

uint64_t ree_recording_n_steps(const struct ree_recording *r) {
    return r->n_steps;
}

void ree_recording_destroy(struct ree_recording *r) {
    REE_FLOAT_ENV_API();
    if (!r) return;
    if (r->session) ree_session_end_observation(r->session);
    if (r->pipeline) ree_pipeline_end_observation(r->pipeline);
    ree_recorder_destroy(r->recorder);
    ree_dump_destroy(r->dump);
    ree_free(r->folder);
    ree_free(r);
}
