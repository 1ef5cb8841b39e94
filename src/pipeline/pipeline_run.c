// Runs one stage, or all stages on the caller's thread or on one thread per device.
#include <stdlib.h>
#include <string.h>

#include "session/kv_cache.h"
#include "pipeline/pipeline_internal.h"

#include "base/float_env.h"
#include "base/memory.h"

struct ree_session *ree_pipeline_hold(struct ree_pipeline *p, size_t stage, size_t slot) {
    pthread_mutex_lock(&p->workers[p->stages[stage].device].lock);
    ree_session_use_cache_slot(p->stages[stage].session, slot);
    return p->stages[stage].session;
}

void ree_pipeline_release(struct ree_pipeline *p, size_t stage) {
    pthread_mutex_unlock(&p->workers[p->stages[stage].device].lock);
}

// One stage

// Collects the stage's inputs in the order of its session. The copies are shallow: the data still
// belongs to the caller.
static enum ree_status gather(const struct ree_pipeline_stage *stage,
                              const struct ree_session *session, const struct ree_tensor *ordered,
                              const struct ree_boundary *in, struct ree_tensor *run_inputs,
                              struct ree_error *err) {
    const struct ree_stage_graph *graph = &stage->graph;
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const char *name = graph->inputs[i].value->name;
        run_inputs[i] =
            graph->inputs[i].is_cut ? in->tensors[stage->source[i]] : ordered[stage->source[i]];
        run_inputs[i].name = (char *)(uintptr_t)name; // the session does not modify names
        ptrdiff_t cache = ree_session_kv_cache_of_input(session, i);
        if (cache >= 0) // only its shape: the contents are on the device
            memcpy(run_inputs[i].dims, session->kv_caches[cache].dims, sizeof run_inputs[i].dims);
        else if (graph->inputs[i].is_cut)
            REE_TRY(ree_input_check_any(name, &run_inputs[i], err));
    }
    return REE_OK;
}

// Moves computed outputs and forwarded values to their destinations.
static void scatter(const struct ree_pipeline_stage *stage, struct ree_tensor *made,
                    struct ree_boundary *in, struct ree_boundary *out, struct ree_tensor *outputs) {
    const struct ree_stage_graph *graph = &stage->graph;
    for (size_t i = 0; i < graph->n_outputs; i++)
        *(i < graph->n_model_outputs ? &outputs[stage->target[i]]
                                     : &out->tensors[stage->target[i]]) = made[i];
    for (size_t i = 0; out && i < out->n; i++) {
        if (stage->passes[i] == REE_NO_INDEX) continue;
        out->tensors[i] = in->tensors[stage->passes[i]];
        in->tensors[stage->passes[i]] = (struct ree_tensor){0};
    }
}

static enum ree_status run_stage(struct ree_pipeline *p, size_t number, size_t slot,
                                 const struct ree_tensor *ordered, struct ree_boundary *in,
                                 struct ree_boundary *out, struct ree_tensor *outputs,
                                 struct ree_error *err) {
    const struct ree_pipeline_stage *stage = &p->stages[number];
    const struct ree_stage_graph *graph = &stage->graph;
    const size_t n_before = number ? p->partition.cuts[number - 1].n_values : 0;
    const bool last = number + 1 == p->n_stages;
    if (number && (!in || in->n != n_before))
        return ree_fail(err, REE_INVALID, "received %zu boundary tensors, but %zu cross the cut",
                        in ? in->n : 0, n_before);
    struct ree_tensor *run_inputs = ree_alloc_zeroed(graph->n_inputs + 1, sizeof *run_inputs);
    struct ree_tensor *made = ree_alloc_zeroed(graph->n_outputs + 1, sizeof *made);
    enum ree_status status = run_inputs && made ? REE_OK : ree_no_memory(err);
    if (status == REE_OK && !last) {
        out->n = p->partition.cuts[number].n_values;
        out->tensors = ree_alloc_zeroed(out->n + 1, sizeof *out->tensors);
        if (!out->tensors) status = ree_no_memory(err);
    }
    if (status == REE_OK) {
        struct ree_session *session = ree_pipeline_hold(p, number, slot);
        status = gather(stage, session, ordered, in, run_inputs, err);
        if (status == REE_OK) status = ree_pipeline_load(p, number, err);
        if (status == REE_OK) status = ree_session_run_ordered(session, run_inputs, NULL, made, err);
        ree_pipeline_unload(p, number);
        ree_pipeline_release(p, number);
    }
    if (status == REE_OK) scatter(stage, made, in, last ? NULL : out, outputs);
    ree_free(run_inputs);
    ree_free(made);
    return status;
}

enum ree_status ree_pipeline_run_stage(struct ree_pipeline *p, size_t number, size_t slot,
                                       const struct ree_tensor *ordered, struct ree_boundary *in,
                                       struct ree_boundary *out, struct ree_tensor *outputs,
                                       struct ree_error *err) {
    struct ree_error local;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    if (out) *out = (struct ree_boundary){0};
    enum ree_status status;
    if (number >= p->n_stages || !p->stages[number].session) {
        status = ree_fail(err, REE_INVALID, "stage %zu of %zu does not run in this process", number,
                          p->n_stages);
    } else if (!p->divided) {
        struct ree_session *session = ree_pipeline_hold(p, 0, slot);
        status = ree_session_run_ordered(session, ordered, NULL, outputs, err);
        ree_pipeline_release(p, 0);
    } else {
        status = run_stage(p, number, slot, ordered, in, out, outputs, err);
        if (status != REE_OK) ree_fail_prefix(err, "stage %zu of %zu", number, p->n_stages);
    }
    if (in) ree_boundary_finish(in);
    if (out && status != REE_OK) ree_boundary_finish(out);
    return status;
}

enum ree_status ree_pipeline_match(struct ree_pipeline *p, size_t slot,
                                   const struct ree_tensor *inputs, size_t n_inputs,
                                   struct ree_tensor *ordered, struct ree_error *err) {
    struct ree_kv_cache *kv_caches = ree_alloc_zeroed(p->n_kv_caches + 1, sizeof *kv_caches);
    if (!kv_caches) return ree_no_memory(err);
    ree_pipeline_set_shapes(p, slot);
    for (size_t i = 0; i < p->n_kv_caches; i++) {
        kv_caches[i].spec = p->specs[i];
        const struct ree_pipeline_stage *stage = &p->stages[p->owner[i]];
        const struct ree_session *session = stage->session;
        if (!session) {
            const struct ree_port *port = &p->model->inputs[p->specs[i].input];
            memcpy(kv_caches[i].dims, port->dims, sizeof kv_caches[i].dims);
            kv_caches[i].dims[p->specs[i].batch_axis] = p->batches[slot];
            kv_caches[i].dims[p->specs[i].axis] = p->positions_elsewhere[slot];
        }
        for (size_t k = 0; session && k < session->n_kv_caches; k++)
            if ((p->divided ? stage->kv_cache_of[k] : k) == i)
                memcpy(kv_caches[i].dims, session->cache_slots[slot][k].dims,
                       sizeof kv_caches[i].dims);
    }
    memset(ordered, 0, p->model->n_inputs * sizeof *ordered);
    enum ree_status status =
        ree_inputs_match(p->model, kv_caches, p->n_kv_caches, NULL, inputs, n_inputs, ordered, err);
    ree_free(kv_caches);
    return status;
}

// A run

static void forget(struct ree_pipeline *p, struct ree_pipeline_job *job) {
    ree_boundary_finish(&job->boundary);
    for (size_t i = 0; job->outputs && i < p->model->n_outputs; i++)
        ree_tensor_finish(&job->outputs[i]);
    ree_free(job->outputs);
    ree_free(job->ordered);
    pthread_mutex_lock(&p->lock); // other threads read job->phase
    *job = (struct ree_pipeline_job){0};
    pthread_mutex_unlock(&p->lock);
}

bool ree_pipeline_is_in_flight(struct ree_pipeline *p, size_t slot) {
    pthread_mutex_lock(&p->lock);
    bool in_flight = slot < p->n_cache_slots && p->jobs[slot].phase != REE_JOB_NONE;
    pthread_mutex_unlock(&p->lock);
    return in_flight;
}

// Runs the job's next stage.
static void run_next(struct ree_pipeline *p, size_t slot, struct ree_pipeline_job *job) {
    struct ree_boundary out = {0};
    bool last = job->stage + 1 == p->n_stages;
    job->status = ree_pipeline_run_stage(p, job->stage, slot, job->ordered, &job->boundary,
                                         last ? NULL : &out, job->outputs, &job->err);
    job->boundary = out;
    job->stage++;
}

static bool is_over(const struct ree_pipeline *p, const struct ree_pipeline_job *job) {
    return job->status != REE_OK || job->stage == p->n_stages;
}

static void *work(void *user) {
    struct ree_pipeline_worker *worker = user;
    struct ree_pipeline *p = worker->pipeline;
    size_t device = (size_t)(worker - p->workers);
    REE_FLOAT_ENV_THREAD(&p->caller_env);
    pthread_mutex_lock(&p->lock);
    while (!p->stopping) {
        size_t next = p->n_cache_slots;
        for (size_t i = 0; i < p->n_cache_slots; i++)
            if (p->jobs[i].phase == REE_JOB_WAITS && p->stages[p->jobs[i].stage].device == device &&
                (next == p->n_cache_slots || p->jobs[i].ticket < p->jobs[next].ticket))
                next = i;
        if (next == p->n_cache_slots) {
            pthread_cond_wait(&p->changed, &p->lock);
            continue;
        }
        struct ree_pipeline_job *job = &p->jobs[next];
        job->phase = REE_JOB_RUNS;
        pthread_mutex_unlock(&p->lock);
        run_next(p, next, job);
        pthread_mutex_lock(&p->lock);
        job->phase = is_over(p, job) ? REE_JOB_DONE : REE_JOB_WAITS;
        job->ticket = p->tickets++;
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

enum ree_status ree_pipeline_start(struct ree_pipeline *p, struct ree_error *err) {
    // Start threads only if stages can overlap. If this process has only some of the stages, its
    // callers run them one by one (ree_pipeline_run_stage).
    if (!p->divided || p->n_workers == 1 || p->n_cache_slots == 1 || p->n_local < p->n_stages)
        return REE_OK;
    p->threaded = true;
    ree_float_call_caller(&p->caller_env);
    for (size_t i = 0; i < p->n_workers && i < p->n_stages; i++) {
        if (pthread_create(&p->workers[i].thread, NULL, work, &p->workers[i]) != 0)
            return ree_fail(err, REE_NO_MEMORY, "cannot start a thread for each device");
        p->workers[i].has_thread = true;
    }
    return REE_OK;
}

void ree_pipeline_stop(struct ree_pipeline *p) {
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < p->n_workers; i++)
        if (p->workers[i].has_thread) pthread_join(p->workers[i].thread, NULL);
    if (p->streams) pthread_join(p->reader, NULL);
    for (size_t i = 0; p->jobs && i < p->n_cache_slots; i++)
        forget(p, &p->jobs[i]);
}

enum ree_status ree_pipeline_submit(struct ree_pipeline *p, size_t slot,
                                    const struct ree_tensor *inputs, size_t n_inputs,
                                    struct ree_error *err) {
    struct ree_error local;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    if (slot >= p->n_cache_slots)
        return ree_fail(err, REE_INVALID, "there is no cache slot %zu of %zu", slot,
                        p->n_cache_slots);
    struct ree_pipeline_job *job = &p->jobs[slot];
    if (ree_pipeline_is_in_flight(p, slot))
        return ree_fail(err, REE_INVALID, "a run of cache slot %zu is already in flight", slot);
    if (p->n_local < p->n_stages)
        return ree_fail(err, REE_INVALID, "only stages %zu to %zu of %zu run in this process",
                        p->first, p->first + p->n_local - 1, p->n_stages);
    for (size_t i = 0; p->has_observer && i < p->n_cache_slots; i++)
        if (ree_pipeline_is_in_flight(p, i))
            return ree_fail(err, REE_INVALID,
                            "a pipeline that is observed runs one cache slot at a time, but slot "
                            "%zu is in flight",
                            i);
    job->ordered = ree_alloc_zeroed(p->model->n_inputs + 1, sizeof *job->ordered);
    job->outputs = ree_alloc_zeroed(p->model->n_outputs + 1, sizeof *job->outputs);
    enum ree_status status = job->ordered && job->outputs ? REE_OK : ree_no_memory(err);
    if (status == REE_OK) status = ree_pipeline_match(p, slot, inputs, n_inputs, job->ordered, err);
    // If the model is not divided, its session calls the observer itself.
    if (status == REE_OK && p->divided && p->has_observer && p->observer.on_inputs)
        status = p->observer.on_inputs(p->observer.user, job->ordered, p->model->n_inputs, err);
    if (status != REE_OK) {
        forget(p, job);
        return status;
    }
    pthread_mutex_lock(&p->lock);
    job->phase = REE_JOB_WAITS;
    job->ticket = p->tickets++;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return REE_OK;
}

enum ree_status ree_pipeline_collect(struct ree_pipeline *p, size_t slot,
                                     struct ree_tensor *outputs, struct ree_error *err) {
    memset(outputs, 0, p->model->n_outputs * sizeof *outputs);
    if (!ree_pipeline_is_in_flight(p, slot))
        return ree_fail(err, REE_INVALID, "no run of cache slot %zu is in flight", slot);
    struct ree_pipeline_job *job = &p->jobs[slot];
    if (p->threaded) {
        pthread_mutex_lock(&p->lock);
        while (job->phase != REE_JOB_DONE)
            pthread_cond_wait(&p->changed, &p->lock);
        pthread_mutex_unlock(&p->lock);
    } else {
        while (!is_over(p, job))
            run_next(p, slot, job);
    }
    if (job->status == REE_OK && p->divided && p->has_observer && p->observer.on_end)
        job->status = p->observer.on_end(p->observer.user, &job->err);
    enum ree_status status = job->status;
    if (status == REE_OK) {
        memcpy(outputs, job->outputs, p->model->n_outputs * sizeof *outputs);
        ree_free(job->outputs);
        job->outputs = NULL;
    } else if (err) {
        *err = job->err;
    }
    forget(p, job);
    return status;
}

enum ree_status ree_pipeline_run(struct ree_pipeline *p, const struct ree_tensor *inputs,
                                 size_t n_inputs, struct ree_tensor *outputs,
                                 struct ree_error *err) {
    REE_FLOAT_ENV_API();
    if (!p->divided && p->n_cache_slots == 1)
        return ree_session_run(p->stages[0].session, inputs, n_inputs, outputs, err);
    memset(outputs, 0, p->model->n_outputs * sizeof *outputs);
    REE_TRY(ree_pipeline_submit(p, 0, inputs, n_inputs, err));
    return ree_pipeline_collect(p, 0, outputs, err);
}
