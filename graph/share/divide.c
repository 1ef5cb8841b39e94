// Follows the samples through a graph, and decides what each node does on one rank.
#include "graph/share/divide.h"

#include <string.h>

#define MAX_PARTS 4096

static enum ree_status allocate(struct ree_divide *d) {
    size_t n_values = d->graph->n_values + 1, n_nodes = d->graph->n_nodes + 1;
    struct ree_arena *arena = &d->arena;
    d->samples = ree_arena_alloc_array(arena, n_values, sizeof *d->samples);
    d->wanted = ree_arena_alloc_array(arena, n_values, sizeof *d->wanted);
    d->reads_all = ree_arena_alloc_array(arena, n_values, sizeof *d->reads_all);
    d->reads_own = ree_arena_alloc_array(arena, n_values, sizeof *d->reads_own);
    d->value_part = ree_arena_alloc_array(arena, n_values, sizeof *d->value_part);
    d->roles = ree_arena_alloc_array(arena, n_nodes, sizeof *d->roles);
    d->own = ree_arena_alloc_array(arena, n_nodes, sizeof(struct ree_own_node *));
    d->sums = ree_arena_alloc_array(arena, n_nodes, sizeof(struct ree_sum_node *));
    d->node_part = ree_arena_alloc_array(arena, n_nodes, sizeof *d->node_part);
    if (!d->samples || !d->wanted || !d->reads_all || !d->reads_own || !d->value_part ||
        !d->roles || !d->own || !d->sums || !d->node_part)
        return ree_no_memory(d->err);
    return REE_OK;
}

static struct ree_own_node *new_own(struct ree_divide *d, const struct ree_node *node) {
    struct ree_own_node *own = ree_arena_alloc(&d->arena, sizeof *own);
    if (own) own->needs = ree_arena_alloc_array(&d->arena, node->n_inputs + 1, sizeof *own->needs);
    return own && own->needs ? own : NULL;
}

static enum ree_status refuse(struct ree_divide *d, const struct ree_node *node, const char *why) {
    char label[256];
    return ree_fail(d->err, REE_UNSUPPORTED,
                    "the samples of a batch cannot be divided among ranks: %s: %s",
                    ree_node_label(node, label, sizeof label), why);
}

struct reads {
    struct ree_divide *d;
    bool is_divided; // whether a value that the node reads is divided
    bool has_groups; // whether such a value has several groups (struct ree_samples)
    uint32_t part;   // the last part that computes such a value
};

static void visit_read(void *user, struct ree_value **use) {
    struct reads *r = user;
    const struct ree_value *value = *use;
    if (value->graph != r->d->graph) return;
    const struct ree_samples *samples = &r->d->samples[value->id];
    r->is_divided |= samples->is_divided;
    r->has_groups |= samples->is_divided && samples->groups != 1;
    if (r->d->value_part[value->id] > r->part) r->part = r->d->value_part[value->id];
}

static void visit(const struct ree_node *node, void (*each)(void *, struct ree_value **),
                  void *user) {
    ree_node_visit_uses((struct ree_node *)(uintptr_t)node, each, user); // `each` does not write
}

static bool has_shapes(const struct ree_node *node) {
    for (size_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] && !ree_share_has_shape(node->inputs[i])) return false;
    for (size_t i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] && !ree_share_has_shape(node->outputs[i])) return false;
    return node->n_inputs && node->inputs[0] && node->n_outputs && node->outputs[0];
}

// Whatever a rule returns: values have the samples where it says.
static bool fit_samples(const struct ree_divide *d, const struct ree_node *node,
                        const struct ree_division *x) {
    for (size_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] && !ree_samples_fit(d, node->inputs[i], x->own->needs[i])) return false;
    for (size_t i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] && !ree_samples_fit(d, node->outputs[i], x->outputs[i])) return false;
    return true;
}

static enum ree_status divide_node(struct ree_divide *d, const struct ree_node *node) {
    struct reads reads = {.d = d};
    visit(node, visit_read, &reads);
    d->node_part[node->id] = reads.part;
    struct ree_division x = {.d = d, .node = node, .role = REE_NODE_OWN};
    x.outputs = ree_arena_alloc_array(&d->arena, node->n_outputs + 1, sizeof *x.outputs);
    if (!x.outputs) return ree_no_memory(d->err);
    if (reads.is_divided) {
        ree_share_rule rule = ree_share_find(node);
        if (!rule) return refuse(d, node, "ree has no rule for it");
        if (reads.has_groups && !ree_share_takes_groups(rule))
            return refuse(d, node, "its samples are not at one place");
        for (size_t i = 0; i < node->n_attrs; i++)
            if (node->attrs[i].graph) return refuse(d, node, "it has a subgraph");
        if (!node->domain[0] && node->opset < 13)
            return refuse(d, node, "it has an opset before 13");
        if (!has_shapes(node))
            return refuse(d, node, "a shape is not known, or has more than 2^31 - 1 elements");
        x.own = new_own(d, node);
        x.sum = ree_arena_alloc(&d->arena, sizeof *x.sum);
        if (!x.own || !x.sum) return ree_no_memory(d->err);
        const char *why = rule(&x);
        if (!why && !fit_samples(d, node, &x)) why = "its samples are not at one place";
        if (why) return refuse(d, node, why);
        d->own[node->id] = x.own;
        if (x.role == REE_NODE_SUM) d->sums[node->id] = x.sum;
        d->roles[node->id] = x.role;
    }
    uint32_t part = reads.part + (d->roles[node->id] == REE_NODE_SUM);
    for (size_t i = 0; i < node->n_outputs; i++) {
        const struct ree_value *value = node->outputs[i];
        if (!value) continue;
        d->samples[value->id] = x.outputs[i];
        d->value_part[value->id] = part;
    }
    if (part >= d->n_parts) d->n_parts = part + 1;
    if (d->n_parts > MAX_PARTS)
        return ree_fail(d->err, REE_UNSUPPORTED,
                        "a step with more than %d sums over samples, each after the other, cannot "
                        "be divided among ranks",
                        MAX_PARTS);
    return REE_OK;
}

// Reading, from the last node to the first

static void read_value(struct ree_divide *d, const struct ree_value *value,
                       struct ree_samples form) {
    if (d->samples[value->id].is_divided) {
        d->reads_own[value->id] = true;
    } else if (!form.is_divided) {
        d->reads_all[value->id] = true;
    } else if (d->wanted[value->id].is_divided && !ree_samples_same(d->wanted[value->id], form)) {
        d->reads_all[value->id] = true; // the builder selects the samples
    } else {
        d->wanted[value->id] = form;
        d->reads_own[value->id] = true;
    }
}

static void read_inputs(struct ree_divide *d, const struct ree_node *node,
                        const struct ree_own_node *own) {
    for (size_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] && !(own->list_input && own->list_input == i))
            read_value(d, node->inputs[i], own->needs[i]);
}

static void visit_all(void *user, struct ree_value **use) {
    struct ree_divide *d = user;
    if ((*use)->graph == d->graph) d->reads_all[(*use)->id] = true;
}

static enum ree_status read_node(struct ree_divide *d, const struct ree_node *node) {
    bool all = false, own = false;
    for (size_t i = 0; i < node->n_outputs; i++) {
        if (!node->outputs[i]) continue;
        all |= d->reads_all[node->outputs[i]->id];
        own |= d->reads_own[node->outputs[i]->id];
    }
    if (d->roles[node->id] != REE_NODE_COMMON) {
        if (d->roles[node->id] == REE_NODE_SUM && own) d->reads_all[node->outputs[0]->id] = true;
        if (own || all)
            read_inputs(d, node, d->own[node->id]);
        else
            d->own[node->id] = NULL; // nothing reads it
        return REE_OK;
    }
    if (own) {
        struct ree_own_node *how = new_own(d, node);
        if (!how) return ree_no_memory(d->err);
        if (node->outputs[0] && ree_share_push(d, node, d->wanted[node->outputs[0]->id], how)) {
            d->own[node->id] = how;
            read_inputs(d, node, how);
        } else {
            all = true;
            for (size_t i = 0; i < node->n_outputs; i++)
                if (node->outputs[i] && d->reads_own[node->outputs[i]->id])
                    d->reads_all[node->outputs[i]->id] = true;
        }
    }
    if (all) visit(node, visit_all, d);
    return REE_OK;
}

enum ree_status ree_divide_graph(struct ree_divide *d) {
    const struct ree_graph *graph = d->graph;
    REE_TRY(allocate(d));
    // The builder's nodes have the graph's opset.
    if (ree_graph_opset(graph, "") < 13)
        return ree_fail(d->err, REE_UNSUPPORTED,
                        "a training step can be divided among ranks from opset 13 on; this one "
                        "has opset %lld",
                        (long long)ree_graph_opset(graph, ""));
    d->n_parts = 1;
    for (size_t i = 0; i < d->options->n_data; i++)
        d->samples[d->options->data[i]->id] = (struct ree_samples){true, 0, 1, 1};
    for (size_t i = 0; i < graph->n_nodes; i++)
        REE_TRY(divide_node(d, graph->nodes[i]));
    for (size_t i = 0; i < graph->n_outputs; i++) {
        const struct ree_value *value = graph->outputs[i];
        if (d->samples[value->id].is_divided)
            return ree_fail(d->err, REE_UNSUPPORTED,
                            "the samples of a batch cannot be divided among ranks: the output "
                            "'%s' consists of samples",
                            value->name);
        d->reads_all[value->id] = true;
    }
    for (size_t i = graph->n_nodes; i-- > 0;)
        REE_TRY(read_node(d, graph->nodes[i]));
    return REE_OK;
}
