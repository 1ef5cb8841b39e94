#include "graph/partition_graph.h"
#include "splitmix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The contents of every constant; nothing reads them.
#define MOST_BYTES (1 << 20)
static const unsigned char contents[MOST_BYTES];

uint32_t test_random(uint64_t *state) {
    return (uint32_t)(splitmix_step(state) >> 32);
}

uint32_t test_below(uint64_t *state, uint32_t n) {
    return test_random(state) % n;
}

static int add_value(struct test_graph *g, struct test_value value) {
    if (g->n_values == TEST_MOST_VALUES) abort();
    g->values[g->n_values] = value;
    return g->n_values++;
}

int test_add_input(struct test_graph *g, uint32_t rank, const int64_t *dims) {
    struct test_value value = {.is_input = true, .rank = rank};
    memcpy(value.dims, dims, rank * sizeof *dims);
    return add_value(g, value);
}

int test_add_constant(struct test_graph *g, uint64_t n_rows, uint64_t n_columns) {
    if (n_rows * n_columns * 4 > MOST_BYTES) abort();
    return add_value(g, (struct test_value){.n_rows = n_rows, .n_columns = n_columns});
}

int test_add_node(struct test_graph *g, const char *op, int a, int b, int64_t width) {
    if (g->n_nodes == TEST_MOST_NODES) abort();
    int out = add_value(g, (struct test_value){.rank = 3, .dims = {-1, -1, width}});
    g->nodes[g->n_nodes++] = (struct test_node){
        .op = op,
        .domain = "",
        .inputs = {a, b},
        .n_inputs = b < 0 ? 1 : 2,
        .outputs = {out},
        .n_outputs = 1,
        .captured = -1,
    };
    return out;
}

void test_add_output(struct test_graph *g, int value) {
    for (int i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == value) return;
    if (g->n_outputs == TEST_MOST_OUTPUTS) abort();
    g->outputs[g->n_outputs++] = value;
}

// Building the graph

static void *alloc(struct ree_graph *graph, size_t n, size_t size) {
    void *p = ree_arena_alloc_array(graph->arena, n + 1, size);
    if (!p) abort();
    return p;
}

static void shuffle_ints(int *ints, int n, uint64_t *random) {
    for (int i = n - 1; i > 0; i--) {
        int j = (int)test_below(random, (uint32_t)i + 1), swap = ints[i];
        ints[i] = ints[j];
        ints[j] = swap;
    }
}

static void make_values(const struct test_graph *g, struct ree_graph *graph, uint64_t *shuffle,
                        struct ree_value **values) {
    int order[TEST_MOST_VALUES];
    for (int i = 0; i < g->n_values; i++)
        order[i] = i;
    if (shuffle) shuffle_ints(order, g->n_values, shuffle);
    for (int i = 0; i < g->n_values; i++) {
        const struct test_value *from = &g->values[order[i]];
        char name[16];
        snprintf(name, sizeof name, "v%d", order[i]);
        struct ree_value *value = ree_graph_add_value(graph, name);
        if (!value) abort();
        values[order[i]] = value;
        value->dtype = REE_F32;
        value->has_shape = true;
        value->rank = from->n_rows ? 2 : from->rank;
        memcpy(value->dims, from->dims, sizeof from->dims);
        if (!from->n_rows) continue;
        value->dims[0] = (int64_t)from->n_rows;
        value->dims[1] = (int64_t)from->n_columns;
        value->data = contents;
        value->nbytes = from->n_rows * from->n_columns * 4;
    }
}

static void add_subgraph(struct ree_graph *graph, struct ree_node *node, int rows,
                         struct ree_value *captured) {
    struct ree_graph *sub = ree_graph_add_subgraph(graph);
    struct ree_value *w = ree_graph_add_value(sub, "w"), *y = ree_graph_add_value(sub, "y");
    w->dtype = REE_F32;
    w->has_shape = true;
    w->rank = 2;
    w->dims[0] = rows;
    w->dims[1] = 64;
    w->data = contents;
    w->nbytes = (size_t)rows * 64 * 4;
    struct ree_node *inner = alloc(graph, 1, sizeof *inner);
    *inner = (struct ree_node){.name = "", .op_type = "MatMul", .domain = "", .opset = 18};
    inner->n_inputs = 2;
    inner->inputs = alloc(graph, 2, sizeof(struct ree_value *));
    inner->inputs[0] = captured;
    inner->inputs[1] = w;
    inner->n_outputs = 1;
    inner->outputs = alloc(graph, 1, sizeof(struct ree_value *));
    inner->outputs[0] = y;
    y->producer = inner;
    sub->nodes = alloc(graph, 1, sizeof(struct ree_node *));
    sub->nodes[sub->n_nodes++] = inner;
    sub->outputs = alloc(graph, 1, sizeof(struct ree_value *));
    sub->outputs[sub->n_outputs++] = y;
    struct ree_attr *attr = &node->attrs[node->n_attrs++];
    *attr = (struct ree_attr){.name = "then_branch", .kind = REE_ATTR_GRAPH, .graph = sub};
}

static void make_node(const struct test_node *from, struct ree_graph *graph,
                      struct ree_value **values) {
    struct ree_node *node = alloc(graph, 1, sizeof *node);
    *node = (struct ree_node){.name = "", .op_type = from->op, .domain = from->domain};
    node->opset = 18;
    node->id = (uint32_t)graph->n_nodes;
    node->n_inputs = (size_t)from->n_inputs;
    node->inputs = alloc(graph, node->n_inputs, sizeof(struct ree_value *));
    for (int i = 0; i < from->n_inputs; i++)
        node->inputs[i] = from->inputs[i] < 0 ? NULL : values[from->inputs[i]];
    node->n_outputs = (size_t)from->n_outputs;
    node->outputs = alloc(graph, node->n_outputs, sizeof(struct ree_value *));
    for (int i = 0; i < from->n_outputs; i++) {
        node->outputs[i] = values[from->outputs[i]];
        node->outputs[i]->producer = node;
    }
    node->attrs = alloc(graph, 2, sizeof *node->attrs);
    if (from->axis)
        node->attrs[node->n_attrs++] =
            (struct ree_attr){.name = "axis", .kind = REE_ATTR_INT, .i = from->axis};
    if (from->captured >= 0) add_subgraph(graph, node, from->inner, values[from->captured]);
    graph->nodes[graph->n_nodes++] = node;
}

static bool is_ready(const struct test_graph *g, const struct test_node *node, const bool *made) {
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i].n_outputs; k++) {
            int out = g->nodes[i].outputs[k];
            if (made[i]) continue;
            if (node->captured == out) return false;
            for (int j = 0; j < node->n_inputs; j++)
                if (node->inputs[j] == out) return false;
        }
    return true;
}

static void make_nodes(const struct test_graph *g, struct ree_graph *graph, uint64_t *shuffle,
                       struct ree_value **values) {
    bool made[TEST_MOST_NODES] = {false};
    graph->nodes = alloc(graph, (size_t)g->n_nodes, sizeof(struct ree_node *));
    for (int n = 0; n < g->n_nodes; n++) {
        int i = shuffle ? (int)test_below(shuffle, (uint32_t)g->n_nodes) : 0;
        while (made[i] || !is_ready(g, &g->nodes[i], made))
            i = (i + 1) % g->n_nodes;
        made[i] = true;
        make_node(&g->nodes[i], graph, values);
    }
}

struct ree_graph *test_make_graph(const struct test_graph *g, uint64_t *shuffle,
                                  struct ree_partition_kv_cache *kv_caches) {
    struct ree_graph *graph = ree_graph_create();
    if (!graph) abort();
    struct ree_value *values[TEST_MOST_VALUES];
    make_values(g, graph, shuffle, values);
    make_nodes(g, graph, shuffle, values);
    graph->inputs = alloc(graph, (size_t)g->n_values, sizeof(struct ree_value *));
    graph->outputs = alloc(graph, (size_t)g->n_outputs, sizeof(struct ree_value *));
    for (int i = 0; i < g->n_values; i++) {
        if (!g->values[i].is_input) continue;
        values[i]->is_input = true;
        for (int s = 0; s < g->n_kv_caches; s++)
            if (g->kv_caches[s].input == i)
                kv_caches[s] =
                    (struct ree_partition_kv_cache){graph->n_inputs, g->kv_caches[s].output};
        graph->inputs[graph->n_inputs++] = values[i];
    }
    for (int i = 0; i < g->n_outputs; i++) {
        values[g->outputs[i]]->is_output = true;
        graph->outputs[graph->n_outputs++] = values[g->outputs[i]];
    }
    ree_graph_count_uses(graph);
    return graph;
}
