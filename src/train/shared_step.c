#include "train/shared_step.h"

#include <string.h>

#include "base/memory.h"
#include "session/model.h"

// The first sample of a rank. Ranks have equal numbers of samples, or one more.
static int64_t first_sample(int64_t batch, uint32_t rank, uint32_t n_ranks) {
    return (int64_t)((uint64_t)batch * rank / n_ranks);
}

static enum ree_status open_graph(struct ree_shared_step *s, struct ree_graph **graph,
                                  struct ree_shared_graph *out, struct ree_error *err) {
    const struct ree_training *t = s->training;
    const struct ree_session_options options = {
        .size = sizeof options, .no_fuse = t->options.no_fuse, .progress = t->options.progress};
    struct ree_graph *taken = *graph;
    *graph = NULL;
    REE_TRY(ree_model_from_graph(taken, NULL, &out->model, err));
    return ree_session_create(out->model, t->device, &options, &out->session, err);
}

static void close_graph(struct ree_shared_graph *graph) {
    ree_session_destroy(graph->session);
    ree_model_destroy(graph->model);
}

static enum ree_status divide(struct ree_shared_step *s, struct ree_error *err) {
    const struct ree_training *t = s->training;
    const struct ree_step_roles *roles = &t->step;
    const struct ree_value **data = ree_alloc_zeroed(roles->n_data + 1, sizeof *data);
    if (!data) return ree_no_memory(err);
    for (size_t i = 0; i < roles->n_data; i++)
        data[i] = t->model->input_values[roles->data[i]];
    const struct ree_share_options options = {.data = data,
                                              .n_data = roles->n_data,
                                              .batch = roles->batch_size,
                                              .begin = s->begin,
                                              .end = s->end};
    enum ree_status status = ree_model_infer_always(t->model->graph, err);
    if (status == REE_OK) status = ree_share_make(t->model->graph, &options, &s->share, err);
    ree_free(data);
    return status;
}

// Finds the training's input for each input of the graph.
static enum ree_status find_inputs(struct ree_shared_step *s, struct ree_error *err) {
    const struct ree_training *t = s->training;
    const struct ree_graph *graph = t->model->graph;
    s->input_of = ree_alloc_zeroed(graph->n_inputs + 1, sizeof *s->input_of);
    if (!s->input_of) return ree_no_memory(err);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        s->input_of[i] = SIZE_MAX;
        for (size_t k = 0; k < t->n_inputs; k++) {
            const char *name =
                k < t->n_own_inputs ? t->inputs[k].name : t->states[k - t->n_own_inputs].name;
            if (strcmp(name, graph->inputs[i]->name) == 0) s->input_of[i] = k;
        }
    }
    return REE_OK;
}

static enum ree_status open_parts(struct ree_shared_step *s, struct ree_error *err) {
    struct ree_share *share = &s->share;
    size_t most = 4, most_sums = 0; // `most`: of the inputs and outputs of a graph
    s->parts = ree_alloc_zeroed(share->n_parts, sizeof *s->parts);
    s->by_index = ree_alloc_zeroed(share->n_parts, sizeof *s->by_index);
    s->slots = ree_alloc_zeroed(share->n_slots + 1, sizeof *s->slots);
    if (!s->parts || !s->by_index || !s->slots) return ree_no_memory(err);
    for (size_t i = 0; i < share->n_parts; i++) {
        struct ree_share_part *part = &share->parts[i];
        s->by_index[i] = ree_alloc_zeroed(part->n_sums + 1, sizeof *s->by_index[i]);
        if (!s->by_index[i]) return ree_no_memory(err);
        for (size_t k = 0; k < part->n_sums; k++)
            if (part->sums[k].steps)
                REE_TRY(open_graph(s, &part->sums[k].steps->graph, &s->by_index[i][k], err));
        REE_TRY(open_graph(s, &part->graph, &s->parts[i], err));
        if (part->n_inputs > most) most = part->n_inputs;
        if (part->n_outputs > most) most = part->n_outputs;
        if (part->n_sums > most_sums) most_sums = part->n_sums;
    }
    s->in = ree_alloc_zeroed(most, sizeof *s->in);
    s->out = ree_alloc_zeroed(most, sizeof *s->out);
    s->ends = ree_alloc_zeroed(most_sums + 1, sizeof *s->ends);
    return s->in && s->out && s->ends ? REE_OK : ree_no_memory(err);
}

static enum ree_status init(struct ree_shared_step *s, struct ree_error *err) {
    const int64_t batch = s->training->step.batch_size;
    if (batch < (int64_t)s->n_ranks)
        return ree_fail(err, REE_INVALID,
                        "a batch of %lld samples cannot be divided among %u ranks",
                        (long long)batch, s->n_ranks);
    s->begin = first_sample(batch, s->rank, s->n_ranks);
    s->end = first_sample(batch, s->rank + 1, s->n_ranks);
    REE_TRY(divide(s, err));
    REE_TRY(find_inputs(s, err));
    REE_TRY(open_parts(s, err));
    REE_TRY(open_graph(s, &s->share.products.graph, &s->products, err));
    return open_graph(s, &s->share.rows.graph, &s->rows, err);
}

enum ree_status ree_shared_step_create(struct ree_training *training,
                                       struct ree_transport *transport,
                                       struct ree_shared_step **out, struct ree_error *err) {
    *out = NULL;
    struct ree_shared_step *s = ree_alloc_zeroed(1, sizeof *s);
    if (!s) return ree_no_memory(err);
    s->training = training;
    s->transport = transport;
    s->rank = ree_transport_rank(transport);
    s->n_ranks = ree_transport_n_ranks(transport);
    enum ree_status status = init(s, err);
    if (status != REE_OK) {
        ree_shared_step_destroy(s);
        return status;
    }
    *out = s;
    return REE_OK;
}

void ree_shared_step_destroy(struct ree_shared_step *s) {
    if (!s) return;
    for (size_t i = 0; s->parts && s->by_index && i < s->share.n_parts; i++) {
        close_graph(&s->parts[i]);
        for (size_t k = 0; s->by_index[i] && k < s->share.parts[i].n_sums; k++)
            close_graph(&s->by_index[i][k]);
        ree_free(s->by_index[i]);
    }
    close_graph(&s->products);
    close_graph(&s->rows);
    for (size_t i = 0; s->slots && i < s->share.n_slots; i++)
        ree_tensor_finish(&s->slots[i]);
    ree_free(s->parts);
    ree_free(s->by_index);
    ree_free(s->slots);
    ree_free(s->input_of);
    ree_free(s->in);
    ree_free(s->out);
    ree_free(s->ends);
    ree_share_finish(&s->share);
    ree_free(s);
}

// The value of an input of the step for this rank: of the batch only the own samples.
static struct ree_tensor input_of_step(const struct ree_shared_step *s, size_t index) {
    const struct ree_training *t = s->training;
    struct ree_tensor value = t->inputs[index];
    if (index >= t->step.n_data) return value;
    size_t each = value.nbytes / (size_t)value.dims[0];
    value.data = (char *)value.data + each * (size_t)s->begin;
    value.dims[0] = s->end - s->begin;
    value.nbytes = each * (size_t)value.dims[0];
    return value;
}

enum ree_status ree_shared_graph_run(struct ree_shared_step *s, struct ree_shared_graph *graph,
                                     const struct ree_share_part *part, struct ree_error *err) {
    const struct ree_graph *step = s->training->model->graph;
    for (size_t i = 0; i < part->n_inputs; i++) {
        const struct ree_share_port *port = &part->inputs[i];
        if (port->is_input && s->input_of[port->index] == SIZE_MAX)
            return ree_fail(err, REE_UNSUPPORTED, "the input '%s' is not part of a training",
                            step->inputs[port->index]->name);
        s->in[i] =
            port->is_input ? input_of_step(s, s->input_of[port->index]) : s->slots[port->index];
        s->in[i].name = (char *)(uintptr_t)port->name; // only read
    }
    REE_TRY(ree_session_run(graph->session, s->in, part->n_inputs, s->out, err));
    for (size_t i = 0; i < part->n_outputs; i++) {
        struct ree_tensor *slot = &s->slots[part->outputs[i].index];
        ree_tensor_finish(slot);
        *slot = s->out[i];
    }
    ree_transport_working(s->transport);
    return REE_OK;
}

// Moves the outputs of the step from their slots.
static enum ree_status take_outputs(struct ree_shared_step *s, struct ree_tensor *outputs,
                                    struct ree_error *err) {
    const struct ree_model *model = s->training->model;
    for (size_t i = 0; i < model->n_outputs; i++) {
        struct ree_tensor *slot = &s->slots[s->share.outputs[i]];
        bool is_last = true;
        for (size_t k = i + 1; k < model->n_outputs; k++)
            is_last &= s->share.outputs[k] != s->share.outputs[i];
        REE_TRY(ree_tensor_init(&outputs[i], model->outputs[i].name, slot->dtype,
                                is_last ? 0 : slot->rank, slot->dims, err));
        char *name = outputs[i].name;
        if (!is_last) {
            if (slot->nbytes) memcpy(outputs[i].data, slot->data, slot->nbytes);
            continue;
        }
        ree_free(outputs[i].data);
        ree_free(slot->name);
        outputs[i] = *slot;
        outputs[i].name = name;
        memset(slot, 0, sizeof *slot);
    }
    return REE_OK;
}

static enum ree_status run_parts(struct ree_shared_step *s, struct ree_error *err) {
    for (size_t i = 0; i < s->share.n_parts; i++) {
        const struct ree_share_part *part = &s->share.parts[i];
        if (part->n_outputs) REE_TRY(ree_shared_graph_run(s, &s->parts[i], part, err));
        REE_TRY(ree_shared_sums_run(s, i, err));
        for (size_t k = 0; k < s->share.n_slots; k++)
            if (s->share.last_use[k] == i) ree_tensor_finish(&s->slots[k]);
    }
    return REE_OK;
}

enum ree_status ree_shared_step_run(struct ree_shared_step *s, struct ree_tensor *outputs,
                                    struct ree_error *err) {
    const struct ree_model *model = s->training->model;
    s->n_products = s->share.n_products;
    enum ree_status status = run_parts(s, err);
    if (status == REE_OK) status = take_outputs(s, outputs, err);
    for (size_t i = 0; status != REE_OK && i < model->n_outputs; i++)
        ree_tensor_finish(&outputs[i]);
    return status;
}
