// Products with a constant matrix that is first transposed, or widened from float16 or bfloat16, or
// both. The product reads the matrix as it is stored, so that weights are neither copied nor
// doubled in size. The bits do not change, because a product widens exactly.
#include "graph/passes/rewrite.h"

#include <string.h>

static bool is_op(const struct ree_node *node, const char *op_type) {
    return node && !node->domain[0] && strcmp(node->op_type, op_type) == 0 && node->n_inputs > 0 &&
           node->inputs[0];
}

// Returns whether the node transposes a matrix. Without perm the order of axes is reversed.
static bool is_matrix_transpose(const struct ree_node *node) {
    if (!is_op(node, "Transpose")) return false;
    size_t n;
    const int64_t *perm = ree_node_ints(node, "perm", &n);
    return !perm || (n == 2 && perm[0] == 1 && perm[1] == 0);
}

static bool is_widening(const struct ree_node *node) {
    if (!is_op(node, "Cast") || ree_node_int(node, "to", REE_DTYPE_NONE) != REE_F32) return false;
    enum ree_dtype from = node->inputs[0]->dtype;
    return (from == REE_F16 || from == REE_BF16) && node->inputs[0]->data;
}

static bool is_matrix_constant(const struct ree_value *value) {
    return value->data && !value->is_input && !value->producer && value->has_shape &&
           value->rank == 2;
}

static bool take_factor(struct ree_graph *graph, struct ree_node *node) {
    if (!is_op(node, "MatMul") || node->n_inputs != 2 || !node->inputs[1]) return false;
    struct ree_value *value = node->inputs[1];
    bool transposed = false, widened = false;
    while (value->producer) {
        if (is_matrix_transpose(value->producer))
            transposed = !transposed;
        else if (!widened && is_widening(value->producer))
            widened = true;
        else
            return false;
        value = value->producer->inputs[0];
    }
    if (value == node->inputs[1] || !is_matrix_constant(value)) return false;
    struct ree_attr *attrs = ree_arena_alloc_array(graph->arena, 2, sizeof *attrs);
    struct ree_value **inputs = ree_arena_alloc_array(graph->arena, 2, sizeof(struct ree_value *));
    if (!attrs || !inputs) {
        graph->lacked_memory = true;
        return false;
    }
    attrs[0] = (struct ree_attr){.name = "transB", .kind = REE_ATTR_INT, .i = transposed};
    attrs[1] = (struct ree_attr){.name = "widened", .kind = REE_ATTR_INT, .i = widened};
    inputs[0] = node->inputs[0];
    inputs[1] = value;
    node->domain = "ree.internal";
    node->opset = 1;
    node->attrs = attrs;
    node->n_attrs = 2;
    node->inputs = inputs;
    return true;
}

bool ree_pass_factors(struct ree_graph *graph) {
    bool changed = ree_pass_subgraphs(graph, ree_pass_factors);
    for (size_t i = 0; i < graph->n_nodes; i++)
        changed = take_factor(graph, graph->nodes[i]) || changed;
    if (changed) ree_graph_count_uses(graph);
    return changed;
}
