// Copies values and nodes, including subgraphs that capture values of enclosing graphs.
#include "graph/partition/extract.h"

#include <string.h>

bool ree_extract_is_input(const struct ree_graph *graph, const struct ree_value *value) {
    return value->is_input && !(value->data && graph->ir_version < 4);
}

enum ree_status ree_extract_copy_value(struct ree_extract *x, struct ree_graph *to,
                                       const struct ree_value *value, struct ree_value **out) {
    struct ree_value *copy = ree_graph_add_value(to, value->name);
    if (!copy) return ree_no_memory(x->err);
    uint32_t id = copy->id;
    const char *name = copy->name;
    *copy = *value;
    copy->name = name;
    copy->id = id;
    copy->graph = to;
    copy->producer = NULL;
    copy->is_output = false;
    copy->n_uses = 0;
    *out = copy;
    return REE_OK;
}

enum ree_status ree_extract_find_value(struct ree_extract *x, const struct ree_extract_frame *frame,
                                       const struct ree_value *value, struct ree_value **out) {
    const struct ree_extract_frame *f = frame;
    while (f && f->from != value->graph)
        f = f->outer;
    if (!f)
        return ree_fail(x->err, REE_INTERNAL, "'%s' belongs to no enclosing graph", value->name);
    if (!f->map[value->id]) {
        if (f->outer || value->producer || ree_extract_is_input(x->graph, value))
            return ree_fail(x->err, REE_INTERNAL,
                            "stage %zu reads '%s', which is not one of its inputs", x->stage,
                            value->name);
        REE_TRY(ree_extract_copy_value(x, f->to, value, &f->map[value->id]));
    }
    *out = f->map[value->id];
    return REE_OK;
}

static enum ree_status copy_subgraph(struct ree_extract *x, const struct ree_extract_frame *outer,
                                     const struct ree_graph *from, struct ree_graph **out) {
    struct ree_graph *to = ree_graph_add_subgraph(outer->to);
    if (!to) return ree_no_memory(x->err);
    to->name = from->name;
    to->output_types = from->output_types;
    struct ree_extract_frame frame = {.from = from, .to = to, .outer = outer};
    frame.map = ree_arena_alloc_array(&x->scratch, from->n_values + 1, sizeof *frame.map);
    to->inputs = ree_arena_alloc_array(to->arena, from->n_inputs + 1, sizeof *to->inputs);
    to->outputs = ree_arena_alloc_array(to->arena, from->n_outputs + 1, sizeof *to->outputs);
    to->nodes = ree_arena_alloc_array(to->arena, from->n_nodes + 1, sizeof *to->nodes);
    if (!frame.map || !to->inputs || !to->outputs || !to->nodes) return ree_no_memory(x->err);
    for (size_t i = 0; i < from->n_values; i++) {
        REE_TRY(ree_extract_copy_value(x, to, from->values[i], &frame.map[i]));
        frame.map[i]->is_output = from->values[i]->is_output;
    }
    for (size_t i = 0; i < from->n_nodes; i++)
        REE_TRY(ree_extract_copy_node(x, &frame, from->nodes[i]));
    for (size_t i = 0; i < from->n_inputs; i++)
        REE_TRY(ree_extract_find_value(x, &frame, from->inputs[i], &to->inputs[to->n_inputs++]));
    for (size_t i = 0; i < from->n_outputs; i++)
        REE_TRY(ree_extract_find_value(x, &frame, from->outputs[i], &to->outputs[to->n_outputs++]));
    *out = to;
    return REE_OK;
}

static enum ree_status copy_attributes(struct ree_extract *x, const struct ree_extract_frame *frame,
                                       const struct ree_node *node, struct ree_node *copy) {
    bool has_graph = false;
    for (size_t i = 0; i < node->n_attrs; i++)
        has_graph = has_graph || node->attrs[i].graph;
    if (!has_graph) return REE_OK; // the attributes are shared
    copy->attrs = ree_arena_alloc_array(frame->to->arena, node->n_attrs, sizeof *copy->attrs);
    if (!copy->attrs) return ree_no_memory(x->err);
    memcpy(copy->attrs, node->attrs, node->n_attrs * sizeof *copy->attrs);
    for (size_t i = 0; i < node->n_attrs; i++)
        if (node->attrs[i].graph)
            REE_TRY(copy_subgraph(x, frame, node->attrs[i].graph, &copy->attrs[i].graph));
    return REE_OK;
}

enum ree_status ree_extract_copy_node(struct ree_extract *x, const struct ree_extract_frame *frame,
                                      const struct ree_node *node) {
    struct ree_arena *arena = frame->to->arena;
    struct ree_node *copy = ree_arena_alloc(arena, sizeof *copy);
    if (!copy) return ree_no_memory(x->err);
    *copy = *node;
    copy->id = (uint32_t)frame->to->n_nodes;
    copy->inputs = ree_arena_alloc_array(arena, node->n_inputs + 1, sizeof *copy->inputs);
    copy->outputs = ree_arena_alloc_array(arena, node->n_outputs + 1, sizeof *copy->outputs);
    if (!copy->inputs || !copy->outputs) return ree_no_memory(x->err);
    for (size_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i])
            REE_TRY(ree_extract_find_value(x, frame, node->inputs[i], &copy->inputs[i]));
    REE_TRY(copy_attributes(x, frame, node, copy));
    for (size_t i = 0; i < node->n_outputs; i++) {
        const struct ree_value *value = node->outputs[i];
        if (!value) continue;
        if (!frame->map[value->id])
            REE_TRY(ree_extract_copy_value(x, frame->to, value, &frame->map[value->id]));
        copy->outputs[i] = frame->map[value->id];
        copy->outputs[i]->producer = copy;
    }
    frame->to->nodes[frame->to->n_nodes++] = copy;
    return REE_OK;
}
