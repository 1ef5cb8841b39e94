// Compares the planner's plan with the best of all plans, found by trying each one, on random
// graphs.
#include "graph/partition_graph.h"
#include "graph/partition_oracle.h"
#include "test.h"

#include <string.h>

#define N_GRAPHS 500

static long n_infeasible, n_several, n_remarks, n_one, n_limited, n_idle;

static void check_costs(const struct oracle *o, const struct ree_partition *plan, int graph) {
    size_t begin = 0;
    for (size_t k = 0; k < plan->n_stages; begin = plan->ends[k++]) {
        struct ree_stage_cost expected = oracle_cost(o, begin, plan->ends[k]);
        CHECK_MSG(memcmp(&expected, &plan->costs[k], sizeof expected) == 0,
                  "graph %d, stage %zu of %zu: work %llu, expected %llu", graph, k, plan->n_stages,
                  (unsigned long long)plan->costs[k].work, (unsigned long long)expected.work);
    }
}

static void check_cuts(const struct oracle *o, const struct ree_partition *plan, int graph) {
    for (size_t k = 0; k + 1 < plan->n_stages; k++) {
        const struct ree_cut *cut = &plan->cuts[k];
        size_t n = 0;
        for (size_t i = 0; i < o->graph->n_values; i++) {
            if (!oracle_is_live(o, o->graph->values[i], plan->ends[k])) continue;
            CHECK_MSG(n < cut->n_values && cut->values[n] == o->graph->values[i],
                      "graph %d, cut %zu: '%s' is live", graph, k, o->graph->values[i]->name);
            n++;
        }
        CHECK_MSG(n == cut->n_values, "graph %d, cut %zu: %zu live values, expected %zu", graph, k,
                  cut->n_values, n);
        CHECK(cut->reason && cut->reason[0]);
        n_remarks += strstr(cut->reason, "with one live value") != NULL;
        n_several += n > 1;
        n_one += n == 1;
        n_idle += n == 0;
    }
}

static void check_stages(const struct oracle *o, const struct ree_partition *plan, int graph) {
    for (size_t i = 0; i < o->n_order; i++)
        CHECK_MSG(plan->order[i] == o->order[i]->id, "graph %d: position %zu", graph, i);
    for (size_t i = 0; i < o->graph->n_nodes; i++) {
        uint32_t expected = REE_STAGE_CONTROL;
        for (size_t at = 0; at < o->n_order; at++)
            if (o->order[at]->id == i)
                for (size_t k = plan->n_stages; k-- > 0;)
                    if (at < plan->ends[k]) expected = (uint32_t)k;
        CHECK_MSG(plan->stage_of[i] == expected, "graph %d: node %zu is of stage %u, expected %u",
                  graph, i, plan->stage_of[i], expected);
    }
}

// Limits near an equal share, so that some are binding and some cannot be met.
static void choose_limits(const struct oracle *o, size_t n, uint64_t *random, uint64_t *limits) {
    uint64_t total = oracle_cost(o, 0, o->n_order).weight_bytes;
    for (size_t k = 0; k < n; k++)
        limits[k] = total / n / 4 * (2 + test_below(random, 10));
    if (test_below(random, 2))
        for (size_t k = 1; k < n; k++)
            limits[k] = limits[0];
}

static void check_plan(const struct ree_graph *graph, const struct ree_partition_options *options,
                       int number) {
    struct oracle o;
    struct ree_partition plan;
    struct ree_error err = {.message = ""};
    oracle_run(&o, graph, options);
    bool found = ree_partition_plan(graph, options, &plan, &err) == REE_OK;
    CHECK_MSG(found == o.found, "graph %d, %zu stages: %s, expected %s: %s", number,
              options->n_stages, found ? "a plan" : "none", o.found ? "one" : "none", err.message);
    if (!found) {
        n_infeasible++;
        CHECK(err.status == REE_INVALID && err.message[0]);
        return;
    }
    CHECK_MSG(plan.n_order == o.n_order, "graph %d: %zu nodes in order, expected %zu", number,
              plan.n_order, o.n_order);
    if (o.found && plan.n_order == o.n_order) {
        n_limited += options->weight_limits != NULL;
        for (size_t k = 0; k < options->n_stages; k++)
            CHECK_MSG(plan.ends[k] == o.best.ends[k],
                      "graph %d, %zu stages: cut %zu at %zu, expected %zu", number,
                      options->n_stages, k, plan.ends[k], o.best.ends[k]);
        check_costs(&o, &plan, number);
        check_cuts(&o, &plan, number);
        check_stages(&o, &plan, number);
    }
    ree_partition_finish(&plan);
}

int main(void) {
    uint64_t random = 0x9E3779B97F4A7C15;
    for (int i = 0; i < N_GRAPHS; i++) {
        struct test_graph g;
        struct ree_partition_kv_cache kv_caches[TEST_MAX_KV_CACHES];
        uint64_t limits[8];
        test_random_graph(&g, &random);
        struct ree_graph *graph = test_make_graph(&g, NULL, kv_caches);
        struct ree_partition_options options = {.n_kv_caches = (size_t)g.n_kv_caches,
                                                .kv_caches = kv_caches};
        if (test_below(&random, 3) == 0) options.context = 1 + test_below(&random, 5000);
        for (options.n_stages = 1; options.n_stages <= 6; options.n_stages++) {
            options.weight_limits = NULL;
            check_plan(graph, &options, i);
            struct oracle o;
            oracle_run(&o, graph,
                       &(struct ree_partition_options){.n_stages = 1,
                                                       .n_kv_caches = options.n_kv_caches,
                                                       .kv_caches = kv_caches,
                                                       .context = options.context});
            choose_limits(&o, options.n_stages, &random, limits);
            options.weight_limits = limits;
            check_plan(graph, &options, i);
        }
        ree_graph_destroy(graph);
    }
    printf("%ld refused, %ld with limits met; cuts: %ld of no value, %ld of one, %ld of several, "
           "%ld explained against one\n",
           n_infeasible, n_limited, n_idle, n_one, n_several, n_remarks);
    // The random graphs must cover all kinds of plan.
    CHECK(n_infeasible > 100 && n_limited > 100 && n_several > 100 && n_one > 100 && n_idle > 10);
    CHECK(n_remarks > 100);
    return test_finish();
}
