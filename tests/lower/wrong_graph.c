#include "wrong_graph.h"

#include "test.h"

#include <string.h>

#define MAX_NODES 4

uint32_t wrong_below(struct splitmix *rng, uint32_t n) {
    return splitmix_below(rng, n);
}

static void *memory(struct ree_graph *graph, size_t size) {
    void *bytes = ree_arena_alloc(graph->arena, size + 1);
    REQUIRE(bytes != NULL);
    return bytes;
}

static struct ree_value *any_value(struct ree_graph *graph, struct splitmix *rng) {
    if (graph->n_values == 0) return NULL;
    // Prefers the most recent value.
    if (wrong_below(rng, 3) == 0) return graph->values[graph->n_values - 1];
    return graph->values[wrong_below(rng, (uint32_t)graph->n_values)];
}

static struct ree_value *constant(struct ree_graph *graph, struct splitmix *rng) {
    static const int64_t numbers[2] = {1, 0};
    static const enum ree_dtype types[] = {REE_BOOL, REE_I64, REE_F32, REE_U8};
    struct ree_value *value = ree_graph_add_value(graph, "constant");
    REQUIRE(value != NULL);
    value->dtype = types[wrong_below(rng, 4)];
    value->has_shape = true;
    value->rank = wrong_below(rng, 2);
    value->dims[0] = 1 + wrong_below(rng, 2) * (value->dtype == REE_I64);
    value->data = numbers;
    value->nbytes =
        ree_dtype_size(value->dtype) * (value->rank ? (size_t)value->dims[0] : (size_t)1);
    return value;
}

static void add_node(struct ree_graph *graph, struct splitmix *rng) {
    static const struct {
        const char *type;
        size_t n_in;
    } kinds[] = {
        {"Identity", 1},
        {"Add", 2},
        {"Mul", 2},
        {"Less", 2},
        {"Not", 1},
        {"Concat", 2},
        {"Unsqueeze", 2},
        {"SequenceInsert", 2},
        {"SequenceLength", 1},
        {"Squeeze", 1},
        {"SequenceEmpty", 0},
        {"ConstantOfShape", 1},
        {"OptionalGetElement", 1},
        {"Reshape", 2},
        {"Optional", 1},
        {"NonZero", 1},
    };
    uint32_t kind = wrong_below(rng, sizeof kinds / sizeof kinds[0]);
    struct ree_node *node = memory(graph, sizeof *node);
    *node = (struct ree_node){.name = "", .op_type = kinds[kind].type, .domain = "", .opset = 18};
    node->inputs = memory(graph, 2 * sizeof *node->inputs);
    for (; node->n_inputs < kinds[kind].n_in; node->n_inputs++) {
        node->inputs[node->n_inputs] = any_value(graph, rng);
        if (!node->inputs[node->n_inputs]) return;
    }
    node->outputs = memory(graph, sizeof *node->outputs);
    node->outputs[node->n_outputs++] = ree_graph_add_value(graph, "made");
    REQUIRE(node->outputs[0] != NULL);
    graph->nodes[graph->n_nodes++] = node;
}

struct ree_graph *wrong_graph(struct test_node *n, struct splitmix *rng) {
    struct ree_graph *graph = ree_graph_add_subgraph(n->graph);
    REQUIRE(graph != NULL);
    bool branch = !strcmp(n->node.op_type, "If");
    size_t n_in = branch ? 0 : n->node.n_inputs, n_out = n->node.n_outputs;
    if (!strcmp(n->node.op_type, "Loop")) {
        if (n_in < 2) n_in = 2;
        n_out++;
    }
    if (wrong_below(rng, 12) == 0) n_in = wrong_below(rng, 5);
    if (wrong_below(rng, 12) == 0) n_out = wrong_below(rng, 5);
    graph->inputs = memory(graph, n_in * sizeof *graph->inputs);
    graph->outputs = memory(graph, n_out * sizeof *graph->outputs);
    graph->nodes = memory(graph, MAX_NODES * sizeof *graph->nodes);
    for (; graph->n_inputs < n_in; graph->n_inputs++) {
        struct ree_value *value = ree_graph_add_value(graph, "in");
        REQUIRE(value != NULL);
        value->is_input = true;
        graph->inputs[graph->n_inputs] = value;
    }
    if (n_in == 0 || wrong_below(rng, 2)) constant(graph, rng);
    for (uint32_t k = wrong_below(rng, MAX_NODES + 1); k > 0; k--)
        add_node(graph, rng);
    for (; graph->n_outputs < n_out; graph->n_outputs++) {
        struct ree_value *value = any_value(graph, rng);
        // A loop's condition, and values that are passed through unchanged.
        bool loops = !branch && n_in > graph->n_outputs + 1;
        if (loops && wrong_below(rng, 2)) value = graph->inputs[graph->n_outputs + 1];
        graph->outputs[graph->n_outputs] = value;
    }
    return graph;
}
