// Rewrites products with a constant matrix that is first transposed, or widened from float16 or
// bfloat16, or both. The product then reads the matrix as it is stored, so that weights are neither
// copied nor doubled in size. The bits do not change, because a product widens exactly.
//
// Also skips the Reshape of a quantised matrix: MatMulNBits reads the bytes in their order,
// whatever the shape. An embedding table that is also the head is one constant then, which a device
// stores once, although GatherBlockQuantized requires another shape of it.
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

static bool is_constant(const struct ree_value *value) {
    return value && value->data && !value->is_input && !value->producer;
}

// Returns whether the node gives a uint8 constant another shape with as many elements. Shapes with
// 0 or -1 are not accepted: exporters do not write them for constants.
static bool is_valid_reshape(const struct ree_node *node) {
    if (!is_op(node, "Reshape") || node->n_inputs != 2) return false;
    const struct ree_value *from = node->inputs[0], *shape = node->inputs[1];
    if (!is_constant(from) || !from->has_shape || !is_constant(shape)) return false;
    if (shape->dtype != REE_I64 || shape->rank != 1) return false;
    uint64_t left = from->nbytes; // elements of one byte
    for (size_t i = 0; i < shape->nbytes / sizeof(int64_t); i++) {
        int64_t dim;
        memcpy(&dim, (const char *)shape->data + i * sizeof dim, sizeof dim);
        if (dim <= 0 || left % (uint64_t)dim != 0) return false;
        left /= (uint64_t)dim;
    }
    return left == 1 && from->dtype == REE_U8;
}

static bool take_quantised(struct ree_node *node) {
    if (!ree_node_is_matmul_nbits(node)) return false;
    if (node->n_inputs < 2 || !node->inputs[1] || !node->inputs[1]->producer) return false;
    if (!is_valid_reshape(node->inputs[1]->producer)) return false;
    node->inputs[1] = node->inputs[1]->producer->inputs[0];
    return true;
}

bool ree_pass_factors(struct ree_graph *graph) {
    bool changed = ree_pass_subgraphs(graph, ree_pass_factors);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        changed = take_factor(graph, graph->nodes[i]) || changed;
        changed = take_quantised(graph->nodes[i]) || changed;
    }
    if (changed) ree_graph_count_uses(graph);
    return changed;
}
