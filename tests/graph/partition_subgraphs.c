// Plans of random graphs whose nodes have nested subgraphs that read outer values. The stages, run
// one after the other on the values that cross the cuts, must compute the same as the whole graph.
// "Computing" is hashing: a value's hash depends on the operator, the values it reads and the
// results of its subgraphs.
#include "graph/partition/partition.h"
#include "graph/partition_graph.h" // test_below
#include "test.h"

#include <string.h>

#define N_GRAPHS 300
#define MOST_VALUES 400 // limit per graph
#define MOST_POOL 200
#define MOST_DEPTH 3

static const float numbers[4096];
static long n_plans, n_cuts, n_captures, n_nested, n_kv_cache_captures, n_passed_on;

// Building

struct pool { // the values that a node may read
    struct ree_value *values[MOST_POOL];
    size_t n;
};

struct maker {
    struct ree_graph *graph;
    uint64_t *random;
    size_t n_names;
    struct ree_partition_kv_cache kv_caches[8];
    size_t n_kv_caches;
};

static void *alloc(struct maker *m, size_t n, size_t size) {
    void *p = ree_arena_alloc_array(m->graph->arena, n + 1, size);
    REQUIRE(p);
    return p;
}

static struct ree_value *add_value(struct maker *m, struct ree_graph *graph) {
    char name[24];
    snprintf(name, sizeof name, "v%zu", m->n_names++);
    struct ree_value *value = ree_graph_add_value(graph, name);
    REQUIRE(value && graph->n_values <= MOST_VALUES);
    value->dtype = REE_F32;
    value->has_shape = true;
    value->rank = 2;
    value->dims[0] = -1;
    value->dims[1] = 1 + test_below(m->random, 30);
    return value;
}

static struct ree_value *add_constant(struct maker *m, struct ree_graph *graph) {
    struct ree_value *value = add_value(m, graph);
    value->dims[0] = 1 + test_below(m->random, 100);
    value->data = numbers;
    value->nbytes = (size_t)(value->dims[0] * value->dims[1]) * 4;
    return value;
}

static void keep(struct pool *pool, struct ree_value *value) {
    if (pool->n < MOST_POOL) pool->values[pool->n++] = value;
}

// Prefers recent values.
static struct ree_value *pick(struct maker *m, const struct pool *pool) {
    size_t back = test_below(m->random, 3) && pool->n > 4 ? 4 : pool->n;
    return pool->values[pool->n - 1 - test_below(m->random, (uint32_t)back)];
}

static struct ree_node *add_node(struct maker *m, struct ree_graph *graph, const char *op,
                                 struct ree_value *a, struct ree_value *b) {
    struct ree_node *node = alloc(m, 1, sizeof *node);
    *node = (struct ree_node){.name = "", .op_type = op, .domain = "", .opset = 18};
    if (graph->n_nodes == graph->nodes_capacity) {
        struct ree_node **nodes = alloc(m, 2 * graph->n_nodes + 8, sizeof(struct ree_node *));
        if (graph->n_nodes) memcpy(nodes, graph->nodes, graph->n_nodes * sizeof(struct ree_node *));
        graph->nodes = nodes;
        graph->nodes_capacity = 2 * graph->n_nodes + 8;
    }
    node->inputs = alloc(m, 2, sizeof(struct ree_value *));
    if (a) node->inputs[node->n_inputs++] = a;
    if (b) node->inputs[node->n_inputs++] = b;
    node->n_outputs = 1;
    node->outputs = alloc(m, 1, sizeof(struct ree_value *));
    node->outputs[0] = add_value(m, graph);
    node->outputs[0]->producer = node;
    node->attrs = alloc(m, 2, sizeof *node->attrs);
    node->id = (uint32_t)graph->n_nodes;
    graph->nodes[graph->n_nodes++] = node;
    return node;
}

static struct ree_value *add_branching(struct maker *m, struct ree_graph *graph, struct pool *pool,
                                       size_t depth);

// Makes a subgraph of a few nodes. `pool` has the outer values; it is not modified.
static struct ree_graph *make_subgraph(struct maker *m, struct ree_graph *parent,
                                       const struct pool *pool, size_t n_inputs, size_t depth) {
    struct ree_graph *sub = ree_graph_add_subgraph(parent);
    struct pool own = *pool;
    REQUIRE(sub);
    sub->inputs = alloc(m, n_inputs, sizeof(struct ree_value *));
    for (size_t i = 0; i < n_inputs; i++) {
        struct ree_value *input = sub->inputs[sub->n_inputs++] = add_value(m, sub);
        input->is_input = true;
        keep(&own, input);
    }
    if (test_below(m->random, 3) == 0) keep(&own, add_constant(m, sub));
    size_t n = 1 + test_below(m->random, 3);
    for (size_t i = 0; i < n; i++) {
        if (depth < MOST_DEPTH && test_below(m->random, 4) == 0) {
            keep(&own, add_branching(m, sub, &own, depth));
            continue;
        }
        const char *op = test_below(m->random, 2) ? "Add" : "MatMul";
        struct ree_value *a = pick(m, &own), *b = pick(m, &own);
        keep(&own, add_node(m, sub, op, a, b)->outputs[0]);
    }
    sub->outputs = alloc(m, 2, sizeof(struct ree_value *));
    sub->outputs[sub->n_outputs++] = own.values[own.n - 1];
    // Sometimes returns a value of an enclosing graph unchanged.
    if (test_below(m->random, 5) == 0) sub->outputs[sub->n_outputs++] = pick(m, pool);
    return sub;
}

static struct ree_value *add_branching(struct maker *m, struct ree_graph *graph, struct pool *pool,
                                       size_t depth) {
    bool loop = test_below(m->random, 3) == 0;
    struct ree_graph *first = make_subgraph(m, graph, pool, loop ? 2 : 0, depth + 1);
    struct ree_graph *second = loop ? NULL : make_subgraph(m, graph, pool, 0, depth + 1);
    struct ree_value *a = pick(m, pool), *b = test_below(m->random, 2) ? pick(m, pool) : NULL;
    struct ree_node *node = add_node(m, graph, loop ? "Loop" : "If", a, b);
    n_nested += depth > 0;
    node->attrs[node->n_attrs++] = (struct ree_attr){
        .name = loop ? "body" : "then_branch", .kind = REE_ATTR_GRAPH, .graph = first};
    if (second)
        node->attrs[node->n_attrs++] =
            (struct ree_attr){.name = "else_branch", .kind = REE_ATTR_GRAPH, .graph = second};
    return node->outputs[0];
}

static struct ree_value *add_input(struct maker *m) {
    struct ree_value *value = add_value(m, m->graph);
    value->is_input = true;
    m->graph->inputs[m->graph->n_inputs++] = value;
    return value;
}

static void add_output(struct maker *m, struct ree_value *value) {
    if (value->is_output) return;
    value->is_output = true;
    m->graph->outputs[m->graph->n_outputs++] = value;
}

static void add_kv_cache(struct maker *m, struct pool *pool) {
    if (m->n_kv_caches == 3) return;
    struct ree_value *cache = add_input(m);
    struct pool with = *pool;
    keep(&with, cache);
    if (test_below(m->random, 2))
        keep(pool, add_node(m, m->graph, "Shape", cache, NULL)->outputs[0]);
    struct ree_value *next = add_node(m, m->graph, "Concat", cache, pick(m, pool))->outputs[0];
    m->kv_caches[m->n_kv_caches].input = m->graph->n_inputs - 1;
    m->kv_caches[m->n_kv_caches++].output = m->graph->n_outputs;
    add_output(m, next);
    keep(&with, next);
    // Branches that read the caches directly.
    if (test_below(m->random, 2)) keep(pool, add_branching(m, m->graph, &with, 0));
    keep(pool, add_node(m, m->graph, "Attention", next, pick(m, pool))->outputs[0]);
}

static void make(struct maker *m, uint64_t *random) {
    static const char *const ops[] = {"Add", "Neg", "Shape", "Mul"};
    *m = (struct maker){.graph = ree_graph_create(), .random = random};
    REQUIRE(m->graph);
    m->graph->ir_version = 10;
    m->graph->inputs = alloc(m, 16, sizeof(struct ree_value *));
    m->graph->outputs = alloc(m, 16, sizeof(struct ree_value *));
    struct pool pool = {.n = 0};
    keep(&pool, add_input(m));
    keep(&pool, add_input(m));
    size_t n = 6 + test_below(random, 14);
    for (size_t i = 0; i < n; i++) {
        uint32_t kind = test_below(random, 8);
        if (kind == 0) {
            add_kv_cache(m, &pool);
        } else if (kind < 3) {
            keep(&pool, add_branching(m, m->graph, &pool, 0));
        } else if (kind < 5) {
            struct ree_value *w = add_constant(m, m->graph);
            keep(&pool, add_node(m, m->graph, "MatMul", pick(m, &pool), w)->outputs[0]);
            if (test_below(random, 4) == 0) keep(&pool, w);
        } else {
            const char *op = ops[test_below(random, 4)];
            bool two = op[0] == 'A' || op[0] == 'M';
            struct ree_value *a = pick(m, &pool), *b = two ? pick(m, &pool) : NULL;
            keep(&pool, add_node(m, m->graph, op, a, b)->outputs[0]);
        }
    }
    for (size_t i = pool.n; i-- > 0 && m->graph->n_outputs < 6;)
        if (pool.values[i]->producer && (i + 1 == pool.n || test_below(random, 6) == 0))
            add_output(m, pool.values[i]);
    // As in planned models, all nodes are needed.
    ree_pass_dead_code(m->graph);
    ree_graph_count_uses(m->graph);
}

// Computing

static uint64_t mix(uint64_t a, uint64_t b) {
    a = (a ^ b) * UINT64_C(0x9E3779B97F4A7C15);
    return a ^ a >> 29;
}

static uint64_t hash_text(const char *s) {
    uint64_t h = 1;
    for (; *s; s++)
        h = mix(h, (unsigned char)*s);
    return h;
}

struct frame {
    const struct ree_graph *graph;
    const struct frame *outer;
    uint64_t hashes[MOST_VALUES];
    bool known[MOST_VALUES];
};

// If no frame knows the value, it was not passed to the stage: a failure.
static uint64_t look_up(const struct frame *frame, const struct ree_value *value) {
    if (value->data) return hash_text(value->name);
    for (const struct frame *f = frame; f; f = f->outer)
        if (f->graph == value->graph) {
            CHECK_MSG(f->known[value->id], "'%s' is read and not known", value->name);
            return f->hashes[value->id];
        }
    CHECK_MSG(false, "'%s' belongs to no enclosing graph", value->name);
    return 0;
}

static void give(struct frame *frame, const struct ree_value *value, uint64_t hash) {
    frame->hashes[value->id] = hash;
    frame->known[value->id] = true;
}

static void compute(struct frame *frame) {
    for (size_t i = 0; i < frame->graph->n_nodes; i++) {
        const struct ree_node *node = frame->graph->nodes[i];
        uint64_t h = hash_text(node->op_type);
        for (size_t k = 0; k < node->n_inputs; k++)
            h = mix(h, look_up(frame, node->inputs[k]));
        for (size_t k = 0; k < node->n_attrs; k++) {
            const struct ree_graph *sub = node->attrs[k].graph;
            struct frame *inner = calloc(1, sizeof *inner);
            REQUIRE(inner);
            *inner = (struct frame){.graph = sub, .outer = frame};
            for (size_t j = 0; j < sub->n_inputs; j++)
                give(inner, sub->inputs[j], mix(h, j));
            compute(inner);
            for (size_t j = 0; j < sub->n_outputs; j++)
                h = mix(h, look_up(inner, sub->outputs[j]));
            free(inner);
        }
        give(frame, node->outputs[0], h);
    }
}

// Checking

struct reader {
    const struct ree_graph *graph;
    const struct ree_partition *plan;
    const struct ree_node *node;
    const struct maker *maker;
};

static bool is_live(const struct ree_cut *cut, const struct ree_value *value) {
    for (size_t i = 0; i < cut->n_values; i++)
        if (cut->values[i] == value) return true;
    return false;
}

static bool is_input_of(const struct ree_node *node, const struct ree_value *value) {
    for (size_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] == value) return true;
    return false;
}

// Values that a node reads, also within its subgraphs, must be computed earlier and cross every cut
// in between.
static void check_use(void *user, struct ree_value **use) {
    struct reader *r = user;
    const struct ree_value *value = *use;
    uint32_t stage = r->plan->stage_of[r->node->id];
    if (value->graph != r->graph) return;
    if (!is_input_of(r->node, value)) {
        n_captures++;
        for (size_t i = 0; i < r->maker->n_kv_caches; i++)
            n_kv_cache_captures += r->graph->inputs[r->maker->kv_caches[i].input] == value;
    }
    if (!value->producer || stage == REE_STAGE_CONTROL) return;
    uint32_t made = r->plan->stage_of[value->producer->id];
    if (made == REE_STAGE_CONTROL) return;
    CHECK_MSG(made <= stage, "'%s' is read in stage %u and made in stage %u", value->name, stage,
              made);
    for (uint32_t k = made; k < stage; k++)
        CHECK_MSG(is_live(&r->plan->cuts[k], value), "'%s' does not cross cut %u", value->name, k);
}

static void check_order(const struct maker *m, const struct ree_partition *plan) {
    const struct ree_graph *graph = m->graph;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct reader r = {graph, plan, graph->nodes[i], m};
        ree_node_visit_uses(graph->nodes[i], check_use, &r);
    }
    for (size_t k = 0; k + 1 < plan->n_stages; k++)
        for (size_t i = 0; i < plan->cuts[k].n_values; i++) {
            const struct ree_value *value = plan->cuts[k].values[i];
            CHECK(plan->stage_of[value->producer->id] <= k);
        }
}

// Runs stage k on the values that crossed the cut before it; stores the values that cross the cut
// after it in `boundary`.
static void run_stage(const struct maker *m, const struct ree_partition_options *options,
                      const struct ree_partition *plan, size_t k, const struct frame *whole,
                      struct frame *boundary, bool *handed_out) {
    struct ree_stage_graph stage;
    struct ree_error err = {.message = ""};
    bool done = ree_partition_extract(m->graph, options, plan, k, NULL, 0, &stage, &err) == REE_OK;
    CHECK_MSG(done, "stage %zu: %s", k, err.message);
    if (!done) return;
    struct frame *own = calloc(1, sizeof *own), *next = calloc(1, sizeof *next);
    REQUIRE(own && next);
    own->graph = stage.graph;
    next->graph = m->graph;
    for (size_t i = 0; i < stage.n_inputs; i++) {
        const struct ree_value *value = stage.inputs[i].value;
        bool given = !stage.inputs[i].is_cut || boundary->known[value->id];
        CHECK_MSG(given, "'%s' does not reach stage %zu", value->name, k);
        give(own, stage.graph->inputs[i],
             stage.inputs[i].is_cut ? boundary->hashes[value->id] : hash_text(value->name));
    }
    compute(own);
    for (size_t i = 0; i < stage.n_outputs; i++) {
        const struct ree_value *value = stage.outputs[i];
        uint64_t hash = look_up(own, stage.graph->outputs[i]);
        CHECK_MSG(hash == look_up(whole, value), "stage %zu makes another '%s'", k, value->name);
        if (i >= stage.n_model_outputs) {
            give(next, value, hash);
            continue;
        }
        CHECK(!handed_out[stage.model_outputs[i]]);
        handed_out[stage.model_outputs[i]] = true;
    }
    for (size_t i = 0; k + 1 < plan->n_stages && i < plan->cuts[k].n_values; i++) {
        const struct ree_value *value = plan->cuts[k].values[i];
        if (next->known[value->id]) continue;
        CHECK_MSG(boundary->known[value->id], "'%s' cannot pass stage %zu", value->name, k);
        give(next, value, boundary->hashes[value->id]);
        n_passed_on++;
    }
    *boundary = *next;
    free(own);
    free(next);
    ree_stage_graph_finish(&stage);
}

static void check_plan(const struct maker *m, const struct ree_partition_options *options,
                       const struct ree_partition *plan) {
    bool handed_out[16] = {false};
    struct frame *whole = calloc(1, sizeof *whole), *boundary = calloc(1, sizeof *boundary);
    REQUIRE(whole && boundary);
    whole->graph = m->graph;
    for (size_t i = 0; i < m->graph->n_inputs; i++)
        give(whole, m->graph->inputs[i], hash_text(m->graph->inputs[i]->name));
    compute(whole);
    check_order(m, plan);
    for (size_t k = 0; k < plan->n_stages; k++)
        run_stage(m, options, plan, k, whole, boundary, handed_out);
    for (size_t i = 0; i < m->graph->n_outputs; i++)
        CHECK_MSG(handed_out[i], "no stage hands out '%s'", m->graph->outputs[i]->name);
    free(whole);
    free(boundary);
}

int main(void) {
    uint64_t random = 0xBF58476D1CE4E5B9;
    for (int i = 0; i < N_GRAPHS; i++) {
        struct maker m;
        make(&m, &random);
        struct ree_partition_options options = {.n_kv_caches = m.n_kv_caches,
                                                .kv_caches = m.kv_caches};
        for (options.n_stages = 1; options.n_stages <= 6; options.n_stages++) {
            struct ree_partition plan;
            if (ree_partition_plan(m.graph, &options, &plan, NULL) != REE_OK) continue;
            check_plan(&m, &options, &plan);
            n_plans++;
            n_cuts += (long)plan.n_stages - 1;
            ree_partition_finish(&plan);
        }
        ree_graph_destroy(m.graph);
    }
    printf("%ld plans, %ld cuts; %ld values captured, %ld of them caches; %ld nodes within "
           "subgraphs have subgraphs; %ld values pass a stage\n",
           n_plans, n_cuts, n_captures, n_kv_cache_captures, n_nested, n_passed_on);
    CHECK(n_plans > 500 && n_cuts > 500 && n_captures > 1000 && n_kv_cache_captures > 50 &&
          n_nested > 50 && n_passed_on > 50);
    return test_finish();
}
