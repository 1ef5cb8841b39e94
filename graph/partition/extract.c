// A stage's piece of a graph as a graph of its own.
#include "graph/partition/extract.h"

#include <stdlib.h>
#include <string.h>

static enum ree_status no_memory(struct ree_error *err) {
    return ree_fail(err, REE_NO_MEMORY, "out of memory");
}

// Calls `visit` with every value that the node reads, which it does not write to.
static void visit_read(const struct ree_node *node, void (*visit)(void *, struct ree_value **),
                       void *user) {
    ree_node_visit_uses((struct ree_node *)(uintptr_t)node, visit, user);
}

// Which stage has what

static void note_read(void *user, struct ree_value **use) {
    struct ree_extract_reads *r = user;
    if ((*use)->graph == r->graph) r->values[(*use)->id] = true;
}

struct state_read {
    const struct ree_value *state;
    bool found;
};

static void note_state(void *user, struct ree_value **use) {
    struct state_read *read = user;
    if (*use == read->state) read->found = true;
}

size_t ree_partition_stage_of_state(const struct ree_graph *graph,
                                    const struct ree_partition *partition,
                                    const struct ree_partition_state *state) {
    const struct ree_node *maker = graph->outputs[state->output]->producer;
    if (maker && partition->stage_of[maker->id] != REE_STAGE_CONTROL)
        return partition->stage_of[maker->id];
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct state_read read = {graph->inputs[state->input], false};
        if (partition->stage_of[i] == REE_STAGE_CONTROL) continue;
        visit_read(graph->nodes[i], note_state, &read); // in its subgraphs, too
        if (read.found) return partition->stage_of[i];
    }
    return partition->n_stages - 1;
}

// The stage that hands out an output of the whole graph.
static size_t stage_of_output(const struct ree_extract *x, size_t output) {
    const struct ree_graph *graph = x->graph;
    const struct ree_value *value = graph->outputs[output];
    for (size_t i = 0; i < x->options->n_states; i++)
        if (x->options->states[i].output == output)
            return ree_partition_stage_of_state(graph, x->partition, &x->options->states[i]);
    // A state that is handed out as it is.
    for (size_t i = 0; i < x->options->n_states; i++)
        if (graph->inputs[x->options->states[i].input] == value)
            return ree_partition_stage_of_state(graph, x->partition, &x->options->states[i]);
    uint32_t stage =
        value->producer ? x->partition->stage_of[value->producer->id] : REE_STAGE_CONTROL;
    return stage == REE_STAGE_CONTROL ? x->partition->n_stages - 1 : stage;
}

// Marks the nodes of a stage and the control nodes that it needs; producers come first, so one pass
// from behind finds all.
static void mark_stage(const struct ree_extract *x, size_t stage, struct ree_extract_reads *reads,
                       bool *has) {
    const struct ree_graph *graph = x->graph;
    const uint32_t *stage_of = x->partition->stage_of;
    for (size_t i = 0; i < graph->n_outputs; i++)
        if (stage_of_output(x, i) == stage) reads->values[graph->outputs[i]->id] = true;
    for (size_t i = graph->n_nodes; i-- > 0;) {
        const struct ree_node *node = graph->nodes[i];
        bool wanted = stage_of[i] == stage;
        for (size_t k = 0; stage_of[i] == REE_STAGE_CONTROL && k < node->n_outputs; k++)
            if (node->outputs[k] && reads->values[node->outputs[k]->id]) wanted = true;
        if (!wanted) continue;
        has[i] = true;
        visit_read(node, note_read, reads);
    }
}

static enum ree_status mark(struct ree_extract *x) {
    const struct ree_graph *graph = x->graph;
    size_t n_nodes = graph->n_nodes, last = x->partition->n_stages - 1;
    x->earlier = ree_arena_alloc_array(&x->scratch, n_nodes + 1, sizeof *x->earlier);
    x->has = ree_arena_alloc_array(&x->scratch, n_nodes + 1, sizeof *x->has);
    x->reads.graph = graph;
    x->reads.values =
        ree_arena_alloc_array(&x->scratch, graph->n_values + 1, sizeof *x->reads.values);
    struct ree_extract_reads other = {.graph = graph};
    other.values = ree_arena_alloc_array(&x->scratch, graph->n_values + 1, sizeof *other.values);
    if (!x->earlier || !x->has || !x->reads.values || !other.values) return no_memory(x->err);
    for (size_t s = 0; s < x->stage; s++) {
        memset(other.values, 0, graph->n_values * sizeof *other.values);
        mark_stage(x, s, &other, x->earlier);
    }
    mark_stage(x, x->stage, &x->reads, x->has);
    // Control nodes that nobody reads are the last stage's, with what they read.
    for (size_t i = graph->n_nodes; x->stage == last && i-- > 0;) {
        const struct ree_node *node = graph->nodes[i];
        if (x->has[i] || x->partition->stage_of[i] != REE_STAGE_CONTROL) continue;
        bool wanted = !x->earlier[i];
        for (size_t k = 0; k < node->n_outputs; k++)
            if (node->outputs[k] && x->reads.values[node->outputs[k]->id]) wanted = true;
        if (!wanted) continue;
        x->has[i] = true;
        visit_read(node, note_read, &x->reads);
    }
    return REE_OK;
}

// Ports

static enum ree_status add_input(struct ree_extract *x, const struct ree_stage_input *input) {
    struct ree_stage_graph *out = x->out;
    struct ree_value *copy;
    REE_TRY(ree_extract_copy_value(x, out->graph, input->value, &copy));
    copy->is_input = true;
    x->map[input->value->id] = copy;
    out->graph->inputs[out->graph->n_inputs++] = copy;
    out->inputs[out->n_inputs++] = *input;
    return REE_OK;
}

// The state that an input of the whole graph is; NULL: none.
static const struct ree_partition_state *state_of(const struct ree_extract *x, size_t input) {
    for (size_t i = 0; i < x->options->n_states; i++)
        if (x->options->states[i].input == input) return &x->options->states[i];
    return NULL;
}

struct search {
    const struct ree_value *value;
    bool found;
};

static void look_for(void *user, struct ree_value **use) {
    struct search *search = user;
    search->found = search->found || *use == search->value;
}

// Only its shape can be known of a state that is somewhere else.
static enum ree_status check_readers(struct ree_extract *x, const struct ree_value *state) {
    char label[256];
    for (size_t i = 0; i < x->graph->n_nodes; i++) {
        const struct ree_node *node = x->graph->nodes[i];
        struct search search = {.value = state};
        if (!x->has[i] || (strcmp(node->op_type, "Shape") == 0 && !node->domain[0])) continue;
        visit_read(node, look_for, &search);
        if (search.found)
            return ree_fail(x->err, REE_UNSUPPORTED,
                            "%s reads the state '%s', which another stage keeps",
                            ree_node_label(node, label, sizeof label), state->name);
    }
    return REE_OK;
}

static enum ree_status add_inputs(struct ree_extract *x, const size_t *always, size_t n_always) {
    const struct ree_graph *graph = x->graph;
    const struct ree_cut *cut = x->stage ? &x->partition->cuts[x->stage - 1] : NULL;
    struct ree_stage_graph *out = x->out;
    size_t most = graph->n_inputs + (cut ? cut->n_values : 0) + 1;
    struct ree_arena *arena = out->graph->arena;
    out->inputs = ree_arena_alloc_array(arena, most, sizeof *out->inputs);
    out->graph->inputs = ree_arena_alloc_array(arena, most, sizeof *out->graph->inputs);
    if (!out->inputs || !out->graph->inputs) return no_memory(x->err);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const struct ree_value *value = graph->inputs[i];
        const struct ree_partition_state *state = state_of(x, i);
        bool own = state && ree_partition_stage_of_state(graph, x->partition, state) == x->stage;
        bool wanted = own || x->reads.values[value->id];
        for (size_t k = 0; k < n_always; k++)
            wanted = wanted || always[k] == i;
        if (!wanted || !ree_extract_is_input(graph, value)) continue;
        if (state && !own) REE_TRY(check_readers(x, value));
        REE_TRY(add_input(
            x, &(struct ree_stage_input){.shape_only = state && !own, .input = i, .value = value}));
    }
    for (size_t i = 0; cut && i < cut->n_values; i++)
        if (x->reads.values[cut->values[i]->id])
            REE_TRY(
                add_input(x, &(struct ree_stage_input){.is_cut = true, .value = cut->values[i]}));
    return REE_OK;
}

static enum ree_status add_output(struct ree_extract *x, const struct ree_extract_frame *frame,
                                  const struct ree_value *value) {
    struct ree_stage_graph *out = x->out;
    struct ree_value *copy;
    REE_TRY(ree_extract_find_value(x, frame, value, &copy));
    copy->is_output = true;
    out->outputs[out->n_outputs++] = value;
    out->graph->outputs[out->graph->n_outputs++] = copy;
    return REE_OK;
}

static enum ree_status add_outputs(struct ree_extract *x, const struct ree_extract_frame *frame) {
    const struct ree_graph *graph = x->graph;
    const struct ree_cut *cut =
        x->stage + 1 < x->partition->n_stages ? &x->partition->cuts[x->stage] : NULL;
    struct ree_stage_graph *out = x->out;
    struct ree_arena *arena = out->graph->arena;
    size_t most = graph->n_outputs + (cut ? cut->n_values : 0) + 1;
    out->outputs = ree_arena_alloc_array(arena, most, sizeof *out->outputs);
    out->graph->outputs = ree_arena_alloc_array(arena, most, sizeof *out->graph->outputs);
    out->whole_outputs =
        ree_arena_alloc_array(arena, graph->n_outputs + 1, sizeof *out->whole_outputs);
    if (!out->outputs || !out->graph->outputs || !out->whole_outputs) return no_memory(x->err);
    for (size_t i = 0; i < graph->n_outputs; i++) {
        if (stage_of_output(x, i) != x->stage) continue;
        out->whole_outputs[out->n_whole++] = i;
        REE_TRY(add_output(x, frame, graph->outputs[i]));
    }
    for (size_t i = 0; cut && i < cut->n_values; i++) {
        const struct ree_node *maker = cut->values[i]->producer;
        if (maker && x->partition->stage_of[maker->id] == x->stage)
            REE_TRY(add_output(x, frame, cut->values[i]));
    }
    return REE_OK;
}

// The whole

static enum ree_status build(struct ree_extract *x, const size_t *always, size_t n_always) {
    const struct ree_graph *graph = x->graph;
    REE_TRY(mark(x));
    x->map = ree_arena_alloc_array(&x->scratch, graph->n_values + 1, sizeof *x->map);
    struct ree_graph *to = x->out->graph = ree_graph_create();
    if (!x->map || !to) return no_memory(x->err);
    to->name = graph->name;
    to->file = graph->file;
    to->ir_version = graph->ir_version;
    to->n_opsets = graph->n_opsets;
    to->opsets = graph->opsets;
    to->n_metadata = graph->n_metadata;
    to->metadata = graph->metadata;
    REE_TRY(add_inputs(x, always, n_always));
    size_t n = 0;
    for (size_t i = 0; i < graph->n_nodes; i++)
        n += x->has[i];
    to->nodes = ree_arena_alloc_array(to->arena, n + 1, sizeof *to->nodes);
    x->out->node_of = ree_arena_alloc_array(to->arena, n + 1, sizeof *x->out->node_of);
    x->out->is_copy = ree_arena_alloc_array(to->arena, n + 1, sizeof *x->out->is_copy);
    if (!to->nodes || !x->out->node_of || !x->out->is_copy) return no_memory(x->err);
    to->nodes_capacity = n + 1;
    const struct ree_extract_frame frame = {.from = graph, .to = to, .map = x->map};
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (!x->has[i]) continue;
        x->out->node_of[to->n_nodes] = (uint32_t)i;
        x->out->is_copy[to->n_nodes] = x->earlier[i];
        REE_TRY(ree_extract_copy_node(x, &frame, graph->nodes[i]));
    }
    REE_TRY(add_outputs(x, &frame));
    ree_graph_count_uses(to);
    return REE_OK;
}

enum ree_status ree_partition_extract(const struct ree_graph *graph,
                                      const struct ree_partition_options *options,
                                      const struct ree_partition *partition, size_t stage,
                                      const size_t *always, size_t n_always,
                                      struct ree_stage_graph *out, struct ree_error *err) {
    *out = (struct ree_stage_graph){0};
    struct ree_extract x = {.graph = graph,
                            .options = options,
                            .partition = partition,
                            .stage = stage,
                            .out = out,
                            .err = err};
    ree_arena_init(&x.scratch);
    enum ree_status status = build(&x, always, n_always);
    ree_arena_finish(&x.scratch);
    if (status != REE_OK) ree_stage_graph_finish(out);
    return status;
}

void ree_stage_graph_finish(struct ree_stage_graph *stage) {
    ree_graph_destroy(stage->graph); // with all that is in its arena
    *stage = (struct ree_stage_graph){0};
}
