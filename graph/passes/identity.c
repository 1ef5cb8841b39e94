// Removes nodes that return their input unchanged: Identity, Dropout at inference, Cast to the type
// that the input already has.
#include "graph/passes/rewrite.h"

#include <string.h>

static bool is_false_constant(const struct ree_value *value) {
    return value->data && !value->is_input && value->nbytes == 1 &&
           *(const unsigned char *)value->data == 0;
}

static bool is_unused(const struct ree_node *node, size_t output) {
    return node->n_outputs <= output || !node->outputs[output] ||
           (node->outputs[output]->n_uses == 0 && !node->outputs[output]->is_output);
}

static bool is_idle_dropout(const struct ree_node *node) {
    if (!is_unused(node, 1)) return false; // the mask is used
    if (node->opset < 7) return ree_node_int(node, "is_test", 0) != 0;
    if (node->opset < 12 || node->n_inputs < 3 || !node->inputs[2]) return true;
    return is_false_constant(node->inputs[2]);
}

// Uses only types that are certain: those of inputs and constants, which are checked against their
// data, and the results of other casts. Types that the file declares for intermediate values are
// not certain.
static bool is_idle_cast(const struct ree_node *node) {
    const struct ree_value *input = node->inputs[0];
    int64_t to = ree_node_int(node, "to", REE_DTYPE_NONE), from = input->dtype;
    if (input->producer) {
        const struct ree_node *producer = input->producer;
        if (strcmp(producer->op_type, "Cast") != 0 || producer->domain[0]) return false;
        from = ree_node_int(producer, "to", REE_DTYPE_NONE);
    } else if (!input->is_input && !input->data) {
        return false; // for example an input of a subgraph's body
    }
    return from != REE_DTYPE_NONE && from == to;
}

static bool is_identity(const struct ree_node *node) {
    if (node->domain[0] || node->n_inputs == 0 || !node->inputs[0]) return false;
    if (node->n_outputs == 0 || !node->outputs[0]) return false;
    if (strcmp(node->op_type, "Identity") == 0) return true;
    if (strcmp(node->op_type, "Dropout") == 0) return is_idle_dropout(node);
    if (strcmp(node->op_type, "Cast") == 0) return is_idle_cast(node);
    return false;
}

// Gives both tensors the same declared type, so that lowering can still find a contradiction. The
// declared type of a value within a graph is in no hash, so it must not decide what a pass does.
static void share_type(struct ree_value *from, struct ree_value *to) {
    bool plain = from->kind == REE_TENSOR && to->kind == REE_TENSOR && !to->nullable;
    if (!plain || to->dtype == REE_DTYPE_NONE) return;
    // What a graph that may not run declares must not reach a graph that reads the same value.
    const bool same_graph = from->graph == to->graph;
    if (same_graph && from->dtype == REE_DTYPE_NONE && from->producer) from->dtype = to->dtype;
    if (from->dtype == to->dtype || from->dtype == REE_DTYPE_NONE) return;
    to->has_two_types = true;
    if (same_graph) from->has_two_types = true;
}

// Makes the producer of `from` compute `to`, an output of the graph, instead. Returns false if that
// is not possible.
static bool take_over(struct ree_rewrite *rewrite, struct ree_value *from, struct ree_value *to) {
    if (from->graph != rewrite->graph || !from->producer || from->is_output) return false;
    struct ree_node *producer = from->producer;
    if (ree_node_is_random(producer)) return false;
    for (size_t i = 0; i < producer->n_outputs; i++)
        if (producer->outputs[i] == from) producer->outputs[i] = to;
    to->producer = producer;
    if (to->dtype == REE_DTYPE_NONE && to->kind == from->kind) to->dtype = from->dtype;
    from->producer = NULL;
    rewrite->replacement[from->id] = to;
    return true;
}

bool ree_pass_identity(struct ree_graph *graph) {
    bool changed = ree_pass_subgraphs(graph, ree_pass_identity);
    struct ree_rewrite rewrite;
    if (!ree_rewrite_init(&rewrite, graph)) return changed;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct ree_node *node = graph->nodes[i];
        // Producers come first, so this resolves a chain of identities.
        ree_rewrite_node(&rewrite, node);
        if (!is_identity(node)) continue;
        struct ree_value *from = node->inputs[0], *to = node->outputs[0];
        share_type(from, to);
        // An output of the graph keeps its name: the producer of `from` computes it, or this node
        // stays.
        if (to->is_output && !take_over(&rewrite, from, to)) continue;
        if (!to->is_output) rewrite.replacement[to->id] = from;
        rewrite.removed[i] = true;
        changed = true;
    }
    ree_rewrite_apply(&rewrite);
    ree_rewrite_finish(&rewrite);
    return changed;
}
