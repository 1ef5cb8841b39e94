// Finds the values that each node reads, and the control nodes.
#include "graph/partition/planner.h"

#include <string.h>

#include "graph/passes/rewrite.h"

struct collector {
    const struct ree_graph *graph;
    const struct ree_node *node;
    size_t n;
    struct ree_use *uses; // NULL while the uses are counted
};

static void collect(void *user, struct ree_value **place) {
    struct collector *c = user;
    if ((*place)->graph != c->graph) return;
    if (c->uses) {
        uintptr_t at = (uintptr_t)place - (uintptr_t)c->node->inputs;
        bool is_input = at / sizeof(struct ree_value *) < c->node->n_inputs;
        c->uses[c->n] = (struct ree_use){
            .value = *place,
            .input = is_input ? (uint32_t)(at / sizeof(struct ree_value *)) : UINT32_MAX,
        };
    }
    c->n++;
}

enum ree_status ree_planner_find_uses(struct ree_planner *p, struct ree_error *err) {
    const struct ree_graph *graph = p->graph;
    struct collector c = {.graph = graph};
    p->use_starts = ree_arena_alloc_array(&p->arena, graph->n_nodes + 1, sizeof *p->use_starts);
    p->is_kv_cache = ree_arena_alloc_array(&p->arena, graph->n_values + 1, sizeof *p->is_kv_cache);
    if (!p->use_starts || !p->is_kv_cache) return ree_no_memory(err);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        ree_node_visit_uses(graph->nodes[i], collect, &c);
        p->use_starts[i + 1] = c.n;
    }
    c.uses = p->uses = ree_arena_alloc_array(&p->arena, c.n + 1, sizeof *p->uses);
    if (!p->uses) return ree_no_memory(err);
    c.n = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        c.node = graph->nodes[i];
        ree_node_visit_uses(graph->nodes[i], collect, &c);
    }
    for (size_t i = 0; i < p->options->n_kv_caches; i++)
        p->is_kv_cache[graph->inputs[p->options->kv_caches[i].input]->id] = true;
    return REE_OK;
}

// Returns whether a control node may read the value. A run may replace the default value of an
// input, but the replacement is as small.
static bool may_feed_control(const struct ree_planner *p, const struct ree_node *node,
                             const struct ree_value *value) {
    if (value->data) return value->nbytes <= REE_CONTROL_BYTES;
    if (value->producer) return p->is_control[value->producer->id];
    if (!value->is_input) return false;
    // Of a kv cache, only the shape may be read.
    return !p->is_kv_cache[value->id] || (strcmp(node->op_type, "Shape") == 0 && !node->domain[0]);
}

static bool is_control(const struct ree_planner *p, const struct ree_node *node) {
    if (ree_node_classify(node) != REE_NODE_LIGHT || ree_node_has_subgraph(node) ||
        ree_node_is_random(node) || ree_node_attr_bytes(node) > REE_CONTROL_BYTES)
        return false;
    for (size_t i = p->use_starts[node->id]; i < p->use_starts[node->id + 1]; i++)
        if (!may_feed_control(p, node, p->uses[i].value)) return false;
    return true;
}

enum ree_status ree_planner_find_control(struct ree_planner *p, struct ree_error *err) {
    p->is_control = ree_arena_alloc_array(&p->arena, p->graph->n_nodes + 1, sizeof *p->is_control);
    if (!p->is_control) return ree_no_memory(err);
    // A cache's next value is observed, and its memory kept, in one stage.
    bool *makes_cache =
        ree_arena_alloc_array(&p->arena, p->graph->n_nodes + 1, sizeof *makes_cache);
    if (!makes_cache) return ree_no_memory(err);
    for (size_t i = 0; i < p->options->n_kv_caches; i++) {
        const struct ree_value *next = p->graph->outputs[p->options->kv_caches[i].output];
        if (next->producer) makes_cache[next->producer->id] = true;
    }
    for (size_t i = 0; i < p->graph->n_nodes; i++) // producers come first
        p->is_control[i] = !makes_cache[i] && is_control(p, p->graph->nodes[i]);
    return REE_OK;
}
