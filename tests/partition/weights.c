// The weights of a stage: each constant that its nodes and their subgraphs read, once, in the
// graph's order, for any number of constants. CTest's time limit checks the run time for many
// constants.
#include "ranks/stage_weights.h"

#include <string.h>

#include "test.h"

#define N 60000

static const float numbers[N];

static struct ree_value *add_constant(struct ree_graph *graph, const char *format, size_t i) {
    char name[32];
    snprintf(name, sizeof name, format, i);
    struct ree_value *value = ree_graph_add_value(graph, name);
    REQUIRE(value);
    value->dtype = REE_F32;
    value->has_shape = true;
    value->data = numbers + i;
    value->nbytes = sizeof *numbers;
    return value;
}

static struct ree_node *make_node(struct ree_graph *graph, size_t n_inputs) {
    struct ree_node *node = ree_arena_alloc(graph->arena, sizeof *node);
    REQUIRE(node);
    *node = (struct ree_node){.name = "", .op_type = "If", .domain = "", .n_inputs = n_inputs};
    node->inputs = ree_arena_alloc_array(graph->arena, n_inputs, sizeof(struct ree_value *));
    node->attrs = ree_arena_alloc_array(graph->arena, 1, sizeof *node->attrs);
    REQUIRE(node->inputs && node->attrs);
    return node;
}

// Node i reads its own constant, one that all nodes share, and one in a subgraph with the same
// value id.
static struct ree_graph *make(void) {
    struct ree_graph *graph = ree_graph_create();
    REQUIRE(graph);
    graph->nodes = ree_arena_alloc_array(graph->arena, N, sizeof(struct ree_node *));
    REQUIRE(graph->nodes);
    struct ree_value *shared = add_constant(graph, "shared", 0);
    for (size_t i = 0; i < N; i++) {
        struct ree_node *node = graph->nodes[i] = make_node(graph, 2);
        node->id = (uint32_t)i;
        node->inputs[0] = add_constant(graph, "w%zu", i);
        node->inputs[1] = shared;
        struct ree_graph *sub = ree_graph_add_subgraph(graph);
        REQUIRE(sub);
        struct ree_node *inner = make_node(graph, 2);
        inner->inputs[0] = inner->inputs[1] = add_constant(sub, "inner%zu", i);
        sub->nodes = ree_arena_alloc_array(graph->arena, 1, sizeof(struct ree_node *));
        REQUIRE(sub->nodes);
        sub->nodes[sub->n_nodes++] = inner;
        node->attrs[node->n_attrs++] =
            (struct ree_attr){.name = "then_branch", .kind = REE_ATTR_GRAPH, .graph = sub};
        graph->n_nodes++;
    }
    return graph;
}

int main(void) {
    struct ree_graph *graph = make();
    uint32_t *stage_of = calloc(N, sizeof *stage_of);
    REQUIRE(stage_of);
    struct ree_partition plan = {.n_stages = 3, .stage_of = stage_of};
    for (size_t i = 0; i < N; i++)
        stage_of[i] = i % 4 == 3 ? REE_STAGE_CONTROL : (uint32_t)(3 * i / N);
    for (size_t first = 0; first < 3; first++) {
        struct ree_stage_weights weights;
        struct ree_error err = {.message = ""};
        enum ree_status status =
            ree_stage_weights_make(graph, &plan, first, 3 - first, NULL, &weights, &err);
        CHECK_MSG(status == REE_OK, "%s", err.message);
        if (status != REE_OK) continue;
        size_t n = 0;
        bool same = true;
        for (size_t i = 0; i < N; i++) {
            if (stage_of[i] != REE_STAGE_CONTROL && stage_of[i] < first) continue;
            char own[32], inner[32];
            snprintf(own, sizeof own, "w%zu", i);
            snprintf(inner, sizeof inner, "inner%zu", i);
            const char *const expected[] = {own, "shared", inner};
            for (int k = 0; k < 3; k++) {
                if (k == 1 && n > 1) continue; // listed once, with the first node
                same = same && n < weights.n && strcmp(weights.constants[n].name, expected[k]) == 0;
                n++;
            }
        }
        CHECK(same);
        CHECK_MSG(n == weights.n && weights.nbytes == n * sizeof *numbers,
                  "%zu constants, expected %zu", weights.n, n);
        ree_stage_weights_finish(&weights);
    }
    free(stage_of);
    ree_graph_destroy(graph);
    return test_finish();
}
