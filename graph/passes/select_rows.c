// Computing an output for some of its rows alone: of the logits of a language model, those of the
// last token. What comes after the choice works row by row, so the rows keep their bits.
#include "graph/passes/rewrite.h"

#include <string.h>

static bool is_op(const struct ree_node *node, const char *op_type) {
    return strcmp(node->op_type, op_type) == 0;
}

// A constant that is the same for every row: one number, or one for each column.
static bool is_row_constant(const struct ree_value *value) {
    return value && value->data && !value->is_input && value->has_shape && value->rank <= 1;
}

// The input of a step that treats elements alike, or NULL.
static struct ree_value *through_elementwise(const struct ree_node *node) {
    static const char *const unary[] = {"Cast", "Identity", "Tanh"};
    static const char *const binary[] = {"Add", "Sub", "Mul", "Div"};
    if (node->domain[0] || node->n_inputs == 0) return NULL;
    for (size_t i = 0; i < sizeof unary / sizeof *unary; i++)
        if (is_op(node, unary[i])) return node->inputs[0];
    for (size_t i = 0; i < sizeof binary / sizeof *binary; i++) {
        if (!is_op(node, binary[i]) || node->n_inputs != 2) continue;
        if (is_row_constant(node->inputs[1])) return node->inputs[0];
        return is_row_constant(node->inputs[0]) ? node->inputs[1] : NULL;
    }
    return NULL;
}

// A product with one constant matrix, by whatever operator.
static bool is_head(const struct ree_node *node) {
    const struct ree_value *b = node->n_inputs >= 2 ? node->inputs[1] : NULL;
    if (is_op(node, "MatMulNBits") && strcmp(node->domain, "com.microsoft") == 0) return true;
    bool product =
        is_op(node, "MatMul") && (!node->domain[0] || strcmp(node->domain, "ree.internal") == 0);
    return product && b && b->data && !b->is_input && b->has_shape && b->rank == 2;
}

// The node that makes the logits' rows, if nothing after it mixes rows or is used elsewhere.
static struct ree_node *find_head(struct ree_value *output) {
    struct ree_value *value = output;
    uint32_t uses = 1;
    while (value && value->producer && value->n_uses == uses) {
        if (is_head(value->producer)) return value->producer;
        value = through_elementwise(value->producer);
    }
    return NULL;
}

static struct ree_node *new_gather(struct ree_graph *graph, struct ree_value *data,
                                   struct ree_value *rows, struct ree_value *out) {
    struct ree_node *node = ree_arena_alloc(graph->arena, sizeof *node);
    struct ree_attr *attr = ree_arena_alloc(graph->arena, sizeof *attr);
    struct ree_value **ports = ree_arena_alloc_array(graph->arena, 3, sizeof(struct ree_value *));
    if (!node || !attr || !ports) return NULL;
    ports[0] = data;
    ports[1] = rows;
    ports[2] = out;
    *attr = (struct ree_attr){.name = "batch_dims", .kind = REE_ATTR_INT, .i = 1};
    *node = (struct ree_node){.name = out->name,
                              .op_type = "GatherND",
                              .domain = "",
                              .opset = 13,
                              .n_inputs = 2,
                              .inputs = ports,
                              .n_outputs = 1,
                              .outputs = ports + 2,
                              .n_attrs = 1,
                              .attrs = attr};
    out->producer = node;
    return node;
}

static bool insert_before(struct ree_graph *graph, struct ree_node *node, uint32_t at) {
    struct ree_node **nodes =
        ree_arena_alloc_array(graph->arena, graph->n_nodes + 1, sizeof(struct ree_node *));
    if (!nodes) return false;
    memcpy(nodes, graph->nodes, at * sizeof *nodes);
    nodes[at] = node;
    memcpy(nodes + at + 1, graph->nodes + at, (graph->n_nodes - at) * sizeof *nodes);
    graph->nodes = nodes;
    graph->nodes_capacity = ++graph->n_nodes;
    for (size_t i = at; i < graph->n_nodes; i++)
        nodes[i]->id = (uint32_t)i;
    return true;
}

static bool add_input(struct ree_graph *graph, struct ree_value *value) {
    struct ree_value **inputs =
        ree_arena_alloc_array(graph->arena, graph->n_inputs + 1, sizeof(struct ree_value *));
    if (!inputs) return false;
    memcpy(inputs, graph->inputs, graph->n_inputs * sizeof *inputs);
    inputs[graph->n_inputs++] = value;
    graph->inputs = inputs;
    return true;
}

bool ree_pass_select_rows(struct ree_graph *graph, struct ree_value *output, const char *name) {
    for (size_t i = 0; i < graph->n_inputs; i++)
        if (strcmp(graph->inputs[i]->name, name) == 0) return false;
    if (!output->has_shape || output->rank != 3) return false;
    struct ree_node *head = find_head(output);
    if (!head) return false;
    struct ree_value *rows = ree_graph_add_value(graph, name);
    struct ree_value *selected = ree_graph_add_value(graph, "selected_rows");
    if (!rows || !selected) return false;
    rows->dtype = REE_I64;
    rows->has_shape = true;
    rows->rank = 3;
    rows->dims[0] = rows->dims[1] = -1;
    rows->dims[2] = 1;
    rows->is_input = true;
    struct ree_node *gather = new_gather(graph, head->inputs[0], rows, selected);
    if (!gather || !add_input(graph, rows) || !insert_before(graph, gather, head->id)) return false;
    gather->notes = head->notes;
    // The head's inputs may be shared with what the pass has made of it; they are its own to write.
    head->inputs[0] = selected;
    output->dims[1] = -1;
    output->symbols[1] = NULL;
    ree_graph_count_uses(graph);
    return true;
}
