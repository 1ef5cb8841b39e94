// Removes everything that no output of the graph depends on: nodes, and constants that nothing
// reads. A node with subgraphs keeps alive all values that its subgraphs read.
#include "graph/passes/rewrite.h"

#include <stdlib.h>
#include "base/memory.h"

struct liveness {
    const struct ree_graph *graph;
    bool *live; // by value id
};

static void mark(void *user, struct ree_value **use) {
    struct liveness *liveness = user;
    if ((*use)->graph == liveness->graph) liveness->live[(*use)->id] = true;
}

static bool is_needed(const struct ree_node *node, const bool *live) {
    for (size_t i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] && live[node->outputs[i]->id]) return true;
    return false;
}

// Inputs stay, because callers pass them. An unused output stays if its node is needed for another
// output.
static bool stays(const struct ree_value *value, const bool *live) {
    return value->is_input || value->producer || live[value->id];
}

bool ree_pass_dead_code(struct ree_graph *graph) {
    bool changed = ree_pass_subgraphs(graph, ree_pass_dead_code);
    struct ree_rewrite rewrite;
    if (!ree_rewrite_init(&rewrite, graph)) return changed;
    struct liveness liveness = {graph, ree_alloc_zeroed(graph->n_values + 1, sizeof(bool))};
    if (!liveness.live) {
        graph->lacked_memory = true;
        ree_rewrite_finish(&rewrite);
        return changed;
    }
    size_t n_nodes = graph->n_nodes, n_values = 0;
    for (size_t i = 0; i < graph->n_outputs; i++)
        mark(&liveness, &graph->outputs[i]);
    for (size_t i = graph->n_nodes; i-- > 0;) {
        if (is_needed(graph->nodes[i], liveness.live))
            ree_node_visit_uses(graph->nodes[i], mark, &liveness);
        else
            rewrite.removed[i] = true;
    }
    ree_rewrite_apply(&rewrite);
    for (size_t i = 0; i < graph->n_values; i++) {
        struct ree_value *value = graph->values[i];
        if (!stays(value, liveness.live)) continue;
        graph->values[n_values] = value;
        // `live` is indexed by the old id, which is `i`: values after this one are not renumbered
        // yet.
        value->id = (uint32_t)n_values++;
    }
    changed = changed || graph->n_nodes != n_nodes || graph->n_values != n_values;
    graph->n_values = n_values;
    ree_free(liveness.live);
    ree_rewrite_finish(&rewrite);
    return changed;
}
