#include "dispute/recompute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/model_header.h"
#include "trace/value_index.h"
#include "base/memory.h"
#include "base/status.h"

bool ree_recompute_is_given(const struct ree_value *value) {
    // Before IR version 4 every weight had to be listed as an input (session/model.c), so in such a
    // graph an input with data is a constant.
    return value->producer || !value->data || (value->is_input && value->graph->ir_version >= 4);
}

// Turns a value that a node computed, or that was an input, into graph input `i`, of the tensor's
// type and shape. Values within a graph may have equal names; names of inputs must differ.
static bool make_input(struct ree_value *value, uint32_t i, const struct ree_tensor *tensor) {
    const size_t size = strlen(value->name) + 16;
    char *name = ree_arena_alloc(value->graph->arena, size);
    if (!name) return false;
    snprintf(name, size, "%u:%s", i, value->name);
    value->name = name;
    value->producer = NULL;
    value->is_input = true;
    value->is_output = false;
    value->data = NULL;
    value->nbytes = 0;
    value->kind = tensor->kind;
    value->has_two_types = false;
    value->dtype = tensor->dtype;
    value->has_shape = true;
    value->rank = tensor->rank;
    value->nullable = false;
    memcpy(value->dims, tensor->dims, sizeof value->dims);
    memset(value->symbols, 0, sizeof value->symbols);
    return true;
}

// Reduces the graph to one node, the values that it reads and the values that it computes.
// Constants, subgraphs and the names of other values are unchanged. `places` is the index of
// `reads`.
static enum ree_status cut_out(struct ree_graph *graph, size_t index,
                               struct ree_value *const *reads, uint32_t n,
                               const struct ree_value_index *places,
                               const struct ree_tensor *inputs, struct ree_error *err) {
    struct ree_node *node = graph->nodes[index];
    size_t capacity = (size_t)n + node->n_outputs + 1;
    struct ree_value **values =
        ree_arena_alloc_array(graph->arena, capacity, sizeof(struct ree_value *));
    struct ree_value **given = ree_arena_alloc_array(graph->arena, capacity, sizeof *given);
    struct ree_value **made = ree_arena_alloc_array(graph->arena, capacity, sizeof *made);
    if (!values || !given || !made) return ree_no_memory(err);
    size_t n_values = 0, n_given = 0, n_made = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct ree_value *value = reads[i];
        if (!value || ree_value_index_find(places, value) != i) continue;
        values[n_values++] = value;
        if (ree_recompute_is_given(value)) {
            if (!make_input(value, i, &inputs[i])) return ree_no_memory(err);
            given[n_given++] = value;
        } else {
            value->is_input = value->is_output = false;
        }
    }
    for (size_t i = 0; i < node->n_outputs; i++) {
        struct ree_value *value = node->outputs[i];
        if (!value) continue;
        value->is_output = true;
        values[n_values++] = made[n_made++] = value;
    }
    for (size_t i = 0; i < n_values; i++)
        values[i]->id = (uint32_t)i;
    graph->values = values;
    graph->n_values = graph->values_capacity = n_values;
    graph->inputs = given;
    graph->n_inputs = n_given;
    graph->outputs = made;
    graph->n_outputs = n_made;
    graph->nodes[0] = node;
    graph->n_nodes = 1;
    node->id = 0;
    ree_graph_count_uses(graph);
    return REE_OK;
}

static enum ree_status run(struct ree_model *model, const struct ree_tensor *inputs, size_t n,
                           struct ree_tensor *outputs, struct ree_error *err) {
    struct ree_device *device = NULL;
    struct ree_session *session = NULL;
    REE_TRY(ree_device_open("cpu", NULL, &device, err));
    enum ree_status status = ree_session_create(model, device, NULL, &session, err);
    if (status == REE_OK) status = ree_session_run(session, inputs, n, outputs, err);
    ree_session_destroy(session);
    ree_device_destroy(device);
    return status;
}

// Fills `out` with the tensors of the model's inputs, in the model's order and with their names.
// Returns their number.
static size_t name_inputs(const struct ree_model *model, const struct ree_value_index *places,
                          const struct ree_tensor *inputs, struct ree_tensor *out) {
    for (size_t k = 0; k < model->n_inputs; k++) {
        const struct ree_value *value = model->input_values[k];
        size_t place = ree_value_index_find(places, value);
        if (place == REE_NO_VALUE) continue;
        out[k] = inputs[place];
        out[k].name = (char *)(uintptr_t)value->name; // the session does not modify names
    }
    return model->n_inputs;
}

enum ree_status ree_recompute(struct ree_model *whole, size_t index,
                              const struct ree_tensor *inputs, uint32_t n,
                              struct ree_tensor *outputs, struct ree_error *err) {
    struct ree_graph *graph = whole->graph;
    struct ree_model *model = NULL;
    struct ree_value *const *reads;
    uint32_t n_reads;
    const struct ree_node *node = graph->nodes[index];
    size_t n_outputs = node->n_outputs, n_made = 0;
    REE_TRY(ree_trace_node_inputs(node, graph->arena, &reads, &n_reads, err));
    if (n_reads != n)
        return ree_fail(err, REE_INTERNAL, "a node that reads %u values received %u", n_reads, n);
    bool *omitted = ree_alloc_zeroed(n_outputs + 1, sizeof *omitted);
    struct ree_tensor *named = ree_alloc_zeroed((size_t)n + 1, sizeof *named);
    struct ree_tensor *made = ree_alloc_zeroed(n_outputs + 1, sizeof *made);
    struct ree_value_index places = {0};
    bool ok = ree_value_index_init(&places, reads, n) && omitted && named && made;
    enum ree_status status = ok ? REE_OK : ree_no_memory(err);
    for (size_t i = 0; i < n_outputs && status == REE_OK; i++)
        omitted[i] = !node->outputs[i];
    if (status == REE_OK) status = cut_out(graph, index, reads, n, &places, inputs, err);
    if (status == REE_OK) {
        whole->graph = NULL; // the new model takes ownership, also on failure
        status = ree_model_from_graph(graph, NULL, &model, err);
    }
    if (status == REE_OK)
        status = run(model, named, name_inputs(model, &places, inputs, named), made, err);
    memset(outputs, 0, n_outputs * sizeof *outputs);
    for (size_t i = 0; i < n_outputs && status == REE_OK; i++)
        if (!omitted[i]) outputs[i] = made[n_made++];
    ree_model_destroy(model);
    ree_value_index_finish(&places);
    ree_free(omitted);
    ree_free(named);
    ree_free(made);
    return status;
}
