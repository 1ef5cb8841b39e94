// A plan depends only on the structure of the graph: not on the run, nor on the order of the file's
// nodes and values. Cuts specified by the plan's names give the same plan again.
#include "graph/partition_graph.h"
#include "test.h"

#include <string.h>

#define N_GRAPHS 150
#define N_RUNS 20

struct made {
    struct ree_graph *graph;
    struct ree_partition_kv_cache kv_caches[TEST_MAX_KV_CACHES];
    struct ree_partition_options options;
};

static void make(struct made *m, const struct test_graph *g, uint64_t *shuffle, size_t n_stages) {
    m->graph = test_make_graph(g, shuffle, m->kv_caches);
    m->options = (struct ree_partition_options){
        .n_stages = n_stages,
        .n_kv_caches = (size_t)g->n_kv_caches,
        .kv_caches = m->kv_caches,
    };
}

static const char *made_at(const struct made *m, const struct ree_partition *plan, size_t i) {
    return m->graph->nodes[plan->order[i]]->outputs[0]->name;
}

static bool has_value(const struct ree_cut *cut, const char *name) {
    for (size_t i = 0; i < cut->n_values; i++)
        if (strcmp(cut->values[i]->name, name) == 0) return true;
    return false;
}

// with_reasons: whether to compare the reasons too.
static bool same_plan(const struct made *a, const struct ree_partition *x, const struct made *b,
                      const struct ree_partition *y, bool with_reasons) {
    if (x->n_stages != y->n_stages || x->n_order != y->n_order) return false;
    for (size_t i = 0; i < x->n_order; i++)
        if (strcmp(made_at(a, x, i), made_at(b, y, i)) != 0) return false;
    for (size_t k = 0; k < x->n_stages; k++) {
        if (x->ends[k] != y->ends[k]) return false;
        if (memcmp(&x->costs[k], &y->costs[k], sizeof x->costs[k]) != 0) return false;
    }
    for (size_t k = 0; k + 1 < x->n_stages; k++) {
        const struct ree_cut *c = &x->cuts[k], *d = &y->cuts[k];
        if (c->n_values != d->n_values || c->nbytes != d->nbytes) return false;
        for (size_t i = 0; i < c->n_values; i++)
            if (!has_value(d, c->values[i]->name)) return false;
        if (with_reasons && strcmp(c->reason, d->reason) != 0) return false;
    }
    return true;
}

// Plans the same graph again, a rebuilt graph, and shuffled graphs.
static void check_runs(const struct test_graph *g, const struct made *first,
                       const struct ree_partition *plan, uint64_t *random, int number) {
    for (int i = 0; i < N_RUNS; i++) {
        struct made again;
        struct ree_partition other;
        make(&again, g, i < N_RUNS / 2 ? NULL : random, plan->n_stages);
        const struct made *m = i % 2 ? &again : first;
        if (i >= N_RUNS / 2) m = &again;
        REQUIRE(ree_partition_plan(m->graph, &m->options, &other, NULL) == REE_OK);
        CHECK_MSG(same_plan(first, plan, m, &other, true), "graph %d, %zu stages, run %d", number,
                  plan->n_stages, i);
        ree_partition_finish(&other);
        ree_graph_destroy(again.graph);
    }
}

static void check_cuts(const struct made *m, const struct ree_partition *plan, int number) {
    const char *names[8];
    for (size_t k = 0; k + 1 < plan->n_stages; k++)
        names[k] = made_at(m, plan, plan->ends[k] - 1);
    struct ree_partition other;
    struct ree_error err = {.message = ""};
    bool done = ree_partition_from_cuts(m->graph, &m->options, names, &other, &err) == REE_OK;
    CHECK_MSG(done, "graph %d: %s", number, err.message);
    if (!done) return;
    CHECK_MSG(same_plan(m, plan, m, &other, false), "graph %d, %zu stages: other cuts", number,
              plan->n_stages);
    for (size_t k = 0; k + 1 < plan->n_stages; k++)
        CHECK(strncmp(other.cuts[k].reason, "given: ", 7) == 0);
    CHECK(memcmp(plan->stage_of, other.stage_of, m->graph->n_nodes * sizeof(uint32_t)) == 0);
    ree_partition_finish(&other);
}

int main(void) {
    uint64_t random = 0xD1B54A32D192ED03;
    long n_plans = 0;
    for (int i = 0; i < N_GRAPHS; i++) {
        struct test_graph g;
        test_random_graph(&g, &random);
        for (size_t n = 1; n <= 5; n++) {
            struct made first;
            struct ree_partition plan;
            make(&first, &g, NULL, n);
            if (ree_partition_plan(first.graph, &first.options, &plan, NULL) == REE_OK) {
                n_plans++;
                check_runs(&g, &first, &plan, &random, i);
                check_cuts(&first, &plan, i);
                ree_partition_finish(&plan);
            }
            ree_graph_destroy(first.graph);
        }
    }
    printf("%ld plans, %d runs of each\n", n_plans, N_RUNS);
    CHECK(n_plans > 2 * N_GRAPHS);
    return test_finish();
}
