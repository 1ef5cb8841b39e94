// Graphs as large as a file of some megabytes allows, of kinds that make a search inside a loop too
// slow: all of planning and cutting must take time proportional to their size. CTest's time limit
// is the check.
#include "graph/partition/choose.h"
#include "graph/partition/hints.h"
#include "graph/partition/plan_file.h"
#include "test.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

#define N_STAGES 8

static const float numbers[64];

struct large {
    struct ree_graph *graph;
    size_t nodes_capacity, ports_capacity;
    struct ree_partition_kv_cache *kv_caches;
    struct ree_partition_options options;
    struct ree_value *w;
    struct ree_node_notes notes[N_STAGES];
};

static void *alloc(struct large *g, size_t n, size_t size) {
    void *p = ree_arena_alloc_array(g->graph->arena, n + 1, size);
    REQUIRE(p);
    return p;
}

static struct ree_value *add_value(struct large *g, const char *format, size_t i) {
    char name[32];
    snprintf(name, sizeof name, format, i);
    struct ree_value *value = ree_graph_add_value(g->graph, name);
    REQUIRE(value);
    value->dtype = REE_F32;
    value->has_shape = true;
    value->rank = 2;
    value->dims[0] = -1;
    value->dims[1] = 8;
    return value;
}

static void begin(struct large *g, size_t n_nodes, size_t n_ports) {
    *g = (struct large){
        .graph = ree_graph_create(), .nodes_capacity = n_nodes, .ports_capacity = n_ports};
    REQUIRE(g->graph);
    g->graph->nodes = alloc(g, n_nodes, sizeof(struct ree_node *));
    g->graph->inputs = alloc(g, n_ports, sizeof(struct ree_value *));
    g->graph->outputs = alloc(g, n_ports, sizeof(struct ree_value *));
    g->kv_caches = alloc(g, n_ports, sizeof *g->kv_caches);
    g->options.kv_caches = g->kv_caches;
    g->w = add_value(g, "w", 0);
    g->w->dims[0] = 8;
    g->w->data = numbers;
    g->w->nbytes = sizeof numbers;
    for (int i = 0; i < N_STAGES; i++)
        g->notes[i] = (struct ree_node_notes){.has_stage = true, .stage = i};
}

static struct ree_value *add_input(struct large *g) {
    REQUIRE(g->graph->n_inputs < g->ports_capacity);
    struct ree_value *value = add_value(g, "in%zu", g->graph->n_inputs);
    value->is_input = true;
    g->graph->inputs[g->graph->n_inputs++] = value;
    return value;
}

static void add_output(struct large *g, struct ree_value *value) {
    REQUIRE(g->graph->n_outputs < g->ports_capacity);
    value->is_output = true;
    g->graph->outputs[g->graph->n_outputs++] = value;
}

static struct ree_value *add_node(struct large *g, const char *op, size_t n_inputs, ...) {
    REQUIRE(g->graph->n_nodes < g->nodes_capacity);
    struct ree_node *node = alloc(g, 1, sizeof *node);
    va_list inputs;
    *node = (struct ree_node){.name = "", .op_type = op, .domain = "", .n_inputs = n_inputs};
    node->inputs = alloc(g, n_inputs, sizeof(struct ree_value *));
    va_start(inputs, n_inputs);
    for (size_t i = 0; i < n_inputs; i++)
        node->inputs[i] = va_arg(inputs, struct ree_value *);
    va_end(inputs);
    node->outputs = alloc(g, 1, sizeof(struct ree_value *));
    node->n_outputs = 1;
    node->outputs[0] = add_value(g, "v%zu", g->graph->n_nodes);
    node->outputs[0]->producer = node;
    node->id = (uint32_t)g->graph->n_nodes;
    g->graph->nodes[g->graph->n_nodes++] = node;
    return node->outputs[0];
}

static struct ree_value *product(struct large *g, struct ree_value *x) {
    return add_node(g, "MatMul", (size_t)2, x, g->w);
}

static size_t check_stages(const struct large *g, const struct ree_partition *plan) {
    size_t n_nodes = 0, *owners = calloc(g->options.n_kv_caches + 1, sizeof *owners);
    struct ree_error err;
    REQUIRE(owners);
    CHECK(ree_partition_stages_of_kv_caches(g->graph, plan, g->kv_caches, g->options.n_kv_caches,
                                            owners, &err) == REE_OK);
    for (size_t i = 0; i < g->options.n_kv_caches; i++)
        CHECK(owners[i] < plan->n_stages);
    for (size_t i = 0; i < plan->n_stages; i++) {
        struct ree_stage_graph stage;
        enum ree_status status =
            ree_partition_extract(g->graph, &g->options, plan, i, NULL, 0, &stage, &err);
        CHECK_MSG(status == REE_OK, "stage %zu: %s", i, err.message);
        if (status != REE_OK) continue;
        for (size_t k = 0; k < stage.graph->n_nodes; k++)
            n_nodes += !stage.is_copy[k];
        ree_stage_graph_finish(&stage);
    }
    free(owners);
    return n_nodes;
}

// Plans and cuts the graph in every way and counts the nodes.
static void check(struct large *g, const char *what) {
    struct ree_partition_request request = {.n_stages = N_STAGES};
    enum ree_plan_origin origin;
    struct ree_partition plan, again;
    struct ree_error err = {.message = ""};
    clock_t start = clock();
    CHECK_MSG(ree_partition_choose(g->graph, &g->options, &request, &plan, &origin, &err) == REE_OK,
              "%s: %s", what, err.message);
    REQUIRE(plan.n_stages == N_STAGES);
    CHECK(check_stages(g, &plan) == g->graph->n_nodes);
    // By names of cuts.
    const char *ends[N_STAGES];
    size_t n_live = 0;
    for (size_t i = 0; i + 1 < N_STAGES; i++) {
        ends[i] = ree_partition_end(g->graph, &plan, i);
        n_live += plan.cuts[i].n_values;
    }
    request.ends = ends;
    CHECK(ree_partition_choose(g->graph, &g->options, &request, &again, &origin, &err) == REE_OK &&
          origin == REE_PLAN_REQUESTED);
    CHECK(memcmp(plan.ends, again.ends, N_STAGES * sizeof *plan.ends) == 0);
    ree_partition_finish(&again);
    // By hints, one for each node.
    for (size_t i = 0; i < g->graph->n_nodes; i++)
        if (plan.stage_of[i] < N_STAGES) g->graph->nodes[i]->notes = &g->notes[plan.stage_of[i]];
    request = (struct ree_partition_request){.devices = {.n_devices = 2}};
    CHECK(ree_partition_choose(g->graph, &g->options, &request, &again, &origin, &err) == REE_OK &&
          origin == REE_PLAN_HINTED);
    CHECK(memcmp(plan.ends, again.ends, N_STAGES * sizeof *plan.ends) == 0);
    ree_partition_finish(&again);
    for (size_t i = 0; i < g->graph->n_nodes; i++)
        g->graph->nodes[i]->notes = NULL;
    // Within limits, starting from one that is too small.
    request.devices = (struct ree_partition_devices){2, 2, 3, 0};
    int n_fitted = 0;
    for (uint64_t limit = 16; limit; limit <<= 20) {
        request.devices.max_memory = limit;
        if (ree_partition_choose(g->graph, &g->options, &request, &again, &origin, &err) != REE_OK)
            continue;
        n_fitted++;
        ree_partition_finish(&again);
    }
    CHECK(n_fitted > 0);
    printf("%s: %zu nodes, %zu values, %zu live at the cuts: %.1f s\n", what, g->graph->n_nodes,
           g->graph->n_values, n_live, (double)(clock() - start) / CLOCKS_PER_SEC);
    ree_partition_finish(&plan);
    ree_graph_destroy(g->graph);
}

static void test_chain(void) {
    struct large g;
    begin(&g, 200000, 8);
    struct ree_value *x = add_input(&g);
    while (g.graph->n_nodes < g.nodes_capacity)
        x = product(&g, x);
    add_output(&g, x);
    check(&g, "a chain");
}

// Values that are computed before all cuts and read after them.
static void test_wide(void) {
    enum { N = 50000 };
    struct large g;
    static struct ree_value *early[N];
    begin(&g, 2 * N + 2000, 8);
    struct ree_value *x = product(&g, add_input(&g));
    for (size_t i = 0; i < N; i++)
        early[i] = add_node(&g, "Neg", (size_t)1, x);
    // They also come first in the canonical order, because the sum that starts the order reads
    // them.
    struct ree_value *sum = early[0];
    for (size_t i = 1; i < N; i++)
        sum = add_node(&g, "Max", (size_t)2, sum, early[i]);
    for (size_t i = 0; i < 1000; i++)
        sum = product(&g, sum);
    add_output(&g, sum);
    // The last node reads all of them once more.
    struct ree_node *last = alloc(&g, 1, sizeof *last);
    *last = (struct ree_node){.name = "", .op_type = "Sum", .domain = "", .n_inputs = N + 1};
    last->inputs = alloc(&g, N + 1, sizeof(struct ree_value *));
    last->inputs[0] = sum;
    memcpy(last->inputs + 1, early, sizeof early);
    last->outputs = alloc(&g, 1, sizeof(struct ree_value *));
    last->outputs[last->n_outputs++] = add_value(&g, "last", 0);
    last->outputs[0]->producer = last;
    last->id = (uint32_t)g.graph->n_nodes;
    g.graph->nodes[g.graph->n_nodes++] = last;
    g.graph->n_outputs = 0;
    add_output(&g, last->outputs[0]);
    check(&g, "many live values");
}

// A kv cache for each of very many layers; masks in all stages read the caches' sizes.
static void test_kv_caches(void) {
    enum { N = 30000 };
    struct large g;
    begin(&g, 5 * N, N + 8);
    struct ree_value *x = add_input(&g), *size = NULL;
    for (size_t i = 0; i < N; i++) {
        struct ree_value *cache = add_input(&g);
        struct ree_value *one = add_node(&g, "Shape", (size_t)1, cache);
        size = size ? add_node(&g, "Add", (size_t)2, size, one) : one;
        g.kv_caches[g.options.n_kv_caches].input = g.graph->n_inputs - 1;
        struct ree_value *next = add_node(&g, "Concat", (size_t)2, cache, x);
        x = add_node(&g, "Attention", (size_t)3, next, size, g.w);
        g.kv_caches[g.options.n_kv_caches++].output = g.graph->n_outputs;
        add_output(&g, next);
    }
    add_output(&g, x);
    check(&g, "many states");
}

// The sizes of all values, read at the end; and an output for each value.
static void test_sizes(void) {
    enum { N = 50000 };
    struct large g;
    static struct ree_value *values[N];
    begin(&g, 4 * N, N + 8);
    struct ree_value *x = add_input(&g);
    for (size_t i = 0; i < N; i++) {
        values[i] = x = product(&g, x);
        add_output(&g, x);
    }
    for (size_t i = 0; i < N; i++)
        x = add_node(&g, "Reshape", (size_t)2, x, add_node(&g, "Shape", (size_t)1, values[i]));
    // The canonical order starts with the first output.
    g.graph->outputs[0] = x;
    check(&g, "many sizes and outputs");
}

int main(void) {
    test_chain();
    test_wide();
    test_kv_caches();
    test_sizes();
    return test_finish();
}
