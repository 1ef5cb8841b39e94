// Reads the weights of products with quantised matrices from another constant that has the same
// bytes in the same place: an embedding table that is also the head is declared twice, because
// GatherBlockQuantized and MatMulNBits require different shapes. MatMulNBits ignores the shape.
// Afterwards the table is stored on a device, and counted, once.
#include "graph/passes/rewrite.h"

#include <string.h>

static bool is_constant(const struct ree_value *value) {
    return value && value->data && !value->is_input && !value->producer;
}

// Returns the first constant of the graph with the bytes of `value`; `value` itself if there is no
// other one.
static struct ree_value *first_alike(const struct ree_graph *graph, struct ree_value *value) {
    for (size_t i = 0; i < graph->n_values; i++) {
        struct ree_value *other = graph->values[i];
        if (is_constant(other) && other->data == value->data && other->nbytes == value->nbytes &&
            other->dtype == value->dtype && other->rank <= value->rank)
            return other;
    }
    return value;
}

bool ree_pass_shared_weights(struct ree_graph *graph) {
    bool changed = ree_pass_subgraphs(graph, ree_pass_shared_weights);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct ree_node *node = graph->nodes[i];
        if (strcmp(node->op_type, "MatMulNBits") != 0 || strcmp(node->domain, "com.microsoft") != 0)
            continue;
        if (node->n_inputs < 2 || !is_constant(node->inputs[1]) || node->inputs[1]->graph != graph)
            continue;
        struct ree_value *first = first_alike(graph, node->inputs[1]);
        if (first == node->inputs[1]) continue;
        node->inputs[1] = first;
        changed = true;
    }
    if (changed) ree_graph_count_uses(graph);
    return changed;
}
