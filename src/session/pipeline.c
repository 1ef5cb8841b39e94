// Making a pipeline: the plan, and a session for each stage.
#include "session/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "graph/partition/plan_file.h"
#include "session/pipeline_internal.h"

static enum ree_status no_memory(struct ree_error *err) {
    return ree_fail(err, REE_NO_MEMORY, "out of memory");
}

void ree_parcel_finish(struct ree_parcel *parcel) {
    for (size_t i = 0; parcel->tensors && i < parcel->n; i++)
        ree_tensor_finish(&parcel->tensors[i]);
    free(parcel->tensors);
    *parcel = (struct ree_parcel){0};
}

// The number of a model's input among its graph's, which may have weights among them.
static size_t graph_input(const struct ree_model *model, size_t input) {
    size_t i = 0;
    while (model->graph->inputs[i] != model->input_values[input])
        i++;
    return i;
}

static size_t model_input(const struct ree_model *model, const struct ree_value *value) {
    size_t i = 0;
    while (i < model->n_inputs && model->input_values[i] != value)
        i++;
    return i;
}

static enum ree_status take_states(struct ree_pipeline *p, const struct ree_state_spec *states,
                                   size_t n, struct ree_error *err) {
    p->specs = calloc(n + 1, sizeof *p->specs);
    p->part_states = calloc(n + 1, sizeof *p->part_states);
    p->owner = calloc(n + 1, sizeof *p->owner);
    if (!p->specs || !p->part_states || !p->owner) return no_memory(err);
    p->n_states = n;
    for (size_t i = 0; i < n; i++) {
        p->specs[i] = states[i];
        if (states[i].input >= p->model->n_inputs || states[i].output >= p->model->n_outputs)
            return ree_fail(err, REE_INVALID, "a state of port %zu or %zu, which the model lacks",
                            states[i].input, states[i].output);
        p->part_states[i].input = graph_input(p->model, states[i].input);
        p->part_states[i].output = states[i].output;
    }
    return REE_OK;
}

static struct ree_partition_options plan_options(const struct ree_pipeline *p, uint64_t context) {
    return (struct ree_partition_options){.n_stages = p->n_stages,
                                          .n_states = p->n_states,
                                          .states = p->part_states,
                                          .context = context};
}

static enum ree_status divide(struct ree_pipeline *p, const struct ree_pipeline_options *o,
                              const char *const *ends, struct ree_error *err) {
    struct ree_partition_options options = plan_options(p, o->context);
    ree_model_infer(p->model->graph);
    enum ree_status status;
    if (ends)
        status = ree_partition_from_cuts(p->model->graph, &options, ends, &p->partition, err);
    else if (p->max_memory)
        status = ree_pipeline_fit(p, &options, o->n_stages > 0, err);
    else
        status = ree_partition_plan(p->model->graph, &options, &p->partition, err);
    if (status != REE_OK) {
        if (p->model->graph->file[0]) ree_fail_prefix(err, "%s", p->model->graph->file);
        return status;
    }
    p->divided = true;
    p->n_stages = p->partition.n_stages;
    for (size_t i = 0; i < p->n_states; i++)
        p->owner[i] =
            ree_partition_stage_of_state(p->model->graph, &p->partition, &p->part_states[i]);
    return REE_OK;
}

static enum ree_status divide_as_written(struct ree_pipeline *p,
                                         const struct ree_pipeline_options *o,
                                         struct ree_error *err) {
    char sha256[65], **ends;
    size_t n;
    REE_TRY(ree_model_graph_sha256(p->model, sha256, err));
    REE_TRY(ree_plan_file_read(o->plan_file, sha256, &ends, &n, err));
    enum ree_status status = REE_OK;
    if (o->n_stages && o->n_stages != n + 1)
        status = ree_fail(err, REE_INVALID, "%s: has %zu partitions, not %zu", o->plan_file, n + 1,
                          o->n_stages);
    p->n_stages = n + 1;
    if (status == REE_OK && n) status = divide(p, o, (const char *const *)ends, err);
    ree_plan_ends_free(ends, n);
    return status;
}

// Stages

void ree_pipeline_share(size_t n_stages, uint32_t n_ranks, uint32_t rank, size_t *out_first,
                        size_t *out_n) {
    size_t each = n_stages / n_ranks, more = n_stages % n_ranks;
    *out_first = rank * each + (rank < more ? rank : more);
    *out_n = each + (rank < more);
}

static size_t place_in(const struct ree_cut *cut, const struct ree_value *value) {
    for (size_t i = 0; cut && i < cut->n_values; i++)
        if (cut->values[i] == value) return i;
    return REE_NO_PLACE;
}

// Where the stage's inputs come from and its outputs go to.
static enum ree_status connect(struct ree_pipeline_stage *stage, size_t number,
                               struct ree_error *err) {
    const struct ree_pipeline *p = stage->pipeline;
    const struct ree_stage_graph *piece = &stage->piece;
    const struct ree_cut *before = number ? &p->partition.cuts[number - 1] : NULL;
    const struct ree_cut *behind = number + 1 < p->n_stages ? &p->partition.cuts[number] : NULL;
    size_t n_behind = behind ? behind->n_values : 0;
    stage->source = calloc(piece->n_inputs + 1, sizeof *stage->source);
    stage->whole_of = calloc(piece->n_outputs + 1, sizeof *stage->whole_of);
    stage->passes = calloc(n_behind + 1, sizeof *stage->passes);
    if (!stage->source || !stage->whole_of || !stage->passes) return no_memory(err);
    for (size_t i = 0; i < piece->n_inputs; i++) {
        const struct ree_stage_input *input = &piece->inputs[i];
        stage->source[i] =
            input->is_cut ? place_in(before, input->value) : model_input(p->model, input->value);
        if (stage->source[i] == (input->is_cut ? REE_NO_PLACE : p->model->n_inputs))
            return ree_fail(err, REE_INTERNAL, "stage %zu lacks '%s'", number, input->value->name);
    }
    for (size_t i = 0; i < n_behind; i++) {
        const struct ree_node *maker = behind->values[i]->producer;
        bool own = maker && p->partition.stage_of[maker->id] == number;
        stage->passes[i] = own ? REE_NO_PLACE : place_in(before, behind->values[i]);
        if (!own && stage->passes[i] == REE_NO_PLACE)
            return ree_fail(err, REE_INTERNAL, "'%s' cannot pass through stage %zu",
                            behind->values[i]->name, number);
    }
    for (size_t i = 0; i < piece->n_outputs; i++)
        stage->whole_of[i] =
            i < piece->n_whole ? piece->whole_outputs[i] : place_in(behind, piece->outputs[i]);
    return REE_OK;
}

// The states of the stage by its own ports.
static enum ree_status keep_states(struct ree_pipeline_stage *stage, size_t number,
                                   struct ree_error *err) {
    const struct ree_pipeline *p = stage->pipeline;
    const struct ree_stage_graph *piece = &stage->piece;
    struct ree_state_spec *specs = calloc(p->n_states + 1, sizeof *specs);
    stage->state_of = calloc(p->n_states + 1, sizeof *stage->state_of);
    if (!specs || !stage->state_of) {
        free(specs);
        return no_memory(err);
    }
    size_t n = 0, rows_input = REE_NO_INPUT;
    for (size_t i = 0; i < piece->n_inputs; i++) {
        if (piece->inputs[i].is_cut) continue;
        if (stage->source[i] == p->rows_input) rows_input = i;
        for (size_t k = 0; k < p->n_states; k++) {
            if (p->specs[k].input != stage->source[i]) continue;
            specs[n] = p->specs[k];
            specs[n].input = i;
            specs[n].output = REE_NO_OUTPUT;
            for (size_t o = 0; p->owner[k] == number && o < piece->n_whole; o++)
                if (piece->whole_outputs[o] == p->specs[k].output) specs[n].output = o;
            stage->state_of[n++] = k;
        }
    }
    enum ree_status status =
        n ? ree_session_keep(stage->session, specs, n, rows_input, err) : REE_OK;
    if (status == REE_OK) status = ree_session_keep_sets(stage->session, p->n_sets, err);
    free(specs);
    return status;
}

static enum ree_status make_stage(struct ree_pipeline *p, size_t number, uint64_t context,
                                  struct ree_error *err) {
    struct ree_pipeline_stage *stage = &p->stages[number];
    struct ree_partition_options options = plan_options(p, context);
    size_t always[1], n_always = 0;
    for (size_t i = 0; p->rows_input != REE_NO_INPUT && i < p->n_states; i++)
        if (p->owner[i] == number) n_always = 1;
    if (n_always) always[0] = graph_input(p->model, p->rows_input);
    REE_TRY(ree_partition_extract(p->model->graph, &options, &p->partition, number, always,
                                  n_always, &stage->piece, err));
    REE_TRY(ree_model_of_stage(&stage->piece, p->model, &stage->model, err));
    REE_TRY(connect(stage, number, err));
    REE_TRY(ree_session_create(stage->model, p->workers[stage->device].device, &p->session,
                               &stage->session, err));
    return keep_states(stage, number, err);
}

static enum ree_status make_stages(struct ree_pipeline *p, const struct ree_pipeline_options *o,
                                   struct ree_error *err) {
    p->stages = calloc(p->n_stages, sizeof *p->stages);
    if (!p->stages) return no_memory(err);
    for (size_t i = 0; i < p->n_stages; i++) {
        p->stages[i].pipeline = p;
        p->stages[i].device = i % p->n_workers;
    }
    p->first = o->n_local ? o->first : 0;
    p->n_local = o->n_local ? o->n_local : p->n_stages;
    if (o->n_ranks > p->n_stages)
        return ree_fail(err, REE_INVALID, "%zu partitions are too few for %u ranks", p->n_stages,
                        o->n_ranks);
    if (o->n_ranks > 1)
        ree_pipeline_share(p->n_stages, o->n_ranks, o->rank, &p->first, &p->n_local);
    if (p->first >= p->n_stages || p->n_local > p->n_stages - p->first)
        return ree_fail(err, REE_INVALID, "stages %zu to %zu of %zu", p->first,
                        p->first + p->n_local, p->n_stages);
    if (!p->divided) {
        struct ree_pipeline_stage *stage = &p->stages[0];
        REE_TRY(
            ree_session_create(p->model, p->workers[0].device, &p->session, &stage->session, err));
        if (p->n_states)
            REE_TRY(ree_session_keep(stage->session, p->specs, p->n_states, p->rows_input, err));
        return ree_session_keep_sets(stage->session, p->n_sets, err);
    }
    for (size_t i = p->first; i < p->first + p->n_local; i++)
        REE_TRY(make_stage(p, i, o->context, err));
    return REE_OK;
}

// The whole

// Sessions of several threads report to one place.
static void report_progress(void *user, const char *what, uint64_t done, uint64_t total) {
    struct ree_pipeline *p = user;
    pthread_mutex_lock(&p->reporting);
    p->on_progress(p->progress_user, what, done, total);
    pthread_mutex_unlock(&p->reporting);
}

static enum ree_status begin(struct ree_pipeline *p, struct ree_device *const *devices,
                             size_t n_devices, struct ree_error *err) {
    p->workers = calloc(n_devices, sizeof *p->workers);
    p->jobs = calloc(p->n_sets, sizeof *p->jobs);
    p->batches = calloc(p->n_sets, sizeof *p->batches);
    p->rows_elsewhere = calloc(p->n_sets, sizeof *p->rows_elsewhere);
    if (!p->workers || !p->jobs || !p->batches || !p->rows_elsewhere) return no_memory(err);
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
                                    const struct ree_state_spec *states, size_t n_states,
                                    size_t rows_input, struct ree_pipeline **out,
                                    struct ree_error *err) {
    struct ree_error local;
    const struct ree_pipeline_options defaults = {0};
    if (!err) err = &local; // prefixes need the message that they prefix
    if (!options) options = &defaults;
    *out = NULL;
    if (n_devices == 0) return ree_fail(err, REE_INVALID, "a pipeline over no devices");
    struct ree_pipeline *p = calloc(1, sizeof *p);
    if (!p) return no_memory(err);
    p->model = model;
    p->rows_input = rows_input;
    p->n_stages = options->n_stages ? options->n_stages : 1;
    p->n_sets = options->n_sets ? options->n_sets : 1;
    p->max_memory = options->max_memory;
    p->session = options->session;
    pthread_mutex_init(&p->reporting, NULL);
    if (n_devices > 1 && options->session.on_progress) {
        p->on_progress = options->session.on_progress;
        p->progress_user = options->session.user;
        p->session.on_progress = report_progress;
        p->session.user = p;
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    enum ree_status status = begin(p, devices, n_devices, err);
    if (status == REE_OK) status = take_states(p, states, n_states, err);
    if (status == REE_OK && options->plan_file)
        status = divide_as_written(p, options, err);
    else if (status == REE_OK && (p->n_stages > 1 || p->max_memory))
        status = divide(p, options, options->ends, err);
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

void ree_pipeline_destroy(struct ree_pipeline *p) {
    if (!p) return;
    ree_pipeline_stop(p);
    for (size_t i = 0; p->stages && i < p->n_stages; i++) {
        struct ree_pipeline_stage *stage = &p->stages[i];
        ree_session_destroy(stage->session);
        if (stage->model) ree_model_destroy(stage->model); // with the piece
        free(stage->ranges);
        free(stage->source);
        free(stage->whole_of);
        free(stage->passes);
        free(stage->state_of);
    }
    free(p->stages);
    for (size_t i = 0; i < p->n_workers; i++)
        pthread_mutex_destroy(&p->workers[i].lock);
    free(p->workers);
    free(p->jobs);
    free(p->batches);
    free(p->rows_elsewhere);
    if (p->divided) ree_partition_finish(&p->partition);
    free(p->specs);
    free(p->part_states);
    free(p->owner);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->reporting);
    free(p);
}

size_t ree_pipeline_n_stages(const struct ree_pipeline *p) {
    return p->n_stages;
}

const struct ree_partition *ree_pipeline_partition(const struct ree_pipeline *p) {
    return p->divided ? &p->partition : NULL;
}

struct ree_session *ree_pipeline_session(struct ree_pipeline *p) {
    return p->divided ? NULL : p->stages[0].session;
}
