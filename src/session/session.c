// Creates sessions and runs them: finds or creates the bind for the inputs of a run.
#include <stdlib.h>
#include <string.h>

#include "graph/ir/mapping.h"
#include "session/session_internal.h"

#include "base/clock.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"

// Maximum number of cached binds; each holds a program and its literals.
#define MAX_BINDS 16

enum ree_status ree_session_create(struct ree_model *model, struct ree_device *device,
                                   const struct ree_session_options *options,
                                   struct ree_session **out_session, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_session_options own;
    *out_session = NULL;
    REE_TRY(ree_options_read(&own, sizeof own, options, "ree_session_options", err));
    if (!model->runnable)
        return ree_fail(err, REE_INVALID, "%s was opened for inspection only", model->graph->file);
    struct ree_session *s = ree_alloc_zeroed(1, sizeof *s);
    if (!s) return ree_no_memory(err);
    s->model = model;
    s->device = device;
    s->options = own;
    s->positions_input = REE_NO_INPUT;
    s->constants = ree_alloc_zeroed(model->n_values + 1, sizeof(struct ree_device_buffer *));
    if (!s->constants) {
        ree_session_destroy(s);
        return ree_no_memory(err);
    }
    *out_session = s;
    return REE_OK;
}

void ree_session_destroy(struct ree_session *s) {
    REE_FLOAT_ENV_API();
    if (!s) return;
    while (s->binds) {
        struct ree_bind *next = s->binds->next;
        ree_bind_destroy(s->binds);
        s->binds = next;
    }
    const struct ree_device_vtable *v = s->device->vtable;
    for (size_t i = 0; s->constants && i < s->model->n_values; i++)
        if (s->constants[i]) v->buffer_destroy(s->device, s->constants[i]);
    for (size_t i = 0; i < s->inputs_capacity; i++)
        if (s->inputs[i]) v->buffer_destroy(s->device, s->inputs[i]);
    for (size_t k = 0; k < s->n_cache_slots; k++) {
        for (size_t i = 0; i < s->n_kv_caches; i++)
            if (s->cache_slots[k][i].buffer)
                v->buffer_destroy(s->device, s->cache_slots[k][i].buffer);
        ree_free(s->cache_slots[k]);
    }
    ree_free(s->cache_slots);
    if (s->arena) v->buffer_destroy(s->device, s->arena);
    ree_free(s->constants);
    ree_free(s->observer);
    ree_free(s->observed);
    ree_free(s->inputs);
    ree_free(s->input_sizes);
    ree_free(s);
}

// Finds or creates the bind for these inputs and moves it to the front. Evicts the least recently
// used bind if there are too many.
static enum ree_status find_bind(struct ree_session *s, const struct ree_run_inputs *run_inputs,
                                 struct ree_error *err) {
    struct ree_bind **at = &s->binds;
    bool injects_fault = s->has_fault && s->fault.run == 0;
    while (*at) {
        struct ree_bind *b = *at;
        bool once = b->n_segments > 1;
        if (once) { // bound to the data of one run
            *at = b->next;
            ree_bind_destroy(b);
            s->n_binds--;
            continue;
        }
        if (!injects_fault && ree_bind_matches(b, run_inputs)) {
            *at = b->next;
            b->next = s->binds;
            s->binds = b;
            s->stats.n_bind_hits++;
            return REE_OK;
        }
        at = &b->next;
    }
    struct ree_bind *fresh;
    REE_TRY(ree_bind_create(s, run_inputs, &fresh, err));
    fresh->next = s->binds;
    s->binds = fresh;
    s->stats.n_binds++;
    if (++s->n_binds > MAX_BINDS) {
        at = &s->binds;
        while ((*at)->next)
            at = &(*at)->next;
        ree_bind_destroy(*at);
        *at = NULL;
        s->n_binds--;
    }
    return REE_OK;
}

// Finds the bind and allocates everything that a run of it needs.
static enum ree_status prepare(struct ree_session *s, const struct ree_run_inputs *run_inputs,
                               struct ree_error *err) {
    enum ree_status status = find_bind(s, run_inputs, err);
    if (status == REE_OK) status = ree_bind_reserve(s->binds, err);
    // Copies that only make runs faster are released if memory is exhausted.
    if (status != REE_NO_MEMORY || !ree_session_drop_copies(s)) return status;
    ree_error_clear(err);
    REE_TRY(find_bind(s, run_inputs, err));
    return ree_bind_reserve(s->binds, err);
}

static size_t n_tensors_in(const struct ree_tensor *t) {
    return t->kind == REE_TENSOR ? 1 : t->kind == REE_SEQUENCE ? t->n_items : 0;
}

// Lists the device tensors of the inputs in the order of run_inputs->tensors.
static enum ree_status collect_device_tensors(struct ree_session *s,
                                              const struct ree_device_tensors *on_device,
                                              struct ree_run_inputs *run_inputs,
                                              struct ree_error *err) {
    struct ree_device_tensor **next =
        ree_alloc_zeroed(run_inputs->n_tensors + 1, sizeof(struct ree_device_tensor *));
    if (!next) return ree_no_memory(err);
    run_inputs->on_device = next;
    run_inputs->outputs = on_device->outputs;
    for (size_t i = 0; i < s->model->n_inputs; i++) {
        if (on_device->inputs[i]) *next = on_device->inputs[i];
        next += n_tensors_in(&run_inputs->values[i]);
    }
    return REE_OK;
}

static void release_tensors(struct ree_run_inputs *run_inputs) {
    ree_free((struct ree_tensor *)(uintptr_t)run_inputs->tensors);
    ree_free(run_inputs->on_device);
}

// Collects shallow copies of the tensors among the inputs and within sequences, and reserves
// entries for their buffers in s->inputs. The caller calls release_tensors, also on failure.
// `on_device` may be NULL.
static enum ree_status collect_tensors(struct ree_session *s, const struct ree_tensor *ordered,
                                       const struct ree_device_tensors *on_device,
                                       struct ree_run_inputs *run_inputs, struct ree_error *err) {
    size_t n = 0, n_inputs = s->model->n_inputs;
    for (size_t i = 0; i < n_inputs; i++)
        n += n_tensors_in(&ordered[i]);
    if (s->pages) n += REE_PAGE_TENSORS;
    struct ree_tensor *tensors = ree_alloc_zeroed(n + 1, sizeof *tensors);
    if (!tensors) return ree_no_memory(err);
    *run_inputs = (struct ree_run_inputs){.values = ordered, .n_tensors = n, .tensors = tensors};
    if (on_device) REE_TRY(collect_device_tensors(s, on_device, run_inputs, err));
    for (size_t i = 0; i < n_inputs; i++) {
        const struct ree_tensor *from =
            ordered[i].kind == REE_TENSOR ? &ordered[i] : ordered[i].items;
        for (size_t k = 0; k < n_tensors_in(&ordered[i]); k++)
            *tensors++ = from[k];
    }
    for (size_t k = 0; s->pages && k < REE_PAGE_TENSORS; k++)
        *tensors++ = s->pages->tensors[k];
    if (n <= s->inputs_capacity) return REE_OK;
    struct ree_device_buffer **inputs =
        ree_realloc(s->inputs, n * sizeof(struct ree_device_buffer *));
    if (inputs) s->inputs = inputs;
    uint64_t *sizes = ree_realloc(s->input_sizes, n * sizeof *sizes);
    if (sizes) s->input_sizes = sizes;
    if (!inputs || !sizes) return ree_no_memory(err);
    for (size_t i = s->inputs_capacity; i < n; i++) {
        inputs[i] = NULL;
        sizes[i] = 0;
    }
    s->inputs_capacity = n;
    return REE_OK;
}

enum ree_status ree_session_run(struct ree_session *s, const struct ree_tensor *inputs,
                                size_t n_inputs, struct ree_tensor *outputs,
                                struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    memset(outputs, 0, s->model->n_outputs * sizeof *outputs);
    struct ree_tensor *ordered = ree_alloc_zeroed(s->model->n_inputs + 1, sizeof *ordered);
    if (!ordered) return ree_no_memory(err);
    enum ree_status status = ree_inputs_match(s->model, s->kv_caches, s->n_kv_caches, NULL, inputs,
                                              n_inputs, ordered, err);
    if (status == REE_OK) status = ree_session_run_ordered(s, ordered, NULL, outputs, err);
    ree_free(ordered);
    return status;
}

enum ree_status ree_session_bind(struct ree_session *s, const struct ree_tensor *inputs,
                                 size_t n_inputs, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    struct ree_tensor *ordered = ree_alloc_zeroed(s->model->n_inputs + 1, sizeof *ordered);
    if (!ordered) return ree_no_memory(err);
    struct ree_run_inputs run_inputs = {0};
    enum ree_status status = ree_inputs_match(s->model, s->kv_caches, s->n_kv_caches, NULL, inputs,
                                              n_inputs, ordered, err);
    if (status == REE_OK) status = collect_tensors(s, ordered, NULL, &run_inputs, err);
    if (status == REE_OK) status = find_bind(s, &run_inputs, err);
    release_tensors(&run_inputs);
    ree_free(ordered);
    return status;
}

// Returns `status`, unless a mapped file was truncated during the run. Then the results are
// invalid: releases them and fails.
static enum ree_status check_files(struct ree_session *s, enum ree_status status,
                                   struct ree_tensor *outputs, struct ree_error *err) {
    if (ree_mappings_check(s->model->files->mappings, err) == REE_OK) return status;
    for (size_t i = 0; status == REE_OK && i < s->model->n_outputs; i++)
        ree_tensor_finish(&outputs[i]);
    memset(outputs, 0, s->model->n_outputs * sizeof *outputs);
    return ree_fail_prefix(err, "%s", s->model->files->file);
}

enum ree_status ree_session_run_ordered(struct ree_session *s, const struct ree_tensor *ordered,
                                        const struct ree_device_tensors *on_device,
                                        struct ree_tensor *outputs, struct ree_error *err) {
    struct ree_run_inputs run_inputs = {0};
    memset(outputs, 0, s->model->n_outputs * sizeof *outputs);
    enum ree_status status = collect_tensors(s, ordered, on_device, &run_inputs, err);
    double start = ree_clock();
    if (status == REE_OK && s->observer && s->observer->on_inputs)
        status = s->observer->on_inputs(s->observer->user, ordered, s->model->n_inputs, err);
    if (status == REE_OK) status = prepare(s, &run_inputs, err);
    if (status == REE_OK) status = ree_bind_check_outputs(s->binds, &run_inputs, err);
    double bound = ree_clock();
    if (status == REE_OK) {
        struct ree_bind *b = s->binds;
        ree_session_note_written(s, b->filled_positions);
        status = ree_bind_run(b, &run_inputs, outputs, err);
        if (status != REE_OK && s->model->graph->file[0])
            ree_fail_prefix(err, "%s", s->model->graph->file);
        for (size_t i = 0; status == REE_OK && i < s->n_kv_caches; i++)
            s->kv_caches[i].dims[s->kv_caches[i].spec.axis] = b->filled_positions[i];
        s->stats.arena_bytes = b->arena_size;
        s->stats.n_dispatches = b->n_dispatches;
        s->stats.n_segments = b->n_segments;
        s->stats.bind_seconds = bound - start;
        s->stats.run_seconds = ree_clock() - bound;
        s->stats.weight_bytes = s->weight_bytes;
    }
    status = check_files(s, status, outputs, err);
    release_tensors(&run_inputs);
    if (s->has_fault && s->fault.run-- == 0) s->has_fault = false;
    return status;
}

enum ree_status ree_session_stats(const struct ree_session *s, struct ree_session_stats *out_stats,
                                  struct ree_error *err) {
    REE_FLOAT_ENV_API();
    REE_TRY(ree_stats_check(out_stats, sizeof s->stats, "ree_session_stats", err));
    ree_stats_fill(out_stats, &s->stats, sizeof s->stats);
    return REE_OK;
}
