// Lowers a node through its rule, and subgraphs node by node.
#include "graph/lower/core/lower_internal.h"

#include <string.h>

#include "base/dtype.h"

// Finds where the current activation, or an enclosing one, keeps the tensor of a value. NULL for a
// value of a graph that is not being lowered: a constant, when a subgraph is folded separately.
static struct ree_view **slot_of(const struct ree_lower *lower, const struct ree_value *value) {
    const struct ree_frame *frame = lower->frame;
    while (frame && value->graph && frame->graph != value->graph)
        frame = frame->parent;
    return frame ? &frame->values[value->id] : NULL;
}

// As check_declared, for types that a pass brought together.
static enum ree_status check_types(struct ree_lower *lower, const struct ree_value *value) {
    if (!value->has_two_types || lower->ignores_declared) return REE_OK;
    lower->contradicts = true;
    return ree_lower_fail(lower, REE_UNSUPPORTED, "'%s' is declared as two types", value->name);
}

// Finds the tensor of a value: one that was made or passed in before, or a constant.
static enum ree_status find_value(struct ree_lower *lower, const struct ree_value *value,
                                  const char *what, size_t index, struct ree_view **out) {
    REE_TRY(check_types(lower, value));
    struct ree_view *constant, **slot = slot_of(lower, value);
    if (!slot) slot = &constant, constant = NULL;
    if (!*slot) {
        if (!value->data && !(value->dtype != REE_DTYPE_NONE && value->has_shape &&
                              value->nbytes == 0 && !value->producer && !value->is_input))
            return ree_lower_fail(lower, REE_INVALID, "%s %zu ('%s') has no value", what, index,
                                  value->name);
        REE_TRY(ree_lower_value(lower, value, REE_STORAGE_CONST, value->dims, slot));
    }
    *out = *slot;
    return REE_OK;
}

// If an attribute has another kind than the rule reads, the rule gets the default. Its result would
// answer another question, so this is reported as an error of the node, whatever the rule returned.
static enum ree_status call_rule(struct ree_lower *lower, const struct ree_op *op,
                                 struct ree_view *const *in, struct ree_view **out) {
    const struct ree_attr *outer = lower->misread;
    lower->misread = NULL;
    enum ree_status status = op->rule(lower, in, out);
    const struct ree_attr *attr = lower->misread;
    lower->misread = outer;
    if (!attr) return status;
    return ree_lower_fail(lower, REE_INVALID, "attribute '%s' is %s, expected %s", attr->name,
                          ree_attr_kind_name(attr->kind), ree_attr_kind_name(lower->misread_as));
}

static const char *kind_text(enum ree_kind kind) {
    return kind == REE_SEQUENCE ? "a sequence of " : "";
}

// The declared type of a value is part of the model: if a rule derives another type, one of them is
// wrong, and so are the numbers. Declared shapes are only hints, because exporters leave outdated
// ones. The status is not REE_INVALID: no hash of the model covers types within a graph, so a
// receipt of a copy without the wrong declaration may be right.
static enum ree_status check_declared(struct ree_lower *lower, const struct ree_value *value,
                                      const struct ree_view *made) {
    if (lower->ignores_declared) return REE_OK;
    REE_TRY(check_types(lower, value));
    bool differs = value->dtype != made->dtype || value->kind != made->kind;
    if (value->dtype == REE_DTYPE_NONE || made->dtype == REE_DTYPE_NONE || !differs) return REE_OK;
    if (made->kind == REE_ABSENT || value->kind == REE_ABSENT) return REE_OK;
    lower->contradicts = true;
    return ree_lower_fail(lower, REE_UNSUPPORTED, "'%s' is declared as %s%s, but is %s%s",
                          value->name, kind_text(value->kind), ree_onnx_type_name(value->dtype),
                          kind_text(made->kind), ree_onnx_type_name(made->dtype));
}

static enum ree_status lower_node(struct ree_lower *lower, const struct ree_node *node) {
    const char *reason;
    const struct ree_op *op = ree_op_find(node->domain, node->op_type, node->opset, &reason);
    if (!op) return ree_lower_fail(lower, REE_UNSUPPORTED, "%s", reason);
    size_t n_in = node->n_inputs, n_out = node->n_outputs;
    if (n_in < op->min_inputs || n_in > op->max_inputs)
        return ree_lower_fail(lower, REE_INVALID, "has %zu inputs, expected %u to %u", n_in,
                              op->min_inputs, op->max_inputs);
    if (n_out > op->max_outputs)
        return ree_lower_fail(lower, REE_INVALID, "has %zu outputs, expected at most %u", n_out,
                              op->max_outputs);
    struct ree_view **in = ree_arena_alloc_array(lower->arena, n_in + 1, sizeof *in);
    // A rule fills as many outputs as its row allows; if the row has no limit, as many as the node
    // has.
    size_t capacity = op->max_outputs == UINT32_MAX ? n_out : op->max_outputs;
    struct ree_view **out = ree_arena_alloc_array(lower->arena, capacity + 1, sizeof *out);
    if (!in || !out) return ree_lower_no_memory(lower);
    for (size_t i = 0; i < n_in; i++) {
        if (node->inputs[i])
            REE_TRY(find_value(lower, node->inputs[i], "input", i, &in[i]));
        else if (i < op->min_inputs)
            return ree_lower_fail(lower, REE_INVALID, "input %zu is required but omitted", i);
    }
    for (size_t i = 0; op->narrow != REE_NARROW_ANY && i < n_in; i++) {
        char text[128];
        if (in[i] && in[i]->kind != REE_TENSOR)
            return ree_lower_fail(lower, REE_INVALID, "input %zu is %s, expected a tensor", i,
                                  ree_view_text(in[i], text, sizeof text));
    }
    enum ree_dtype narrow = REE_DTYPE_NONE;
    for (size_t i = 0; op->narrow == REE_NARROW_WIDEN && i < n_in; i++) {
        if (!in[i] || (in[i]->dtype != REE_F16 && in[i]->dtype != REE_BF16)) continue;
        if (narrow == REE_DTYPE_NONE) narrow = in[i]->dtype;
        REE_TRY(ree_lower_cast(lower, in[i], REE_F32, &in[i]));
    }
    lower->stays_wide = 0;
    REE_TRY(call_rule(lower, op, in, out));
    for (size_t i = 0; narrow != REE_DTYPE_NONE && i < n_out; i++)
        if (out[i] && out[i]->dtype == REE_F32 && !(i < 32 && lower->stays_wide >> i & 1))
            REE_TRY(ree_lower_cast(lower, out[i], narrow, &out[i]));
    for (size_t i = 0; i < n_out; i++) {
        if (!node->outputs[i]) continue;
        if (!out[i])
            return ree_lower_fail(lower, REE_UNSUPPORTED, "output %zu ('%s') is not provided", i,
                                  node->outputs[i]->name);
        REE_TRY(check_declared(lower, node->outputs[i], out[i]));
        if (!lower->fuse && out[i]->kind == REE_TENSOR && !ree_lower_is_host(out[i]) &&
            !out[i]->storage->kv_cache)
            REE_TRY(ree_lower_dense(lower, out[i], &out[i]));
        *slot_of(lower, node->outputs[i]) = out[i];
    }
    return REE_OK;
}

static enum ree_status lower_labelled(struct ree_lower *lower, const struct ree_node *node) {
    lower->node = node;
    enum ree_status status = lower_node(lower, node);
    if (status != REE_OK) {
        char label[256];
        ree_fail_prefix(lower->err, "%s", ree_node_label(node, label, sizeof label));
    }
    return status;
}

enum ree_status ree_lower_node(struct ree_lower *lower, const struct ree_node *node,
                               struct ree_view **values) {
    struct ree_frame frame = {lower->graph, NULL, values};
    lower->frame = &frame;
    enum ree_status status = lower_labelled(lower, node);
    lower->frame = NULL;
    return status;
}

// Subgraphs

static enum ree_status count_step(struct ree_lower *lower) {
    uint32_t limit = lower->step_limit ? lower->step_limit : REE_LOWER_MAX_STEPS;
    if (lower->n_steps++ < limit) return REE_OK;
    return ree_lower_fail(
        lower, REE_UNSUPPORTED,
        "control flow runs more than %u steps in total (a step is an iteration, or a node in one)",
        limit);
}

enum ree_status ree_lower_count_time_steps(struct ree_lower *lower, int64_t n, uint32_t repeats) {
    if (n > REE_LOWER_MAX_ITERATIONS)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "%lld time steps; at most %u are supported",
                              (long long)n, REE_LOWER_MAX_ITERATIONS);
    const uint64_t total = lower->n_time_steps + (uint64_t)n * repeats;
    if (total > REE_LOWER_MAX_TIME_STEPS)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "%lld time steps after %u of other nodes; at most %u in total are "
                              "supported",
                              (long long)n * repeats, lower->n_time_steps,
                              REE_LOWER_MAX_TIME_STEPS);
    lower->n_time_steps = (uint32_t)total;
    return REE_OK;
}

// A body may declare the types of its inputs, which are checked. Shapes that it declares are hints:
// a body is lowered for the shapes that it receives.
static enum ree_status bind_inputs(struct ree_lower *lower, const struct ree_graph *graph,
                                   struct ree_view *const *in) {
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const struct ree_value *value = graph->inputs[i];
        char text[128];
        bool fits = value->dtype == REE_DTYPE_NONE || in[i]->kind == REE_ABSENT ||
                    (value->dtype == in[i]->dtype && value->kind == in[i]->kind);
        if (!fits)
            return ree_lower_fail(lower, REE_INVALID,
                                  "the graph's input '%s' is %s, but is declared as %s",
                                  value->name, ree_view_text(in[i], text, sizeof text),
                                  ree_onnx_type_name(value->dtype));
        lower->frame->values[value->id] = in[i];
    }
    return REE_OK;
}

static enum ree_status lower_body(struct ree_lower *lower, const struct ree_graph *graph,
                                  struct ree_view *const *in, struct ree_view **out) {
    REE_TRY(count_step(lower));
    REE_TRY(bind_inputs(lower, graph, in));
    const struct ree_node *node = lower->node;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        REE_TRY(count_step(lower));
        REE_TRY(lower_labelled(lower, graph->nodes[i]));
    }
    lower->node = node;
    for (size_t i = 0; i < graph->n_outputs; i++)
        REE_TRY(find_value(lower, graph->outputs[i], "the graph's output", i, &out[i]));
    return REE_OK;
}

enum ree_status ree_lower_graph(struct ree_lower *lower, const struct ree_graph *graph,
                                struct ree_view *const *in, struct ree_view **out) {
    const struct ree_node *node = lower->node, *outer_node = lower->outer_node;
    struct ree_frame frame = {.graph = graph, .parent = lower->frame};
    frame.values = ree_arena_alloc_array(lower->arena, graph->n_values + 1, sizeof *frame.values);
    if (!frame.values) return ree_lower_no_memory(lower);
    lower->frame = &frame;
    if (!outer_node) lower->outer_node = node;
    enum ree_status status = lower_body(lower, graph, in, out);
    lower->frame = frame.parent;
    lower->node = node;
    lower->outer_node = outer_node;
    return status;
}

enum ree_status ree_lower_outer_output(struct ree_lower *lower, const struct ree_graph *graph,
                                       size_t i, struct ree_view **out) {
    *out = NULL;
    if (graph->outputs[i]->graph == graph) return REE_OK;
    return find_value(lower, graph->outputs[i], "the graph's output", i, out);
}

struct ree_trial {
    struct ree_trial *outer;
    size_t n_storages; // storages with a smaller id exist from before the trial
    bool is_flushed;   // the program before the trial has run, so reading them runs nothing
    // How the enclosing lowering reads a storage, and the one that this trial could not read; NULL:
    // none.
    enum ree_status (*read_storage)(struct ree_lower *, struct ree_storage *);
    struct ree_storage *wanted;
};

// Callback ree_lower.read_storage during a trial.
static enum ree_status read_in_trial(struct ree_lower *lower, struct ree_storage *storage) {
    struct ree_trial *t = lower->trial;
    if (storage->id < t->n_storages && (t->is_flushed || storage->kind == REE_STORAGE_INPUT)) {
        lower->trial = t->outer;
        lower->read_storage = t->read_storage;
        enum ree_status status = t->read_storage(lower, storage);
        lower->trial = t;
        lower->read_storage = read_in_trial;
        return status;
    }
    t->wanted = storage;
    lower->wants_data = true;
    return ree_lower_fail(lower, REE_UNSUPPORTED, "a shape depends on data");
}

static enum ree_status try_once(struct ree_lower *lower, struct ree_trial *t,
                                const struct ree_graph *graph, struct ree_view *const *in,
                                struct ree_view **out) {
    const size_t n_dispatches = lower->n_dispatches;
    const struct ree_quantised_rows quantised_rows = lower->quantised_rows;
    t->wanted = NULL;
    t->outer = lower->trial;
    t->read_storage = lower->read_storage;
    lower->trial = t;
    lower->read_storage = read_in_trial;
    enum ree_status status = ree_lower_graph(lower, graph, in, out);
    lower->trial = t->outer;
    lower->read_storage = t->read_storage;
    lower->n_dispatches = n_dispatches;
    lower->quantised_rows = quantised_rows; // the rows that the trial quantised are never computed
    return status;
}

enum ree_status ree_lower_trial(struct ree_lower *lower, const struct ree_graph *graph,
                                struct ree_view *const *in, struct ree_view **out) {
    struct ree_trial t = {.n_storages = lower->n_storages};
    const bool wants_data = lower->wants_data;
    const uint32_t n_steps = lower->n_steps, n_time_steps = lower->n_time_steps;
    enum ree_status status = try_once(lower, &t, graph, in, out);
    if (status == REE_OK || !t.wanted || t.wanted->id >= t.n_storages) return status;
    // To read a computed value is to run the program so far, which must have none of the trial's
    // dispatches. So this happens between two trials.
    lower->wants_data = wants_data;
    lower->n_steps = n_steps;
    lower->n_time_steps = n_time_steps;
    REE_TRY(lower->read_storage(lower, t.wanted));
    t.is_flushed = true;
    return try_once(lower, &t, graph, in, out);
}
