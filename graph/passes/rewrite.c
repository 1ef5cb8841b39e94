#include "graph/passes/rewrite.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"

bool ree_pass_subgraphs(struct ree_graph *graph, bool (*pass)(struct ree_graph *)) {
    bool changed = false;
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (size_t j = 0; j < graph->nodes[i]->n_attrs; j++)
            if (graph->nodes[i]->attrs[j].graph) {
                struct ree_graph *body = graph->nodes[i]->attrs[j].graph;
                changed = pass(body) || changed;
                graph->lacked_memory = graph->lacked_memory || body->lacked_memory;
            }
    return changed;
}

bool ree_rewrite_init(struct ree_rewrite *rewrite, struct ree_graph *graph) {
    rewrite->graph = graph;
    // One element more, because calloc of 0 bytes may return NULL.
    rewrite->replacement = ree_alloc_zeroed(graph->n_values + 1, sizeof *rewrite->replacement);
    rewrite->removed = ree_alloc_zeroed(graph->n_nodes + 1, sizeof *rewrite->removed);
    if (rewrite->replacement && rewrite->removed) return true;
    ree_rewrite_finish(rewrite);
    graph->lacked_memory = true;
    return false;
}

void ree_rewrite_finish(struct ree_rewrite *rewrite) {
    ree_free(rewrite->replacement);
    ree_free(rewrite->removed);
    memset(rewrite, 0, sizeof *rewrite);
}

struct ree_value *ree_rewrite_resolve(const struct ree_rewrite *rewrite, struct ree_value *value) {
    struct ree_value *end = value;
    while (end->graph == rewrite->graph && rewrite->replacement[end->id])
        end = rewrite->replacement[end->id];
    // Shorten the path just walked, so that a long chain of replacements is walked only once.
    while (value != end) {
        struct ree_value *next = rewrite->replacement[value->id];
        rewrite->replacement[value->id] = end;
        value = next;
    }
    return end;
}

static void redirect(void *user, struct ree_value **use) {
    *use = ree_rewrite_resolve(user, *use);
}

void ree_rewrite_node(struct ree_rewrite *rewrite, struct ree_node *node) {
    ree_node_visit_uses(node, redirect, rewrite);
}

void ree_rewrite_apply(struct ree_rewrite *rewrite) {
    struct ree_graph *graph = rewrite->graph;
    size_t n = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct ree_node *node = graph->nodes[i];
        if (rewrite->removed[i]) {
            // The node's outputs now have no producer, unless another node has taken them over.
            for (size_t j = 0; j < node->n_outputs; j++)
                if (node->outputs[j] && node->outputs[j]->producer == node)
                    node->outputs[j]->producer = NULL;
            continue;
        }
        ree_rewrite_node(rewrite, node);
        node->id = (uint32_t)n;
        graph->nodes[n++] = node;
    }
    graph->n_nodes = n;
    ree_graph_count_uses(graph);
}

bool ree_node_is_matmul_nbits(const struct ree_node *node) {
    if (strcmp(node->op_type, "MatMulNBits") != 0) return false;
    return strcmp(node->domain, "com.microsoft") == 0 || strcmp(node->domain, "ree") == 0;
}
