// What the planner refuses, and with which message; sizes that overflow; a large graph.
#include "graph/partition_graph.h"
#include "test.h"

#include <string.h>

// Tokens -> table -> product -> attention with a kv cache -> two products, and a mask computed from
// the tokens.
struct chain {
    struct test_graph g;
    struct ree_graph *graph;
    struct ree_partition_kv_cache kv_caches[TEST_MAX_KV_CACHES];
    struct ree_partition_options options;
};

//  v0 input, v1 table, v2 = Gather, v3 mask = Cast(v0), v4 weights, v5 = MatMul(v2, v4),
//  v6 kv cache, v7 = Concat(v6, v5), v8 = Attention(v7, v3), v9 = MatMul(v8, v4),
//  v10 = MatMul(v9, v4)
static void make_chain(struct chain *c, size_t n_stages) {
    *c = (struct chain){.options = {.n_stages = n_stages}};
    struct test_graph *g = &c->g;
    int tokens = test_add_input(g, 2, (const int64_t[]){-1, -1});
    int table = test_add_constant(g, 1000, 64);
    int x = test_add_node(g, "Gather", table, tokens, 64);
    int mask = test_add_node(g, "Cast", tokens, -1, 1);
    int weights = test_add_constant(g, 64, 64);
    x = test_add_node(g, "MatMul", x, weights, 64);
    int cache = test_add_input(g, 4, (const int64_t[]){-1, 2, -1, 32});
    int next = test_add_node(g, "Concat", cache, x, 64);
    x = test_add_node(g, "Attention", next, mask, 64);
    x = test_add_node(g, "MatMul", x, weights, 64);
    x = test_add_node(g, "MatMul", x, weights, 64);
    test_add_output(g, x);
    test_add_output(g, next);
    g->kv_caches[0].input = cache;
    g->kv_caches[0].output = 1;
    g->n_kv_caches = 1;
    c->graph = test_make_graph(g, NULL, c->kv_caches);
    c->options.kv_caches = c->kv_caches;
    c->options.n_kv_caches = 1;
}

static void check_message(enum ree_status status, enum ree_status expected,
                          const struct ree_error *err, const char *message) {
    CHECK_MSG(status == expected, "status %s, expected %s", ree_status_name(status),
              ree_status_name(expected));
    CHECK_MSG(strcmp(err->message, message) == 0, "said: %s\nexpected: %s", err->message, message);
}

static void refuse_plan(const struct chain *c, enum ree_status expected, const char *message) {
    struct ree_partition plan;
    struct ree_error err = {.message = ""};
    check_message(ree_partition_plan(c->graph, &c->options, &plan, &err), expected, &err, message);
    ree_partition_finish(&plan); // allowed after a failure
}

static void refuse_cuts(const struct chain *c, const char *first, const char *second,
                        const char *message) {
    const char *const names[] = {first, second};
    struct ree_partition plan;
    struct ree_error err = {.message = ""};
    check_message(ree_partition_from_cuts(c->graph, &c->options, names, &plan, &err), REE_INVALID,
                  &err, message);
}

static void test_stages(void) {
    struct chain c;
    make_chain(&c, 0);
    refuse_plan(&c, REE_INVALID, "a plan requires at least one stage");
    c.options.n_stages = 6;
    refuse_plan(&c, REE_INVALID, "the model has 4 possible cuts, enough for 5 stages, not for 6");
    c.options.n_stages = SIZE_MAX;
    refuse_plan(&c, REE_INVALID, "a plan has at most 1024 stages, not 18446744073709551615");
    c.options.n_stages = 1024;
    refuse_plan(&c, REE_INVALID,
                "the model has 4 possible cuts, enough for 5 stages, not for 1024");
    c.options.n_stages = 5;
    struct ree_partition plan;
    REQUIRE(ree_partition_plan(c.graph, &c.options, &plan, NULL) == REE_OK);
    const char *reason = plan.cuts[1].reason;
    const char *expected = "one live value, 'v5' (256 bytes per row); stage work 0.27 of the mean";
    CHECK_MSG(strcmp(reason, expected) == 0, "said: %s", reason);
    ree_partition_finish(&plan);
    c.kv_caches[0].output = 2;
    refuse_plan(&c, REE_INVALID, "kv cache 0 is not both an input and an output of the model");
    ree_graph_destroy(c.graph);
}

// The table takes 256000 bytes, the weights 16384.
static void test_limits(void) {
    struct chain c;
    make_chain(&c, 2);
    uint64_t limits[] = {272384, 16384};
    c.options.weight_limits = limits;
    struct ree_partition plan;
    struct ree_error err = {.message = ""};
    bool done = ree_partition_plan(c.graph, &c.options, &plan, &err) == REE_OK;
    CHECK_MSG(done, "%s", err.message);
    if (done) CHECK(plan.costs[0].weight_bytes <= 272384 && plan.costs[1].weight_bytes == 16384);
    ree_partition_finish(&plan);
    limits[0] = 256000; // only the table
    REQUIRE(ree_partition_plan(c.graph, &c.options, &plan, &err) == REE_OK);
    CHECK(plan.ends[0] == 1 && plan.costs[1].weight_bytes == 16384);
    ree_partition_finish(&plan);
    limits[0] = limits[1] = 255999;
    refuse_plan(
        &c, REE_INVALID,
        "node #0 (Gather) takes 256000 bytes of weights, but no stage may take more than 255999");
    limits[0] = 16384;
    limits[1] = 256000;
    refuse_plan(
        &c, REE_INVALID,
        "no plan of 2 stages is within the limits: weights take 272384 bytes, the stages may take "
        "272384 in total, and the largest range of nodes that cannot be cut takes 256000");
    ree_graph_destroy(c.graph);
}

static void test_cuts(void) {
    struct chain c;
    make_chain(&c, 3);
    const char *const good[] = {"v5", "v8"};
    struct ree_partition plan;
    REQUIRE(ree_partition_from_cuts(c.graph, &c.options, good, &plan, NULL) == REE_OK);
    CHECK(plan.ends[0] == 2 && plan.ends[1] == 4 && plan.ends[2] == 6);
    ree_partition_finish(&plan);
    refuse_cuts(&c, "v5", "x", "the plan names 'x', but the model has no such value");
    refuse_cuts(&c, "v0", "v8",
                "a stage cannot end with 'v0', which no node computes: it is an input");
    refuse_cuts(&c, "v4", "v8",
                "a stage cannot end with 'v4', which no node computes: it is a constant");
    refuse_cuts(&c, "v3", "v8",
                "a stage cannot end with 'v3', which belongs to no stage: each stage computes such "
                "values itself");
    refuse_cuts(&c, "v8", "v5",
                "the stage that ends with 'v5' is empty: a plan must list values in the order of "
                "the model");
    refuse_cuts(&c, "v5", "v5",
                "the stage that ends with 'v5' is empty: a plan must list values in the order of "
                "the model");
    refuse_cuts(&c, "v5", "v10", "the stage after 'v10' is empty");
    refuse_cuts(&c, "v5", "v7",
                "a stage cannot end with 'v7': a kv cache would be in another stage than the nodes "
                "that use it, or a boundary tensor would grow with the context");
    ree_graph_destroy(c.graph);
}

// A graph without any place to cut, and one without nodes.
static void test_nothing(void) {
    struct test_graph g = {.n_values = 0};
    int x = test_add_input(&g, 2, (const int64_t[]){-1, -1});
    test_add_output(&g, x);
    for (int i = 0; i < 2; i++) {
        struct chain c = {.graph = test_make_graph(&g, NULL, NULL), .options = {.n_stages = 1}};
        struct ree_partition plan;
        CHECK(ree_partition_plan(c.graph, &c.options, &plan, NULL) == REE_OK);
        CHECK(plan.n_order == 0 && plan.n_stages == 1 && plan.ends[0] == 0);
        CHECK(i == 0 || plan.stage_of[0] == REE_STAGE_CONTROL);
        ree_partition_finish(&plan);
        c.options.n_stages = 2;
        refuse_plan(&c, REE_INVALID, "the model cannot be cut, so it runs as one stage, not 2");
        ree_graph_destroy(c.graph);
        test_add_output(&g, test_add_node(&g, "Neg", x, -1, 1)); // a control node
    }
}

// Dimensions whose products exceed 64 bits.
static void test_hostile_sizes(void) {
    struct chain c;
    make_chain(&c, 2);
    for (size_t i = 0; i < c.graph->n_values; i++)
        for (uint32_t d = 0; d < c.graph->values[i]->rank && !c.graph->values[i]->data; d++)
            c.graph->values[i]->dims[d] = INT64_MAX - (int64_t)d;
    c.options.context = UINT64_MAX;
    struct ree_partition plan;
    REQUIRE(ree_partition_plan(c.graph, &c.options, &plan, NULL) == REE_OK);
    CHECK(plan.cuts[0].nbytes == UINT64_C(1) << 40);
    ree_partition_finish(&plan);
    for (size_t i = 0; i < c.graph->n_inputs; i++)
        c.graph->inputs[i]->dims[2] = -1; // grows by 2^40 bytes per row
    REQUIRE(ree_partition_plan(c.graph, &c.options, &plan, NULL) == REE_OK);
    CHECK(plan.costs[0].work == UINT64_MAX || plan.costs[1].work == UINT64_MAX);
    ree_partition_finish(&plan);
    ree_graph_destroy(c.graph);
}

// 100,000 nodes, with a place to cut after almost every one, and one constant that all of them
// read.
static void test_large(void) {
    enum { N = 100000 };
    struct ree_graph *graph = ree_graph_create();
    static const float numbers[8192];
    struct ree_value *w = ree_graph_add_value(graph, "w");
    w->data = numbers;
    w->nbytes = sizeof numbers;
    w->dtype = REE_F32;
    w->has_shape = true;
    w->rank = 2;
    w->dims[0] = 2;
    w->dims[1] = 4096;
    graph->nodes = ree_arena_alloc_array(graph->arena, N, sizeof(struct ree_node *));
    graph->inputs = ree_arena_alloc_array(graph->arena, 1, sizeof(struct ree_value *));
    graph->outputs = ree_arena_alloc_array(graph->arena, 1, sizeof(struct ree_value *));
    struct ree_node *nodes = ree_arena_alloc_array(graph->arena, N, sizeof *nodes);
    struct ree_value **ports =
        ree_arena_alloc_array(graph->arena, N, 3 * sizeof(struct ree_value *));
    REQUIRE(graph->nodes && graph->inputs && graph->outputs && nodes && ports);
    struct ree_value *x = graph->inputs[graph->n_inputs++] = ree_graph_add_value(graph, "x");
    x->is_input = true;
    for (uint32_t i = 0; i < N; i++, ports += 3) {
        char name[16];
        snprintf(name, sizeof name, "v%u", i);
        ports[0] = x;
        ports[1] = w;
        ports[2] = x = ree_graph_add_value(graph, name);
        nodes[i] = (struct ree_node){.name = "", .op_type = "MatMul", .domain = "", .id = i};
        nodes[i].n_inputs = 2;
        nodes[i].inputs = ports;
        nodes[i].n_outputs = 1;
        nodes[i].outputs = ports + 2;
        x->producer = graph->nodes[graph->n_nodes++] = &nodes[i];
    }
    graph->outputs[graph->n_outputs++] = x;
    struct chain c = {.graph = graph, .options = {.n_stages = 40}};
    struct ree_partition plan;
    REQUIRE(ree_partition_plan(graph, &c.options, &plan, NULL) == REE_OK);
    for (size_t k = 0; k < 40; k++) // equal to the exact node
        CHECK_MSG(plan.costs[k].n_nodes == N / 40, "stage %zu: %zu nodes", k,
                  plan.costs[k].n_nodes);
    ree_partition_finish(&plan);
    c.options.n_stages = 1000;
    refuse_plan(&c, REE_UNSUPPORTED, "1000 stages are too many for 99999 possible cuts");
    ree_graph_destroy(graph);
}

int main(void) {
    test_stages();
    test_limits();
    test_cuts();
    test_nothing();
    test_hostile_sizes();
    test_large();
    return test_finish();
}
