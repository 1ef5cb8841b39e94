// Plans of real language models: with N stages each cut has one live value, apart from sizes: the
// sum that runs through the layers.
//
// The plan does not depend on the order of the graph's nodes and values.
//
//     test_partition_models MODEL PATTERN [PATTERN...]
//
// The name of each cut's value must contain one of the patterns. "-": any value, and any number of
// values.
#include "generate/roles.h"
#include "graph/partition_graph.h"
#include "session/model.h"
#include "test.h"

#include <string.h>
#include <unistd.h>

struct fixture {
    struct ree_model_source source;
    struct ree_model *model;
    struct ree_roles roles;
    struct ree_partition_kv_cache *kv_caches;
};

static size_t graph_input(const struct ree_model *model, size_t port) {
    size_t i = 0;
    while (i < model->graph->n_inputs && model->graph->inputs[i] != model->input_values[port])
        i++;
    return i;
}

static void open_fixture(struct fixture *f, const char *path) {
    struct ree_error err = {.message = ""};
    bool done;
    enum ree_status status = ree_model_source_find(path, &f->source, &err);
    if (status == REE_OK) status = ree_model_load(f->source.model_path, NULL, &f->model, &err);
    if (status == REE_OK) status = ree_roles_find(f->model, &f->source.names, &f->roles, &err);
    if (status == REE_OK)
        status = ree_model_select_rows(f->model, f->roles.logits, REE_ROWS_INPUT, &done, &err);
    CHECK_MSG(status == REE_OK, "%s: %s", path, err.message);
    REQUIRE(status == REE_OK);
    ree_model_infer(f->model->graph, NULL);
    f->kv_caches = calloc(f->roles.n_kv_caches + 1, sizeof *f->kv_caches);
    REQUIRE(f->kv_caches);
    for (size_t i = 0; i < f->roles.n_kv_caches; i++)
        f->kv_caches[i] = (struct ree_partition_kv_cache){
            .input = graph_input(f->model, f->roles.kv_caches[i].input),
            .output = f->roles.kv_caches[i].output,
        };
}

static void close_fixture(struct fixture *f) {
    free(f->kv_caches);
    ree_roles_finish(&f->roles);
    ree_model_destroy(f->model);
    ree_model_source_finish(&f->source);
}

static bool matches(const char *name, char **patterns, int n) {
    for (int i = 0; i < n; i++)
        if (strstr(name, patterns[i])) return true;
    return false;
}

static void print_plan(const struct ree_partition *plan) {
    printf("%zu stages\n", plan->n_stages);
    for (size_t i = 0; i < plan->n_stages; i++) {
        const struct ree_stage_cost *c = &plan->costs[i];
        printf("  nodes %zu, weights %llu, a row reads %llu, state %llu, flops %llu, work %llu\n",
               c->n_nodes, (unsigned long long)c->weight_bytes, (unsigned long long)c->work_bytes,
               (unsigned long long)c->kv_cache_bytes, (unsigned long long)c->flops,
               (unsigned long long)c->work);
        if (i + 1 < plan->n_stages) printf("    %s\n", plan->cuts[i].reason);
    }
}

static bool is_placed(const struct ree_value *value, const bool *placed) {
    return !value->producer || placed[value->producer->id];
}

struct readiness {
    const struct ree_graph *graph;
    const bool *placed;
    bool ready;
};

static void check_ready(void *user, struct ree_value **use) {
    struct readiness *r = user;
    if ((*use)->graph == r->graph && !is_placed(*use, r->placed)) r->ready = false;
}

// Puts the nodes in another topological order and the values in a random order.
static void shuffle(struct ree_graph *graph, uint64_t *random) {
    bool *placed = calloc(graph->n_nodes + 1, sizeof *placed);
    struct ree_node **nodes = calloc(graph->n_nodes + 1, sizeof(struct ree_node *));
    REQUIRE(placed && nodes);
    for (size_t n = 0; n < graph->n_nodes;) {
        struct ree_node *node = graph->nodes[test_below(random, (uint32_t)graph->n_nodes)];
        struct readiness r = {graph, placed, !placed[node->id]};
        ree_node_visit_uses(node, check_ready, &r);
        if (!r.ready) continue;
        placed[node->id] = true;
        nodes[n++] = node;
    }
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        graph->nodes[i] = nodes[i];
        nodes[i]->id = i;
    }
    for (uint32_t i = (uint32_t)graph->n_values; i-- > 1;) {
        uint32_t j = test_below(random, i + 1);
        struct ree_value *swap = graph->values[i];
        graph->values[i] = graph->values[j];
        graph->values[j] = swap;
    }
    for (uint32_t i = 0; i < graph->n_values; i++)
        graph->values[i]->id = i;
    free(placed);
    free(nodes);
}

static void check_shuffled(const struct fixture *f, const struct ree_partition_options *options,
                           const struct ree_partition *plan, uint64_t *random) {
    struct ree_graph *graph = f->model->graph;
    struct ree_partition other;
    shuffle(graph, random);
    REQUIRE(ree_partition_plan(graph, options, &other, NULL) == REE_OK);
    for (size_t k = 0; k < plan->n_stages; k++) {
        CHECK(memcmp(&plan->costs[k], &other.costs[k], sizeof plan->costs[k]) == 0);
        CHECK_MSG(plan->ends[k] == other.ends[k], "stage %zu of %zu ends elsewhere", k,
                  plan->n_stages);
        if (k + 1 < plan->n_stages)
            CHECK_MSG(strcmp(plan->cuts[k].reason, other.cuts[k].reason) == 0, "%s\nand %s",
                      plan->cuts[k].reason, other.cuts[k].reason);
    }
    ree_partition_finish(&other);
}

static void check_plan(const struct fixture *f, size_t n_stages, uint64_t *random, char **patterns,
                       int n_patterns) {
    struct ree_partition_options options = {
        .n_stages = n_stages,
        .n_kv_caches = f->roles.n_kv_caches,
        .kv_caches = f->kv_caches,
    };
    struct ree_partition plan;
    struct ree_error err = {.message = ""};
    bool done = ree_partition_plan(f->model->graph, &options, &plan, &err) == REE_OK;
    CHECK_MSG(done, "%zu stages: %s", n_stages, err.message);
    if (!done) return;
    print_plan(&plan);
    for (size_t i = 0; i + 1 < n_stages && strcmp(patterns[0], "-") != 0; i++) {
        const struct ree_cut *cut = &plan.cuts[i];
        size_t n = 0;
        for (size_t k = 0; k < cut->n_values; k++) {
            if (strcmp(cut->values[k]->producer->op_type, "Shape") == 0) continue;
            CHECK_MSG(matches(cut->values[k]->name, patterns, n_patterns),
                      "%zu stages, cut %zu: %s", n_stages, i, cut->reason);
            n++;
        }
        CHECK_MSG(n == 1, "%zu stages, cut %zu: %s", n_stages, i, cut->reason);
    }
    for (int i = 0; i < 5; i++)
        check_shuffled(f, &options, &plan, random);
    ree_partition_finish(&plan);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    if (access(argv[1], R_OK) != 0) return test_skip("the model is not there");
    struct fixture f = {0};
    uint64_t random = 0x2545F4914F6CDD1D;
    open_fixture(&f, argv[1]);
    for (size_t n = 1; n <= 8; n++)
        check_plan(&f, n, &random, argv + 2, argc - 2);
    close_fixture(&f);
    return test_finish();
}
