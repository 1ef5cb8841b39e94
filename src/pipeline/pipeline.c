// Creates and destroys a pipeline: one session per stage.
#include "pipeline/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/options.h"
#include "graph/partition/plan_file.h"
#include "session/kv_cache.h"
#include "pipeline/pipeline_internal.h"

void ree_boundary_finish(struct ree_boundary *boundary) {
    for (size_t i = 0; boundary->tensors && i < boundary->n; i++)
        ree_tensor_finish(&boundary->tensors[i]);
    ree_free(boundary->tensors);
    *boundary = (struct ree_boundary){0};
}

// Stages

// Returns the index of the value in the cut, or REE_NO_INDEX. Values of a cut are sorted by id.
static size_t index_in(const struct ree_cut *cut, const struct ree_value *value) {
    size_t low = 0, high = cut ? cut->n_values : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (cut->values[middle]->id < value->id)
            low = middle + 1;
        else
            high = middle;
    }
    return cut && low < cut->n_values && cut->values[low] == value ? low : REE_NO_INDEX;
}

// Determines where the stage's inputs come from and where its outputs go.
static enum ree_status connect(struct ree_pipeline_stage *stage, size_t number,
                               struct ree_error *err) {
    const struct ree_pipeline *p = stage->pipeline;
    const struct ree_stage_graph *graph = &stage->graph;
    const struct ree_cut *before = number ? &p->partition.cuts[number - 1] : NULL;
    const struct ree_cut *behind = number + 1 < p->n_stages ? &p->partition.cuts[number] : NULL;
    size_t n_behind = behind ? behind->n_values : 0;
    stage->source = ree_alloc_zeroed(graph->n_inputs + 1, sizeof *stage->source);
    stage->target = ree_alloc_zeroed(graph->n_outputs + 1, sizeof *stage->target);
    stage->passes = ree_alloc_zeroed(n_behind + 1, sizeof *stage->passes);
    if (!stage->source || !stage->target || !stage->passes) return ree_no_memory(err);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const struct ree_stage_input *input = &graph->inputs[i];
        stage->source[i] =
            input->is_cut ? index_in(before, input->value) : p->model_inputs[input->input];
        if (stage->source[i] == (input->is_cut ? REE_NO_INDEX : REE_NO_PORT))
            return ree_fail(err, REE_INTERNAL, "stage %zu does not have '%s'", number,
                            input->value->name);
    }
    for (size_t i = 0; i < n_behind; i++) {
        const struct ree_node *maker = behind->values[i]->producer;
        bool own = maker && p->partition.stage_of[maker->id] == number;
        stage->passes[i] = own ? REE_NO_INDEX : index_in(before, behind->values[i]);
        if (!own && stage->passes[i] == REE_NO_INDEX)
            return ree_fail(err, REE_INTERNAL, "'%s' cannot pass through stage %zu",
                            behind->values[i]->name, number);
    }
    for (size_t i = 0; i < graph->n_outputs; i++)
        stage->target[i] = i < graph->n_model_outputs ? graph->model_outputs[i]
                                                      : index_in(behind, graph->outputs[i]);
    return REE_OK;
}

// Returns the index of the stage's output that is the given model output; REE_NO_OUTPUT: none. The
// model outputs of a stage are sorted.
static size_t own_output(const struct ree_stage_graph *graph, size_t output) {
    size_t low = 0, high = graph->n_model_outputs;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (graph->model_outputs[middle] < output)
            low = middle + 1;
        else
            high = middle;
    }
    return low < graph->n_model_outputs && graph->model_outputs[low] == output ? low
                                                                               : REE_NO_OUTPUT;
}

// Declares the kv caches that the stage reads to its session, as inputs and outputs of the stage.
static enum ree_status declare_kv_caches(struct ree_pipeline_stage *stage, size_t number,
                                         struct ree_error *err) {
    const struct ree_pipeline *p = stage->pipeline;
    const struct ree_stage_graph *graph = &stage->graph;
    struct ree_kv_cache_spec *specs = ree_alloc_zeroed(p->n_kv_caches + 1, sizeof *specs);
    // per input of the model: index of the stage's input
    size_t *ports = ree_alloc((p->model->n_inputs + 1) * sizeof *ports);
    stage->kv_cache_of = ree_alloc_zeroed(p->n_kv_caches + 1, sizeof *stage->kv_cache_of);
    if (!specs || !ports || !stage->kv_cache_of) {
        ree_free(specs);
        ree_free(ports);
        return ree_no_memory(err);
    }
    for (size_t i = 0; i < p->model->n_inputs; i++)
        ports[i] = REE_NO_INPUT;
    for (size_t i = 0; i < graph->n_inputs; i++)
        if (!graph->inputs[i].is_cut) ports[stage->source[i]] = i;
    size_t n = 0, positions_input = REE_NO_INPUT;
    if (p->positions_input != REE_NO_INPUT) positions_input = ports[p->positions_input];
    for (size_t k = 0; k < p->n_kv_caches; k++) {
        if (ports[p->specs[k].input] == REE_NO_INPUT) continue;
        specs[n] = p->specs[k];
        specs[n].input = ports[p->specs[k].input];
        specs[n].output =
            p->owner[k] == number ? own_output(graph, p->specs[k].output) : REE_NO_OUTPUT;
        stage->kv_cache_of[n++] = k;
    }
    enum ree_status status =
        n ? ree_session_declare_kv_caches(stage->session, specs, n, positions_input, err) : REE_OK;
    if (status == REE_OK)
        status = ree_session_create_cache_slots(stage->session, p->n_cache_slots, err);
    ree_free(specs);
    ree_free(ports);
    return status;
}

static enum ree_status make_stage(struct ree_pipeline *p, size_t number, uint64_t context,
                                  struct ree_error *err) {
    struct ree_pipeline_stage *stage = &p->stages[number];
    struct ree_partition_options options = ree_pipeline_plan_options(p, context);
    size_t always[1], n_always = 0;
    for (size_t i = 0; p->positions_input != REE_NO_INPUT && i < p->n_kv_caches; i++)
        if (p->owner[i] == number) n_always = 1;
    if (n_always) always[0] = p->graph_inputs[p->positions_input];
    REE_TRY(ree_partition_extract(p->model->graph, &options, &p->partition, number, always,
                                  n_always, &stage->graph, err));
    REE_TRY(ree_model_of_stage(&stage->graph, p->model, &stage->model, err));
    REE_TRY(connect(stage, number, err));
    REE_TRY(ree_session_create(stage->model, p->workers[stage->device].device, &p->session,
                               &stage->session, err));
    return declare_kv_caches(stage, number, err);
}

static enum ree_status make_stages(struct ree_pipeline *p, const struct ree_pipeline_options *o,
                                   struct ree_error *err) {
    p->stages = ree_alloc_zeroed(p->n_stages, sizeof *p->stages);
    if (!p->stages) return ree_no_memory(err);
    for (size_t i = 0; i < p->n_stages; i++) {
        p->stages[i].pipeline = p;
        p->stages[i].device = i % p->n_workers;
    }
    p->first = o->n_local ? o->first : 0;
    p->n_local = o->n_local ? o->n_local : p->n_stages;
    if (o->n_ranks > p->n_stages)
        return ree_fail(err, REE_INVALID, "%zu stages are too few for %u ranks", p->n_stages,
                        o->n_ranks);
    if (o->n_ranks > 1)
        ree_partition_share(p->n_stages, o->n_ranks, o->rank, &p->first, &p->n_local);
    if (p->first >= p->n_stages || p->n_local > p->n_stages - p->first)
        return ree_fail(err, REE_INVALID, "%zu stages from stage %zu on, of %zu", p->n_local,
                        p->first, p->n_stages);
    if (!p->divided) {
        struct ree_pipeline_stage *stage = &p->stages[0];
        REE_TRY(
            ree_session_create(p->model, p->workers[0].device, &p->session, &stage->session, err));
        if (p->n_kv_caches)
            REE_TRY(ree_session_declare_kv_caches(stage->session, p->specs, p->n_kv_caches,
                                                  p->positions_input, err));
        return ree_session_create_cache_slots(stage->session, p->n_cache_slots, err);
    }
    for (size_t i = p->first; i < p->first + p->n_local; i++)
        REE_TRY(make_stage(p, i, o->context, err));
    return REE_OK;
}

// The whole pipeline

// These functions serialise the reports of sessions in several threads. The sessions call them as
// callbacks, in the caller's floating-point environment.
static bool report_progress(void *user, const char *what, uint64_t done, uint64_t total) {
    struct ree_pipeline *p = user;
    pthread_mutex_lock(&p->reporting);
    bool goes_on = p->progress.report(p->progress.user, what, done, total);
    pthread_mutex_unlock(&p->reporting);
    return goes_on;
}

static void report_program(void *user, const char *what, const char *text) {
    struct ree_pipeline *p = user;
    pthread_mutex_lock(&p->reporting);
    p->on_program(p->program_user, what, text);
    pthread_mutex_unlock(&p->reporting);
}

static void report_kernel(void *user, const struct ree_kernel *kernel) {
    struct ree_pipeline *p = user;
    pthread_mutex_lock(&p->reporting);
    p->on_kernel(p->program_user, kernel);
    pthread_mutex_unlock(&p->reporting);
}

static enum ree_status begin(struct ree_pipeline *p, struct ree_device *const *devices,
                             size_t n_devices, struct ree_error *err) {
    p->workers = ree_alloc_zeroed(n_devices, sizeof *p->workers);
    p->jobs = ree_alloc_zeroed(p->n_cache_slots, sizeof *p->jobs);
    p->batches = ree_alloc_zeroed(p->n_cache_slots, sizeof *p->batches);
    p->positions_elsewhere = ree_alloc_zeroed(p->n_cache_slots, sizeof *p->positions_elsewhere);
    if (!p->workers || !p->jobs || !p->batches || !p->positions_elsewhere)
        return ree_no_memory(err);
    // With different operation sets, no operation set would describe the bits of a run.
    for (size_t i = 1; i < n_devices; i++)
        if (devices[i]->operation_set != devices[0]->operation_set)
            return ree_fail(err, REE_INVALID,
                            "the devices are opened with different operation sets: %s with '%s', "
                            "%s with '%s'",
                            devices[0]->name, ree_operation_set_name(devices[0]->operation_set),
                            devices[i]->name, ree_operation_set_name(devices[i]->operation_set));
    for (size_t i = 0; i < n_devices; i++) {
        p->workers[i].pipeline = p;
        p->workers[i].device = devices[i];
        pthread_mutex_init(&p->workers[i].lock, NULL);
    }
    p->n_workers = n_devices;
    return REE_OK;
}

enum ree_status ree_pipeline_create(struct ree_model *model, struct ree_device *const *devices,
                                    size_t n_devices, const struct ree_pipeline_options *options,
                                    const struct ree_kv_cache_spec *kv_caches, size_t n_kv_caches,
                                    size_t positions_input, struct ree_pipeline **out,
                                    struct ree_error *err) {
    struct ree_error local;
    const struct ree_pipeline_options defaults = {0};
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    if (!options) options = &defaults;
    *out = NULL;
    if (n_devices == 0)
        return ree_fail(err, REE_INVALID, "a pipeline requires at least one device");
    struct ree_pipeline *p = ree_alloc_zeroed(1, sizeof *p);
    if (!p) return ree_no_memory(err);
    p->model = model;
    p->positions_input = positions_input;
    p->n_stages = options->n_stages ? options->n_stages : 1;
    p->n_cache_slots = options->n_cache_slots ? options->n_cache_slots : 1;
    p->max_memory = options->max_memory;
    p->session = options->session;
    p->session.size = sizeof p->session; // the caller may have left it zero
    pthread_mutex_init(&p->reporting, NULL);
    if (n_devices > 1) {
        p->progress = options->session.progress;
        p->on_program = options->session.on_program;
        p->on_kernel = options->session.on_kernel;
        p->program_user = options->session.user;
        if (p->progress.report) p->session.progress = (struct ree_progress){report_progress, p};
        if (p->on_program) p->session.on_program = report_program;
        if (p->on_kernel) p->session.on_kernel = report_kernel;
        p->session.user = p;
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    enum ree_status status = begin(p, devices, n_devices, err);
    if (status == REE_OK) status = ree_pipeline_set_kv_caches(p, kv_caches, n_kv_caches, err);
    if (status == REE_OK) status = ree_pipeline_divide(p, options, err);
    if (status == REE_OK) status = make_stages(p, options, err);
    if (status == REE_OK) status = ree_pipeline_stream(p, err);
    if (status == REE_OK) status = ree_pipeline_start(p, err);
    if (status != REE_OK) {
        ree_pipeline_destroy(p);
        return status;
    }
    *out = p;
    return REE_OK;
}

enum ree_status ree_pipeline_open(struct ree_model *model, struct ree_device *const *devices,
                                  size_t n_devices, const struct ree_stages_options *given,
                                  struct ree_pipeline **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_stages_options options;
    *out = NULL;
    REE_TRY(ree_options_read(&options, sizeof options, given, "ree_stages_options", err));
    struct ree_pipeline_options own = {.n_stages = options.n_partitions,
                                       .plan_path = options.partition_plan,
                                       .max_memory = options.max_device_memory};
    REE_TRY(ree_options_read(&own.session, sizeof own.session, options.session,
                             "ree_session_options", err));
    return ree_pipeline_create(model, devices, n_devices, &own, NULL, 0, REE_NO_INPUT, out, err);
}

void ree_pipeline_destroy(struct ree_pipeline *p) {
    REE_FLOAT_ENV_API();
    if (!p) return;
    ree_pipeline_stop(p);
    for (size_t i = 0; p->stages && i < p->n_stages; i++) {
        struct ree_pipeline_stage *stage = &p->stages[i];
        ree_session_destroy(stage->session);
        if (stage->model) ree_model_destroy(stage->model); // also destroys the stage's graph
        ree_free(stage->ranges);
        ree_free(stage->source);
        ree_free(stage->target);
        ree_free(stage->passes);
        ree_free(stage->kv_cache_of);
    }
    ree_free(p->stages);
    for (size_t i = 0; i < p->n_workers; i++)
        pthread_mutex_destroy(&p->workers[i].lock);
    ree_free(p->workers);
    ree_free(p->jobs);
    ree_free(p->batches);
    ree_free(p->positions_elsewhere);
    if (p->divided) ree_partition_finish(&p->partition);
    ree_free(p->specs);
    ree_free(p->graph_kv_caches);
    ree_free(p->owner);
    ree_free(p->graph_inputs);
    ree_free(p->model_inputs);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->reporting);
    ree_free(p);
}

const struct ree_model *ree_pipeline_model(const struct ree_pipeline *p) {
    return p->model;
}

enum ree_operation_set ree_pipeline_operation_set(const struct ree_pipeline *p) {
    return p->workers[0].device->operation_set;
}

size_t ree_pipeline_n_stages(const struct ree_pipeline *p) {
    return p->n_stages;
}

const char *ree_pipeline_stage_end(const struct ree_pipeline *p, size_t stage) {
    if (stage + 1 >= p->n_stages) return NULL;
    return ree_partition_end(p->model->graph, &p->partition, stage);
}

const struct ree_partition *ree_pipeline_partition(const struct ree_pipeline *p) {
    return p->divided ? &p->partition : NULL;
}

struct ree_session *ree_pipeline_session(struct ree_pipeline *p) {
    return p->divided ? NULL : p->stages[0].session;
}
