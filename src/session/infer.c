// Type and shape inference for display: `ree-run inspect` and printed graphs. (A run does not need
// it: it lowers the model for its actual input shapes.)
//
// The rules that lower a node also determine its output shapes, so inference lowers the graph
// without a device: once with every unknown size set to one number, once to another. Sizes that
// agree are static; sizes that differ depend on the inputs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "base/memory.h"
#include "graph/lower/core/lower.h"
#include "session/model.h"

// Maximum number of subgraph runs and of nodes in them per trial (ree_lower.step_limit). Without
// it, a loop could take any time.
#define STEP_LIMIT 4096
// Maximum number of problems that are reported individually, and of wrong shapes.
#define MAX_NOTES 20

// Sizes that stand for the unknown dimensions of inputs, one per trial. The third trial takes place
// only if a node failed in both others.
static const int64_t trial_sizes[] = {4, 8, 1};
#define N_TRIALS 3

// Result of lowering a node. `message` is NULL on success, and if the failure is not the node's own
// (blames_node). contradicts: a declared type differs from the actual type.
struct outcome {
    enum ree_status status;
    bool contradicts;
    const char *message;
};

static enum ree_status value_unknown(struct ree_lower *lower, struct ree_storage *storage) {
    (void)storage;
    lower->wants_data = true;
    return ree_lower_fail(lower, REE_UNSUPPORTED, "a shape depends on data");
}

struct use_check {
    const struct ree_graph *graph;
    struct ree_view **values;
    bool missing;
};

static void check_use(void *user, struct ree_value **use) {
    struct use_check *check = user;
    const struct ree_value *value = *use;
    if (value->graph == check->graph && !value->data && !check->values[value->id])
        check->missing = true;
}

// Returns whether a failure is the node's own: all of its inputs are known, it needed no unknown
// data, and it did not exceed the step limit. n_steps: lower->n_steps before the node.
static bool blames_node(const struct ree_lower *lower, uint32_t n_steps, struct ree_node *node,
                        struct ree_view **values, enum ree_status status) {
    if (status != REE_INVALID && status != REE_UNSUPPORTED) return false;
    if (lower->wants_data) return false;
    if (lower->n_steps > STEP_LIMIT && lower->n_steps != n_steps) return false;
    struct use_check check = {lower->graph, values, false};
    ree_node_visit_uses(node, check_use, &check);
    return !check.missing;
}

// Lowers every node that can be lowered, with `size` for each unknown dimension of the inputs.
// Values of failing nodes and of nodes that depend on them stay NULL. `outcomes` is NULL or has one
// zeroed entry per node. Fails only if memory is exhausted, which says nothing about the graph.
static enum ree_status trial(struct ree_graph *graph, int64_t size, struct ree_arena *arena,
                             struct ree_view ***out_values, struct outcome *outcomes,
                             struct ree_error *err) {
    struct ree_error error;
    struct ree_lower lower = {
        .arena = arena,
        .err = &error,
        .graph = graph,
        .fuse = true,
        .fold = true,
        .fold_limit = 64 << 10,
        .step_limit = STEP_LIMIT,
        .host_execute = ree_cpu_execute,
        .read_storage = value_unknown,
    };
    struct ree_view **values = ree_arena_alloc_array(arena, graph->n_values + 1, sizeof *values);
    if (!values) return ree_no_memory(err);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const struct ree_value *value = graph->inputs[i];
        bool tensor = value->kind == REE_TENSOR && !value->nullable && value->dtype != REE_STRING;
        if (value->data || !value->has_shape || !tensor) continue;
        int64_t dims[REE_MAX_RANK];
        for (uint32_t d = 0; d < value->rank; d++)
            dims[d] = value->dims[d] < 0 ? size : value->dims[d];
        enum ree_status status =
            ree_lower_value(&lower, value, REE_STORAGE_INPUT, dims, &values[value->id]);
        if (status == REE_NO_MEMORY) return ree_no_memory(err);
        if (status != REE_OK) values[value->id] = NULL;
    }
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct ree_node *node = graph->nodes[i];
        lower.contradicts = lower.wants_data = false;
        const uint32_t n_steps = lower.n_steps;
        enum ree_status status = ree_lower_node(&lower, node, values);
        if (status == REE_OK) continue;
        if (status == REE_NO_MEMORY) return ree_no_memory(err);
        for (size_t k = 0; k < node->n_outputs; k++)
            if (node->outputs[k]) values[node->outputs[k]->id] = NULL;
        if (!outcomes || !blames_node(&lower, n_steps, node, values, status)) continue;
        outcomes[i] =
            (struct outcome){status, lower.contradicts, ree_arena_strdup(arena, error.message)};
    }
    *out_values = values;
    return REE_OK;
}

// Stores the types and shapes on which two trials agree.
static void fill_in(struct ree_graph *graph, struct ree_view **a, struct ree_view **b) {
    for (size_t i = 0; i < graph->n_values; i++) {
        struct ree_value *value = graph->values[i];
        const struct ree_view *x = a[value->id], *y = b[value->id];
        if (value->data || value->is_input || !x || !y || x->rank != y->rank) continue;
        if (x->kind != REE_TENSOR || y->kind != REE_TENSOR) continue;
        bool declared = value->has_shape && value->rank == x->rank;
        if (x->dtype != y->dtype) continue;
        value->kind = REE_TENSOR;
        value->dtype = x->dtype;
        value->has_shape = true;
        value->rank = x->rank;
        for (uint32_t d = 0; d < x->rank; d++) {
            // Names of unknown sizes come only from a shape that the file declares.
            if (!declared) value->symbols[d] = NULL;
            value->dims[d] = x->dims[d] == y->dims[d] ? x->dims[d] : -1;
        }
    }
}

// Nodes

static bool has_open_sizes(const struct ree_graph *graph) {
    for (size_t i = 0; i < graph->n_inputs; i++)
        for (uint32_t d = 0; d < graph->inputs[i]->rank; d++)
            if (graph->inputs[i]->dims[d] < 0) return true;
    return false;
}

// Returns whether the trials show that the node cannot be run. The sizes of the trials may be
// inconsistent with each other. So if the model has unknown sizes (`open`), only errors that do not
// depend on sizes count: an unsupported operator or type, or contradicting types.
static bool is_problem(struct outcome *const outcomes[N_TRIALS], size_t node, size_t n_trials,
                       bool open) {
    const struct outcome *first = &outcomes[0][node];
    if (!first->message) return false;
    for (size_t i = 1; i < n_trials; i++)
        if (!outcomes[i][node].message || strcmp(outcomes[i][node].message, first->message) != 0)
            return false;
    return !open || first->status == REE_UNSUPPORTED || first->contradicts;
}

struct marks {
    const struct ree_graph *graph;
    bool *live; // indexed by value id
};

static void mark_use(void *user, struct ree_value **use) {
    struct marks *marks = user;
    if ((*use)->graph == marks->graph) marks->live[(*use)->id] = true;
}

// Returns one flag per node, in the arena: whether an output depends on it. A run drops all other
// nodes. NULL: memory is exhausted.
static bool *find_live(const struct ree_graph *graph, struct ree_arena *arena) {
    struct marks marks = {graph, ree_arena_alloc_array(arena, graph->n_values + 1, sizeof(bool))};
    bool *nodes = ree_arena_alloc_array(arena, graph->n_nodes + 1, sizeof *nodes);
    if (!marks.live || !nodes) return NULL;
    for (size_t i = 0; i < graph->n_outputs; i++)
        mark_use(&marks, &graph->outputs[i]);
    for (size_t i = graph->n_nodes; i-- > 0;) {
        struct ree_node *node = graph->nodes[i];
        for (size_t k = 0; k < node->n_outputs; k++)
            nodes[i] |= node->outputs[k] && marks.live[node->outputs[k]->id];
        if (nodes[i]) ree_node_visit_uses(node, mark_use, &marks);
    }
    return nodes;
}

static enum ree_status note_problems(struct ree_model *model,
                                     struct outcome *const outcomes[N_TRIALS], size_t n_trials,
                                     const bool *live, struct ree_error *err) {
    const struct ree_graph *graph = model->graph;
    bool open = has_open_sizes(graph);
    size_t n = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (!live[i] || !is_problem(outcomes, i, n_trials, open)) continue;
        if (n++ < MAX_NOTES) REE_TRY(ree_model_note(model, true, outcomes[0][i].message, err));
    }
    char text[64];
    if (n <= MAX_NOTES) return REE_OK;
    snprintf(text, sizeof text, "and %zu more nodes", n - MAX_NOTES);
    return ree_model_note(model, true, text, err);
}

// Shapes

static bool shape_differs(const struct ree_value *value, const struct ree_view *x,
                          const struct ree_view *y) {
    if (!value->has_shape || value->data || value->is_input || !x || !y) return false;
    if (x->kind != REE_TENSOR || y->kind != REE_TENSOR || x->rank != y->rank) return false;
    if (value->rank != x->rank) return true;
    for (uint32_t d = 0; d < x->rank; d++)
        if (value->dims[d] >= 0 && x->dims[d] == y->dims[d] && value->dims[d] != x->dims[d])
            return true;
    return false;
}

static void append_dims(struct ree_strbuf *out, uint32_t rank, const int64_t *a, const int64_t *b,
                        const char *const *symbols) {
    ree_strbuf_printf(out, "[");
    for (uint32_t d = 0; d < rank; d++) {
        if (d) ree_strbuf_printf(out, ",");
        if (a[d] >= 0 && a[d] == b[d])
            ree_strbuf_printf(out, "%lld", (long long)a[d]);
        else
            ree_strbuf_printf(out, "%s", symbols && symbols[d] ? symbols[d] : "?");
    }
    ree_strbuf_printf(out, "]");
}

static enum ree_status note_shape(struct ree_model *model, const struct ree_value *value,
                                  const struct ree_view *x, const struct ree_view *y,
                                  struct ree_error *err) {
    struct ree_strbuf text;
    char label[256] = "";
    ree_strbuf_init(&text);
    if (value->producer)
        ree_strbuf_printf(&text, "%s: ", ree_node_label(value->producer, label, sizeof label));
    ree_strbuf_printf(&text, "'%s' is declared with the shape ", value->name);
    append_dims(&text, value->rank, value->dims, value->dims, value->symbols);
    ree_strbuf_printf(&text, ", but it has ");
    append_dims(&text, x->rank, x->dims, y->dims, NULL);
    char *s = ree_strbuf_take(&text);
    if (!s) return ree_no_memory(err);
    enum ree_status status = ree_model_note(model, false, s, err);
    ree_free(s);
    return status;
}

static enum ree_status note_shapes(struct ree_model *model, struct ree_view **a,
                                   struct ree_view **b, struct ree_error *err) {
    const struct ree_graph *graph = model->graph;
    size_t n = 0;
    for (size_t i = 0; i < graph->n_values; i++) {
        const struct ree_value *value = graph->values[i];
        const struct ree_view *x = a[value->id], *y = b[value->id];
        if (!shape_differs(value, x, y)) continue;
        if (n++ < MAX_NOTES) REE_TRY(note_shape(model, value, x, y, err));
    }
    char text[64];
    if (n <= MAX_NOTES) return REE_OK;
    snprintf(text, sizeof text, "and %zu more tensors", n - MAX_NOTES);
    return ree_model_note(model, false, text, err);
}

static enum ree_status examine(struct ree_model *model, struct ree_arena *arena,
                               struct ree_error *err) {
    struct ree_graph *graph = model->graph;
    struct outcome *outcomes[N_TRIALS];
    struct ree_view **values[N_TRIALS];
    const bool *live = find_live(graph, arena);
    bool open = has_open_sizes(graph), candidate = false;
    size_t n_trials = 2;
    for (size_t i = 0; i < n_trials; i++) {
        outcomes[i] = ree_arena_alloc_array(arena, graph->n_nodes + 1, sizeof *outcomes[i]);
        if (!live || !outcomes[i]) return ree_no_memory(err);
        REE_TRY(trial(graph, trial_sizes[i], arena, &values[i], outcomes[i], err));
        for (size_t k = 0; i == 1 && k < graph->n_nodes; k++)
            candidate |= live[k] && is_problem(outcomes, k, 2, open);
        if (i == 1 && candidate) n_trials = N_TRIALS;
    }
    // If an operator is not supported, the operator counts report it, and its node fails in every
    // trial: report no problems of nodes.
    bool missing = false;
    for (size_t i = 0; i < model->n_op_counts; i++)
        missing |= !model->op_counts[i].supported;
    if (!missing) REE_TRY(note_problems(model, outcomes, n_trials, live, err));
    REE_TRY(note_shapes(model, values[0], values[1], err));
    fill_in(graph, values[0], values[1]);
    return REE_OK;
}

enum ree_status ree_model_examine(struct ree_model *model, struct ree_error *err) {
    struct ree_arena arena;
    ree_arena_init(&arena);
    enum ree_status status = examine(model, &arena, err);
    ree_arena_finish(&arena);
    return status;
}

enum ree_status ree_model_infer(struct ree_graph *graph, struct ree_error *err) {
    struct ree_arena arena;
    ree_arena_init(&arena);
    struct ree_view **a, **b;
    enum ree_status status = trial(graph, trial_sizes[0], &arena, &a, NULL, err);
    if (status == REE_OK) status = trial(graph, trial_sizes[1], &arena, &b, NULL, err);
    if (status == REE_OK) fill_in(graph, a, b);
    ree_arena_finish(&arena);
    return status;
}

enum ree_status ree_model_infer_always(struct ree_graph *graph, struct ree_error *err) {
    const void **defaults = ree_alloc_zeroed(graph->n_inputs + 1, sizeof *defaults);
    if (!defaults) return ree_no_memory(err);
    for (size_t i = 0; i < graph->n_values; i++)
        if (graph->values[i]->producer) graph->values[i]->has_shape = false;
    for (size_t i = 0; i < graph->n_inputs; i++) {
        defaults[i] = graph->inputs[i]->data;
        graph->inputs[i]->data = NULL;
    }
    enum ree_status status = ree_model_infer(graph, err);
    for (size_t i = 0; i < graph->n_inputs; i++)
        graph->inputs[i]->data = defaults[i];
    ree_free(defaults);
    return status;
}
