// Plans of real language models: with N stages each cut is one live value, the sum that runs
// through the layers, and the stages are as even as the layers allow.
//
//     test_partition_models MODEL PATTERN [PATTERN...]
//
// Each cut's value has to have a name that holds one of the patterns. "-": print the plans only.
#include "generate/roles.h"
#include "graph/partition/partition.h"
#include "session/model.h"
#include "test.h"

#include <string.h>
#include <unistd.h>

struct fixture {
    struct ree_model_source source;
    struct ree_model *model;
    struct ree_roles roles;
    struct ree_partition_state *states;
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
    ree_model_infer(f->model->graph);
    f->states = calloc(f->roles.n_states + 1, sizeof *f->states);
    REQUIRE(f->states);
    for (size_t i = 0; i < f->roles.n_states; i++)
        f->states[i] = (struct ree_partition_state){
            .input = graph_input(f->model, f->roles.states[i].input),
            .output = f->roles.states[i].output,
        };
}

static void close_fixture(struct fixture *f) {
    free(f->states);
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
               (unsigned long long)c->state_bytes, (unsigned long long)c->flops,
               (unsigned long long)c->work);
        if (i + 1 < plan->n_stages) printf("    %s\n", plan->cuts[i].reason);
    }
}

static void check_plan(const struct fixture *f, size_t n_stages, char **patterns, int n_patterns) {
    struct ree_partition_options options = {
        .n_stages = n_stages,
        .n_states = f->roles.n_states,
        .states = f->states,
    };
    struct ree_partition plan;
    struct ree_error err = {.message = ""};
    bool done = ree_partition_plan(f->model->graph, &options, &plan, &err) == REE_OK;
    CHECK_MSG(done, "%zu stages: %s", n_stages, err.message);
    if (!done) return;
    print_plan(&plan);
    for (size_t i = 0; i + 1 < n_stages && strcmp(patterns[0], "-") != 0; i++) {
        const struct ree_cut *cut = &plan.cuts[i];
        CHECK_MSG(cut->n_values == 1, "%zu stages, cut %zu: %s", n_stages, i, cut->reason);
        if (cut->n_values == 1)
            CHECK_MSG(matches(cut->values[0]->name, patterns, n_patterns),
                      "%zu stages, cut %zu: %s", n_stages, i, cut->reason);
    }
    ree_partition_finish(&plan);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    if (access(argv[1], R_OK) != 0) return test_skip("the model is not there");
    struct fixture f = {0};
    open_fixture(&f, argv[1]);
    for (size_t n = 1; n <= 8; n++)
        check_plan(&f, n, argv + 2, argc - 2);
    close_fixture(&f);
    return test_finish();
}
