// Random graphs: a chain that begins with an embedding, with branches, caches, recurrent states,
// shared weights, control nodes and several outputs.
#include "graph/partition_graph.h"

struct maker {
    struct test_graph *g;
    uint64_t *random;
    int computed[TEST_MOST_NODES * 2], n_computed; // values that are not control values
    int controls[TEST_MOST_NODES], n_controls;
    int weights[8], n_weights;
};

static int pick(struct maker *m, const int *from, int n) {
    return from[test_below(m->random, (uint32_t)n)];
}

// Prefers recent values: graphs are long rather than wide.
static int pick_computed(struct maker *m) {
    int n = m->n_computed, back = test_below(m->random, 4) ? 2 : n;
    if (back > n) back = n;
    return m->computed[n - 1 - (int)test_below(m->random, (uint32_t)back)];
}

static int pick_weight(struct maker *m) {
    if (m->n_weights && test_below(m->random, 3) == 0) return pick(m, m->weights, m->n_weights);
    if (m->n_weights == 8) return m->weights[0];
    uint64_t rows = 1 + test_below(m->random, 60), columns = 1 + test_below(m->random, 300);
    // The largest table that a control node may read.
    if (test_below(m->random, 6) == 0) rows = columns = 64;
    return m->weights[m->n_weights++] = test_add_constant(m->g, rows, columns);
}

static struct test_node *last_node(struct maker *m) {
    return &m->g->nodes[m->g->n_nodes - 1];
}

static void keep(struct maker *m, int value) {
    m->computed[m->n_computed++] = value;
}

static void add_kv_cache_ports(struct maker *m, int input, int successor) {
    struct test_graph *g = m->g;
    test_add_output(g, successor);
    size_t output = 0;
    while (g->outputs[output] != successor)
        output++;
    g->kv_caches[g->n_kv_caches].input = input;
    g->kv_caches[g->n_kv_caches++].output = output;
}

// Adds h' = -(h W + x), which later nodes may read.
static void add_recurrent_state(struct maker *m, int state) {
    int product = test_add_node(m->g, "MatMul", state, pick_weight(m), 16);
    keep(m, test_add_node(m->g, "Add", product, pick_computed(m), 16));
    keep(m, test_add_node(m->g, "Neg", m->computed[m->n_computed - 1], -1, 16));
    int successor = m->computed[m->n_computed - 1];
    if (test_below(m->random, 2)) m->n_computed--; // later nodes cannot read it
    add_kv_cache_ports(m, state, successor);
}

// The result of Attention does not grow with the cache. The result of Add does, up to the next
// product.
static void add_cache(struct maker *m, int state) {
    int next = test_add_node(m->g, "Concat", state, pick_computed(m), 8);
    add_kv_cache_ports(m, state, next);
    if (test_below(m->random, 2)) {
        keep(m, test_add_node(m->g, "Attention", next, pick_computed(m), 16));
        return;
    }
    keep(m, test_add_node(m->g, "Add", next, pick_computed(m), 16));
    if (test_below(m->random, 2))
        keep(m, test_add_node(m->g, "MatMul", m->computed[m->n_computed - 1], pick_weight(m), 16));
}

static void add_kv_cache(struct maker *m) {
    struct test_graph *g = m->g;
    if (g->n_kv_caches == TEST_MAX_KV_CACHES) return;
    int64_t dims[4] = {-1, 0, -1, 0};
    dims[1] = 1 + test_below(m->random, 4);
    dims[3] = 1 + test_below(m->random, 32);
    if (test_below(m->random, 4) == 0) dims[2] = 16; // does not grow
    int state = test_add_input(g, 4, dims);
    if (test_below(m->random, 2)) {
        int size = test_add_node(g, "Shape", state, -1, 4);
        m->controls[m->n_controls++] = size;
    }
    if (test_below(m->random, 3) == 0)
        add_recurrent_state(m, state);
    else
        add_cache(m, state);
}

static void add_some_node(struct maker *m) {
    struct test_graph *g = m->g;
    int64_t width = 1 + test_below(m->random, 64);
    int a = pick_computed(m);
    switch (test_below(m->random, 14)) {
    case 0:
    case 1:
    case 2: keep(m, test_add_node(g, "MatMul", a, pick_weight(m), width)); break;
    case 3: keep(m, test_add_node(g, "Add", a, pick_computed(m), width)); break;
    case 4: keep(m, test_add_node(g, "Add", a, pick(m, m->controls, m->n_controls), width)); break;
    case 5: keep(m, test_add_node(g, "Mul", a, pick_weight(m), width)); break;
    case 6: {
        int weight = pick_weight(m), rows = pick(m, m->controls, m->n_controls);
        keep(m, test_add_node(g, "Gather", weight, rows, width));
        last_node(m)->axis = test_below(m->random, 3) == 0 ? 1 : 0;
        // A Gather from a small table is a control node.
        const struct test_value *table = &g->values[weight];
        if (table->n_rows * table->n_columns * 4 > 16384) break;
        m->controls[m->n_controls++] = m->computed[--m->n_computed];
        break;
    }
    case 7: {
        keep(m, test_add_node(g, "Split", a, -1, width));
        int second = test_add_node(g, "Split", a, -1, width); // only its output is kept
        g->n_nodes--;
        last_node(m)->outputs[last_node(m)->n_outputs++] = second;
        keep(m, second);
        break;
    }
    case 8:
        keep(m, test_add_node(g, "If", pick(m, m->controls, m->n_controls), -1, width));
        last_node(m)->captured = test_below(m->random, 2) ? a : m->controls[0];
        last_node(m)->inner = 1 + (int)test_below(m->random, 40);
        break;
    case 9: {
        keep(m, test_add_node(g, "Conv", a, pick_weight(m), width));
        struct test_value *out = &g->values[m->computed[m->n_computed - 1]];
        out->dims[2] =
            test_below(m->random, 8) == 0 ? INT64_MAX : (int64_t)test_below(m->random, 9);
        break;
    }
    case 10: {
        const char *op = test_below(m->random, 2) ? "Cast" : "Neg";
        int control = test_add_node(g, op, pick(m, m->controls, m->n_controls), -1, width);
        m->controls[m->n_controls++] = control;
        break;
    }
    case 11:
    case 12: { // often of an early value, and often read much later
        int of = test_below(m->random, 2) ? a : pick(m, m->computed, m->n_computed);
        keep(m, test_add_node(g, test_below(m->random, 3) ? "Shape" : "Size", of, -1, 4));
        break;
    }
    default: add_kv_cache(m);
    }
    if (test_below(m->random, 6) == 0 && g->n_outputs < TEST_MOST_OUTPUTS - 6)
        test_add_output(g, m->computed[m->n_computed - 1]);
}

void test_random_graph(struct test_graph *g, uint64_t *random) {
    *g = (struct test_graph){.n_values = 0};
    struct maker m = {.g = g, .random = random};
    int tokens = test_add_input(g, 2, (const int64_t[]){-1, -1});
    int positions = test_add_input(g, 2, (const int64_t[]){-1, -1});
    m.controls[m.n_controls++] = tokens;
    m.controls[m.n_controls++] = positions;
    m.controls[m.n_controls++] = test_add_node(g, "Cast", positions, -1, 1);
    int table = test_add_constant(g, 100 + test_below(random, 400), 64);
    keep(&m, test_add_node(g, "Gather", table, tokens, 64));
    if (test_below(random, 4) == 0) m.weights[m.n_weights++] = table; // tied
    if (test_below(random, 2)) // two branches from the beginning
        keep(&m, test_add_node(g, "MatMul", positions, pick_weight(&m), 32));
    int n = 3 + (int)test_below(random, 10);
    while (n-- > 0 && m.n_computed < 16)
        add_some_node(&m);
    test_add_output(g, m.computed[m.n_computed - 1]);
    if (test_below(random, 3) == 0 && m.n_computed > 2)
        test_add_output(g, m.computed[m.n_computed - 2]);
}
