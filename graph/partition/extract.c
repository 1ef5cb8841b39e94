// Extracts a stage as a graph of its own.
#include "graph/partition/extract.h"

#include <stdlib.h>
#include <string.h>

// Calls `visit` for every value that the node reads. `visit` must not write.
static void visit_read(const struct ree_node *node, void (*visit)(void *, struct ree_value **),
                       void *user) {
    ree_node_visit_uses((struct ree_node *)(uintptr_t)node, visit, user);
}

// Contents of the stage

static void note_read(void *user, struct ree_value **use) {
    struct ree_extract_reads *r = user;
    if ((*use)->graph == r->graph) r->values[(*use)->id] = true;
}

// Marks the nodes of the stage and the control nodes that it needs. Producers come first, so one
// pass from the end finds all. Control nodes that no stage reads, and what they read, belong to the
// last stage.
static enum ree_status mark(struct ree_extract *x) {
    const struct ree_graph *graph = x->graph;
    const uint32_t *stage_of = x->partition->stage_of;
    x->has = ree_arena_alloc_array(&x->scratch, graph->n_nodes + 1, sizeof *x->has);
    x->reads.graph = graph;
    x->reads.values =
        ree_arena_alloc_array(&x->scratch, graph->n_values + 1, sizeof *x->reads.values);
    if (!x->has || !x->reads.values) return ree_no_memory(x->err);
    for (size_t i = 0; i < graph->n_outputs; i++)
        if (x->output_stage[i] == x->stage) x->reads.values[graph->outputs[i]->id] = true;
    for (size_t i = graph->n_nodes; i-- > 0;) {
        const struct ree_node *node = graph->nodes[i];
        bool wanted = stage_of[i] == x->stage;
        for (size_t k = 0; stage_of[i] == REE_STAGE_CONTROL && k < node->n_outputs; k++)
            if (node->outputs[k] && x->reads.values[node->outputs[k]->id]) wanted = true;
        if (x->first[i] == UINT32_MAX) wanted = x->stage + 1 == x->partition->n_stages;
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

struct reader {
    const struct ree_extract *x;
    const struct ree_value *found; // a kv cache that another stage keeps; NULL: none
};

static void look_for_kv_cache(void *user, struct ree_value **use) {
    struct reader *r = user;
    const struct ree_value *value = *use;
    if (value->graph == r->x->graph && r->x->is_elsewhere[value->id]) r->found = value;
}

// Fails if a node other than Shape reads a kv cache that another stage keeps: only its shape is
// known here.
static enum ree_status check_readers(struct ree_extract *x) {
    char label[256];
    for (size_t i = 0; i < x->graph->n_nodes; i++) {
        const struct ree_node *node = x->graph->nodes[i];
        struct reader r = {.x = x};
        if (!x->has[i] || (strcmp(node->op_type, "Shape") == 0 && !node->domain[0])) continue;
        visit_read(node, look_for_kv_cache, &r);
        if (r.found)
            return ree_fail(x->err, REE_UNSUPPORTED,
                            "%s reads the kv cache '%s', which belongs to another stage",
                            ree_node_label(node, label, sizeof label), r.found->name);
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
    x->is_elsewhere = ree_arena_alloc_array(&x->scratch, graph->n_values + 1, sizeof(bool));
    if (!out->inputs || !out->graph->inputs || !x->is_elsewhere) return ree_no_memory(x->err);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        const struct ree_value *value = graph->inputs[i];
        bool cache = x->kv_cache_at[i] != 0;
        bool own = cache && x->kv_cache_stage[x->kv_cache_at[i] - 1] == x->stage;
        bool wanted = own || x->reads.values[value->id];
        for (size_t k = 0; k < n_always; k++)
            wanted = wanted || always[k] == i;
        if (!wanted || !ree_extract_is_input(graph, value)) continue;
        x->is_elsewhere[value->id] = cache && !own;
        REE_TRY(add_input(
            x, &(struct ree_stage_input){.shape_only = cache && !own, .input = i, .value = value}));
    }
    for (size_t i = 0; cut && i < cut->n_values; i++)
        if (x->reads.values[cut->values[i]->id])
            REE_TRY(
                add_input(x, &(struct ree_stage_input){.is_cut = true, .value = cut->values[i]}));
    return check_readers(x);
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
    out->model_outputs =
        ree_arena_alloc_array(arena, graph->n_outputs + 1, sizeof *out->model_outputs);
    if (!out->outputs || !out->graph->outputs || !out->model_outputs) return ree_no_memory(x->err);
    for (size_t i = 0; i < graph->n_outputs; i++) {
        if (x->output_stage[i] != x->stage) continue;
        out->model_outputs[out->n_model_outputs++] = i;
        REE_TRY(add_output(x, frame, graph->outputs[i]));
    }
    for (size_t i = 0; cut && i < cut->n_values; i++) {
        const struct ree_node *maker = cut->values[i]->producer;
        if (maker && x->partition->stage_of[maker->id] == x->stage)
            REE_TRY(add_output(x, frame, cut->values[i]));
    }
    return REE_OK;
}

// Assembly

static enum ree_status build(struct ree_extract *x, const size_t *always, size_t n_always) {
    const struct ree_graph *graph = x->graph;
    REE_TRY(ree_extract_find_owners(x));
    REE_TRY(mark(x));
    x->map = ree_arena_alloc_array(&x->scratch, graph->n_values + 1, sizeof *x->map);
    struct ree_graph *to = x->out->graph = ree_graph_create();
    if (!x->map || !to) return ree_no_memory(x->err);
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
    if (!to->nodes || !x->out->node_of || !x->out->is_copy) return ree_no_memory(x->err);
    to->nodes_capacity = n + 1;
    const struct ree_extract_frame frame = {.from = graph, .to = to, .map = x->map};
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (!x->has[i]) continue;
        x->out->node_of[to->n_nodes] = (uint32_t)i;
        x->out->is_copy[to->n_nodes] = x->first[i] < x->stage;
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
    ree_graph_destroy(stage->graph); // also releases everything in its arena
    *stage = (struct ree_stage_graph){0};
}
