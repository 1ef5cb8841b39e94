// Loads a model: reads it, counts and checks its operators, runs the passes, describes the ports.
#include "session/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/progress.h"
#include "device/device.h"
#include "graph/load.h"
#include "graph/lower/core/lower.h"
#include "graph/partition/partition.h"

static void describe_port(struct ree_port *port, const struct ree_value *value) {
    port->name = value->name;
    port->kind = value->kind;
    port->nullable = value->nullable;
    port->dtype = value->dtype;
    port->has_shape = value->has_shape;
    port->rank = value->rank;
    memcpy(port->dims, value->dims, sizeof port->dims);
    memcpy(port->symbols, value->symbols, sizeof port->symbols);
}

static const char *name_of_port(const void *ports, size_t i) {
    return ((const struct ree_port *)ports)[i].name;
}

static enum ree_status describe_ports(struct ree_model *model, struct ree_error *err) {
    struct ree_graph *graph = model->graph;
    model->inputs = ree_alloc_zeroed(graph->n_inputs + 1, sizeof *model->inputs);
    model->input_values = ree_alloc_zeroed(graph->n_inputs + 1, sizeof *model->input_values);
    model->outputs = ree_alloc_zeroed(graph->n_outputs + 1, sizeof *model->outputs);
    if (!model->inputs || !model->input_values || !model->outputs) return ree_no_memory(err);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        // Before IR version 4, every weight had to be listed as an input. Since then, an input with
        // an initializer has a default value.
        if (graph->inputs[i]->data && graph->ir_version < 4) continue;
        describe_port(&model->inputs[model->n_inputs], graph->inputs[i]);
        model->inputs[model->n_inputs].optional = graph->inputs[i]->data != NULL;
        model->input_values[model->n_inputs++] = graph->inputs[i];
    }
    for (size_t i = 0; i < graph->n_outputs; i++)
        describe_port(&model->outputs[model->n_outputs++], graph->outputs[i]);
    if (!ree_name_index_init(&model->input_names, model->n_inputs, name_of_port, model->inputs) ||
        !ree_name_index_init(&model->output_names, model->n_outputs, name_of_port, model->outputs))
        return ree_no_memory(err);
    return REE_OK;
}

struct counted_node {
    const struct ree_node *node;
    size_t order; // among all nodes
};

static int by_operator(const void *a, const void *b) {
    const struct counted_node *x = a, *y = b;
    int order = strcmp(x->node->domain, y->node->domain);
    if (!order) order = strcmp(x->node->op_type, y->node->op_type);
    return order ? order : x->order < y->order ? -1 : 1;
}

// Lists the nodes of the graph and its subgraphs. `list` NULL: only counts them.
static void list_nodes(const struct ree_graph *graph, struct counted_node *list, size_t *inout_n) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct ree_node *node = graph->nodes[i];
        if (list) list[*inout_n] = (struct counted_node){node, *inout_n};
        ++*inout_n;
        for (size_t a = 0; a < node->n_attrs; a++)
            if (node->attrs[a].kind == REE_ATTR_GRAPH)
                list_nodes(node->attrs[a].graph, list, inout_n);
    }
}

// Fills model->op_counts, sorted by domain and operator. An operator is supported if its first node
// is.
static enum ree_status count_operators(struct ree_model *model, struct ree_error *err) {
    size_t n = 0;
    list_nodes(model->graph, NULL, &n);
    if (n == 0) return REE_OK;
    struct counted_node *list = ree_alloc_zeroed(n, sizeof *list);
    model->op_counts = ree_alloc_zeroed(n, sizeof *model->op_counts);
    if (!list || !model->op_counts) {
        ree_free(list);
        return ree_no_memory(err);
    }
    n = 0;
    list_nodes(model->graph, list, &n);
    qsort(list, n, sizeof *list, by_operator);
    for (size_t i = 0; i < n; i++) {
        const struct ree_node *node = list[i].node;
        struct ree_op_count *last = &model->op_counts[model->n_op_counts - (i > 0)];
        if (i == 0 || strcmp(last->domain, node->domain) || strcmp(last->op_type, node->op_type)) {
            last = &model->op_counts[model->n_op_counts++];
            last->domain = node->domain;
            last->op_type = node->op_type;
            last->supported =
                ree_op_find(node->domain, node->op_type, node->opset, &last->reason) != NULL;
        }
        last->count++;
    }
    ree_free(list);
    return REE_OK;
}

// Returns the first node without a lowering rule, in file order; NULL if there is none.
static const struct ree_node *find_unsupported(const struct ree_graph *graph, const char **reason) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct ree_node *node = graph->nodes[i], *inner = NULL;
        if (!ree_op_find(node->domain, node->op_type, node->opset, reason)) return node;
        for (size_t j = 0; j < node->n_attrs && !inner; j++)
            if (node->attrs[j].graph) inner = find_unsupported(node->attrs[j].graph, reason);
        if (inner) return inner;
    }
    return NULL;
}

// Fails if a node has no lowering rule. The message names the first such node and the reason, and
// says whether other operators are not supported either.
static enum ree_status refuse_unsupported(const struct ree_model *model, struct ree_error *err) {
    const char *reason = NULL;
    const struct ree_node *node = find_unsupported(model->graph, &reason);
    if (!node) return REE_OK;
    size_t kinds = 0;
    for (size_t i = 0; i < model->n_op_counts; i++)
        kinds += !model->op_counts[i].supported;
    char label[256];
    ree_node_label(node, label, sizeof label);
    ree_fail(err, REE_UNSUPPORTED, "%s: %s%s", label, reason,
             kinds > 1 ? " (and other operators; `ree-run inspect` lists them)" : "");
    if (model->graph->file[0]) ree_fail_prefix(err, "%s", model->graph->file);
    return REE_UNSUPPORTED;
}

static uint64_t weight_bytes(const struct ree_graph *graph) {
    uint64_t n = 0;
    for (size_t i = 0; i < graph->n_values; i++)
        if (!graph->values[i]->producer) n += graph->values[i]->nbytes;
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (size_t j = 0; j < graph->nodes[i]->n_attrs; j++)
            if (graph->nodes[i]->attrs[j].graph) n += weight_bytes(graph->nodes[i]->attrs[j].graph);
    return n;
}

// Fails if the graph uses types that ree lacks.
static enum ree_status check_types(const struct ree_graph *graph, struct ree_error *err) {
    enum ree_status status = ree_graph_check_supported(graph, err);
    if (status != REE_OK && graph->file[0]) ree_fail_prefix(err, "%s", graph->file);
    return status;
}

// Called after a pass: gives the printed graph to options->on_pass. Fails if the pass lacked
// memory, which is the only way in which a pass can fail.
static enum ree_status end_pass(const struct ree_model_options *options, const char *pass,
                                const struct ree_graph *graph, struct ree_error *err) {
    if (graph->lacked_memory) return ree_no_memory(err);
    if (!options || !options->on_pass) return REE_OK;
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    ree_graph_print(graph, &text);
    char *s = ree_strbuf_take(&text);
    if (!s) return ree_no_memory(err);
    {
        REE_FLOAT_ENV_CALLBACK();
        options->on_pass(options->user, pass, s);
    }
    ree_free(s);
    return REE_OK;
}

static enum ree_status run_passes(struct ree_model *model, const struct ree_model_options *options,
                                  struct ree_error *err) {
    struct ree_graph *graph = model->graph;
    REE_TRY(end_pass(options, "read", graph, err));
    // First, so that nodes that do not run leave nothing behind.
    ree_pass_dead_code(graph);
    ree_pass_identity(graph);
    REE_TRY(end_pass(options, "identity", graph, err));
    // Must precede folding, which would copy the weights.
    ree_pass_factors(graph);
    REE_TRY(end_pass(options, "factors", graph, err));
    ree_pass_dead_code(graph);
    REE_TRY(end_pass(options, "dead-code", graph, err));
    if (!model->no_fold) {
        REE_TRY(ree_model_fold(graph, options ? &options->progress : NULL, err));
        REE_TRY(end_pass(options, "fold", graph, err));
    }
    ree_pass_common_subexpressions(graph);
    REE_TRY(end_pass(options, "common-subexpressions", graph, err));
    ree_pass_dead_code(graph);
    REE_TRY(end_pass(options, "dead-code", graph, err));
    ree_graph_count_uses(graph);
    if (options && options->on_pass) {
        REE_TRY(ree_model_infer(graph, err));
        REE_TRY(end_pass(options, "shapes", graph, err));
    }
    return REE_OK;
}

enum ree_status ree_model_note(struct ree_model *model, bool is_problem, const char *text,
                               struct ree_error *err) {
    struct ree_model_note *grown = ree_realloc(model->notes, (model->n_notes + 1) * sizeof *grown);
    if (!grown) return ree_no_memory(err);
    model->notes = grown;
    const char *copy = ree_arena_strdup(model->graph->arena, text);
    if (!copy) return ree_no_memory(err);
    model->notes[model->n_notes++] = (struct ree_model_note){is_problem, copy};
    return REE_OK;
}

// Adds notes about errors that loading the model for a run, or its first run, would report.
static enum ree_status examine(struct ree_model *model, struct ree_error *err) {
    struct ree_error problem;
    if (ree_graph_check_supported(model->graph, &problem) != REE_OK)
        REE_TRY(ree_model_note(model, true, problem.message, err));
    return ree_model_examine(model, err);
}

// Adds the loader's notes, one per line.
static enum ree_status take_notes(struct ree_model *model, struct ree_error *err) {
    const char *notes = model->graph->notes;
    for (const char *end; notes && (end = strchr(notes, '\n')); notes = end + 1) {
        char text[1024];
        snprintf(text, sizeof text, "%.*s", (int)(end - notes), notes);
        REE_TRY(ree_model_note(model, false, text, err));
    }
    return REE_OK;
}

// Takes ownership of the graph, even on failure. If `runnable` is not set, the model is only for
// inspection: problems that would prevent a run become notes, and no passes run.
static enum ree_status make_model(struct ree_graph *graph, const struct ree_model_options *options,
                                  bool runnable, struct ree_model **out, struct ree_error *err) {
    struct ree_error local;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    struct ree_model *model = ree_alloc_zeroed(1, sizeof *model);
    if (!model) {
        ree_graph_destroy(graph);
        return ree_no_memory(err);
    }
    model->files = model->graph = graph;
    model->no_fold = options && options->no_fold;
    model->runnable = runnable;
    model->weight_bytes = weight_bytes(graph);
    enum ree_status status = ree_identity_init(&model->identity, graph, err);
    if (status == REE_OK) status = count_operators(model, err);
    if (status == REE_OK) status = take_notes(model, err);
    if (status == REE_OK && !runnable) status = examine(model, err);
    if (status == REE_OK) status = describe_ports(model, err);
    if (status == REE_OK && runnable) status = check_types(graph, err);
    if (status == REE_OK && runnable) status = refuse_unsupported(model, err);
    if (status == REE_OK && runnable) status = run_passes(model, options, err);
    model->n_values = ree_graph_number(graph);
    if (status != REE_OK) {
        ree_model_destroy(model);
        return status;
    }
    *out = model;
    return REE_OK;
}

enum ree_status ree_model_load(const char *path, const struct ree_model_options *options,
                               struct ree_model **out_model, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    *out_model = NULL;
    struct ree_graph *graph;
    struct ree_model_options own;
    REE_TRY(ree_options_read(&own, sizeof own, options, "ree_model_options", err));
    struct ree_load_options load = {.quantize_bits = own.quantize_bits,
                                    .quantize_block = own.quantize_block,
                                    .quantize_table = own.quantize_table,
                                    .activations = own.activations,
                                    .progress = own.progress};
    REE_TRY(ree_graph_load(path, &load, &graph, err));
    return make_model(graph, &own, true, out_model, err);
}

enum ree_status ree_model_load_memory(const void *bytes, size_t nbytes,
                                      const struct ree_model_options *options,
                                      struct ree_model **out_model, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    *out_model = NULL;
    struct ree_graph *graph;
    struct ree_model_options own;
    REE_TRY(ree_options_read(&own, sizeof own, options, "ree_model_options", err));
    REE_TRY(ree_graph_load_memory(bytes, nbytes, &own.progress, &graph, err));
    return make_model(graph, &own, true, out_model, err);
}

enum ree_status ree_model_from_graph(struct ree_graph *graph,
                                     const struct ree_model_options *options,
                                     struct ree_model **out_model, struct ree_error *err) {
    *out_model = NULL;
    return make_model(graph, options, true, out_model, err);
}

enum ree_status ree_model_of_stage(const struct ree_stage_graph *stage,
                                   const struct ree_model *whole, struct ree_model **out_model,
                                   struct ree_error *err) {
    *out_model = NULL;
    struct ree_model *model = ree_alloc_zeroed(1, sizeof *model);
    if (!model) {
        ree_graph_destroy(stage->graph);
        return ree_no_memory(err);
    }
    model->graph = stage->graph;
    model->files = whole->files;
    model->no_fold = whole->no_fold;
    model->runnable = whole->runnable;
    model->weight_bytes = weight_bytes(model->graph);
    model->n_values = ree_graph_number(model->graph);
    enum ree_status status = describe_ports(model, err);
    for (size_t i = 0; i < stage->n_inputs; i++)
        model->n_free += stage->inputs[i].is_cut;
    if (status == REE_OK && model->n_inputs != stage->n_inputs)
        status = ree_fail(err, REE_INTERNAL, "a stage requires %zu inputs, but has %zu",
                          stage->n_inputs, model->n_inputs);
    if (status != REE_OK) {
        ree_model_destroy(model);
        return status;
    }
    *out_model = model;
    return REE_OK;
}

static enum ree_status add_input_port(struct ree_model *model, const struct ree_value *value,
                                      struct ree_error *err) {
    size_t n = model->n_inputs;
    struct ree_port *inputs = ree_realloc(model->inputs, (n + 2) * sizeof *inputs);
    if (!inputs) return ree_no_memory(err);
    model->inputs = inputs;
    const struct ree_value **values =
        ree_realloc(model->input_values, (n + 2) * sizeof(const struct ree_value *));
    if (!values) return ree_no_memory(err);
    model->input_values = values;
    memset(&inputs[n], 0, 2 * sizeof *inputs);
    describe_port(&inputs[n], value);
    values[n] = value;
    values[n + 1] = NULL;
    model->n_inputs++;
    ree_name_index_finish(&model->input_names);
    if (!ree_name_index_init(&model->input_names, model->n_inputs, name_of_port, inputs))
        return ree_no_memory(err);
    return REE_OK;
}

enum ree_status ree_model_select_rows(struct ree_model *model, size_t output, const char *name,
                                      bool *out_done, struct ree_error *err) {
    *out_done = ree_name_index_find(&model->input_names, name) == REE_NO_NAME &&
                ree_pass_select_rows(model->graph, model->graph->outputs[output], name);
    if (model->graph->lacked_memory) return ree_no_memory(err);
    if (!*out_done) return REE_OK;
    model->selects_rows = true;
    model->n_values = ree_graph_number(model->graph);
    // The pass has opened this dimension of the output. The other ports stay as the file describes
    // them: since then, passes have changed types of values, also by what no hash covers, and the
    // purpose of a port must not depend on that.
    model->outputs[output].dims[1] = -1;
    model->outputs[output].symbols[1] = NULL;
    return add_input_port(model, model->graph->inputs[model->graph->n_inputs - 1], err);
}

enum ree_status ree_model_inspect(const char *path, struct ree_model **out_model,
                                  struct ree_error *err) {
    REE_FLOAT_ENV_API();
    *out_model = NULL;
    struct ree_graph *graph;
    REE_TRY(ree_graph_load(path, NULL, &graph, err));
    return make_model(graph, NULL, false, out_model, err);
}

void ree_model_destroy(struct ree_model *model) {
    if (!model) return;
    ree_identity_finish(&model->identity);
    ree_graph_destroy(model->graph);
    ree_free(model->inputs);
    ree_free(model->input_values);
    ree_free(model->outputs);
    ree_name_index_finish(&model->input_names);
    ree_name_index_finish(&model->output_names);
    ree_free(model->op_counts);
    ree_free(model->notes);
    ree_free(model);
}

size_t ree_model_n_inputs(const struct ree_model *model) {
    return model->n_inputs;
}
size_t ree_model_n_outputs(const struct ree_model *model) {
    return model->n_outputs;
}
size_t ree_model_n_op_counts(const struct ree_model *model) {
    return model->n_op_counts;
}
uint64_t ree_model_weight_bytes(const struct ree_model *model) {
    return model->weight_bytes;
}
int64_t ree_model_ir_version(const struct ree_model *model) {
    return model->graph->ir_version;
}

const struct ree_port *ree_model_input(const struct ree_model *model, size_t i) {
    return i < model->n_inputs ? &model->inputs[i] : NULL;
}

const struct ree_port *ree_model_find_input(const struct ree_model *model, const char *name) {
    size_t i = ree_name_index_find(&model->input_names, name);
    return i == REE_NO_NAME ? NULL : &model->inputs[i];
}

const struct ree_port *ree_model_output(const struct ree_model *model, size_t i) {
    return i < model->n_outputs ? &model->outputs[i] : NULL;
}

size_t ree_model_notes(const struct ree_model *model, const struct ree_model_note **out_notes) {
    *out_notes = model->notes;
    return model->n_notes;
}

const struct ree_op_count *ree_model_op_counts(const struct ree_model *model) {
    return model->op_counts;
}

int64_t ree_model_opset(const struct ree_model *model, const char *domain) {
    return ree_graph_opset(model->graph, domain);
}

const char *ree_model_metadata(const struct ree_model *model, const char *key) {
    for (size_t i = 0; i < model->graph->n_metadata; i++)
        if (!strcmp(model->graph->metadata[i].key, key)) return model->graph->metadata[i].value;
    return NULL;
}
