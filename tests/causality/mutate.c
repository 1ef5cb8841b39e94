// Wherever the proof of causality holds, nothing may be found that contradicts it: models are
// changed at random, and those that are still said to be causal run with other later tokens, and
// with the same tokens cut into runs elsewhere. Rows of logits without a NaN have to stay.
//
//     causality_mutate COUNT MODEL...
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"
#include "generate/causality.h"
#include "graph/ir.h"
#include "session/model.h"
#include "test.h"

#define MAX_TOKENS 10

static uint64_t state;
static struct ree_arena *arena; // the changed graph's

static uint32_t draw(uint32_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return below ? (uint32_t)(state >> 33) % below : 0;
}

// Changes

static struct ree_value *some_value(struct ree_graph *g, const struct ree_node *before) {
    struct ree_value *v = g->values[draw((uint32_t)g->n_values)];
    return v->producer && v->producer->id >= before->id ? NULL : v;
}

// Attributes on which it hangs what an operator sees.
static const struct {
    const char *op_type, *attributes[3];
} telling[] = {
    {"CumSum", {"reverse", "exclusive", NULL}},
    {"Trilu", {"upper", NULL, NULL}},
    {"Attention", {"is_causal", "right_window_size", "left_window_size"}},
    {"GroupQueryAttention", {"causal", "local_window_size", "do_rotary"}},
    {"Softmax", {"axis", NULL, NULL}},
    {"Conv", {"pads", "dilations", "strides"}},
    {"Concat", {"axis", NULL, NULL}},
    {"Gather", {"axis", NULL, NULL}},
    {"Transpose", {"perm", NULL, NULL}},
    {"ReduceMax", {"axes", "keepdims", NULL}},
    {"ReduceSum", {"keepdims", NULL, NULL}},
    {"LayerNormalization", {"axis", NULL, NULL}},
    {"Range", {NULL, NULL, NULL}},
    {"LessOrEqual", {NULL, NULL, NULL}},
    {"Where", {NULL, NULL, NULL}},
};

static const char *telling_attribute(const struct ree_node *node) {
    for (size_t i = 0; i < sizeof telling / sizeof *telling; i++)
        if (!strcmp(telling[i].op_type, node->op_type)) {
            const char *name = telling[i].attributes[draw(3)];
            return name ? name : "";
        }
    return NULL;
}

static struct ree_node *some_node(struct ree_graph *g) {
    struct ree_node *node = g->nodes[draw((uint32_t)g->n_nodes)];
    for (uint32_t i = draw(2) ? 20 : 0; i > 0 && !telling_attribute(node); i--)
        node = g->nodes[draw((uint32_t)g->n_nodes)];
    return node;
}

static void set_int(struct ree_node *node, const char *name, int64_t value) {
    struct ree_attr *grown = ree_arena_alloc_array(arena, node->n_attrs + 1, sizeof *grown);
    if (node->n_attrs) memcpy(grown, node->attrs, node->n_attrs * sizeof *grown);
    size_t i = 0;
    while (i < node->n_attrs && strcmp(grown[i].name, name) != 0)
        i++;
    if (i == node->n_attrs) node->n_attrs++;
    grown[i] = (struct ree_attr){.name = name, .kind = REE_ATTR_INT, .i = value};
    node->attrs = grown;
}

static void change_ints(struct ree_attr *a, int64_t value) {
    int64_t *ints = ree_arena_alloc_array(arena, a->n, sizeof *ints);
    memcpy(ints, a->ints, a->n * sizeof *ints);
    size_t i = draw((uint32_t)a->n), j = draw((uint32_t)a->n);
    ints[i] = value;
    if (draw(2)) {
        ints[i] = a->ints[j];
        ints[j] = a->ints[i];
    }
    a->ints = ints;
}

static bool change_attribute(struct ree_node *node) {
    static const int64_t values[] = {0, 1, 2, -1, -2, 3, 7, 9};
    const char *name = telling_attribute(node);
    struct ree_attr *a = node->n_attrs ? &node->attrs[draw((uint32_t)node->n_attrs)] : NULL;
    for (size_t i = 0; name && i < node->n_attrs; i++)
        if (!strcmp(node->attrs[i].name, name)) a = &node->attrs[i];
    int64_t value = values[draw(draw(2) ? 2 : 8)];
    if (a && a->kind == REE_ATTR_INTS && a->n)
        change_ints(a, value);
    else if (name && *name && strcmp(name, "pads") && strcmp(name, "perm") && strcmp(name, "axes"))
        set_int(node, name, value);
    else if (a && a->kind == REE_ATTR_INT)
        set_int(node, a->name, value);
    else
        return false;
    return true;
}

static bool change_operator(struct ree_node *node) {
    static const char *const groups[][8] = {
        {"Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"},
        {"LessOrEqual", "Less", "Greater", "GreaterOrEqual", "Equal"},
        {"And", "Or", "Xor"},
        {"ReduceSumSquare", "ReduceMax", "ReduceSum", "ReduceMean", "ReduceL2"},
        {
            "Softmax",
            "Identity",
            "Exp",
            "Sigmoid",
            "Tanh",
            "Relu",
            "Neg",
            "Sqrt",
        },
        {"Cos", "Sin", "Identity", "Softmax"},
        {"CumSum", "Trilu", "Add", "Mul"},
        {"Unsqueeze", "Squeeze"},
    };
    for (size_t k = 0; k < sizeof groups / sizeof *groups; k++)
        for (size_t i = 0; i < 8 && groups[k][i]; i++)
            if (!strcmp(node->op_type, groups[k][i]) && !node->domain[0]) {
                size_t n = 0;
                while (n < 8 && groups[k][n])
                    n++;
                node->op_type = groups[k][draw((uint32_t)n)];
                return true;
            }
    return false;
}

static bool change_input(struct ree_graph *g, struct ree_node *node) {
    if (!node->n_inputs) return false;
    struct ree_value **inputs =
        ree_arena_alloc_array(arena, node->n_inputs, sizeof(struct ree_value *));
    memcpy(inputs, node->inputs, node->n_inputs * sizeof *inputs);
    size_t i = draw((uint32_t)node->n_inputs), j = draw((uint32_t)node->n_inputs);
    switch (draw(3)) {
    case 0:
        inputs[i] = node->inputs[j];
        inputs[j] = node->inputs[i];
        break;
    case 1: {
        struct ree_value *v = some_value(g, node);
        if (!v) return false;
        inputs[i] = v;
        break;
    }
    default: inputs[i] = i ? NULL : inputs[i]; break;
    }
    node->inputs = inputs;
    return true;
}

static bool change_constant(struct ree_graph *g) {
    const struct ree_node *node = some_node(g);
    if (!node->n_inputs) return false;
    struct ree_value *v = node->inputs[draw((uint32_t)node->n_inputs)];
    if (!v || !v->data || v->nbytes > 64 || !v->nbytes) return false;
    char *copy = ree_arena_alloc(arena, v->nbytes + 8);
    memcpy(copy, v->data, v->nbytes);
    static const int64_t ints[] = {-1, 0, 1, 2, -2, 3, 1 << 20};
    static const float floats[] = {0, 1, -INFINITY, INFINITY, -3.40282347e38f, -1, NAN};
    if (v->dtype == REE_I64) {
        size_t i = draw((uint32_t)(v->nbytes / 8));
        int64_t old, to = ints[draw(7)];
        memcpy(&old, copy + 8 * i, 8);
        if (draw(2)) to = old + (int64_t)draw(3) - 1;
        memcpy(copy + 8 * i, &to, 8);
    } else if (v->dtype == REE_F32) {
        memcpy(copy + 4 * draw((uint32_t)(v->nbytes / 4)), &floats[draw(7)], 4);
    } else {
        return false;
    }
    v->data = copy;
    return true;
}

static struct ree_value *add_constant(struct ree_graph *g, int64_t n, bool scalar) {
    static uint32_t number;
    char name[32];
    snprintf(name, sizeof name, "made.%u", number++);
    struct ree_value *v = ree_graph_add_value(g, name);
    int64_t *data = ree_arena_alloc_array(arena, 2, sizeof *data);
    *data = n;
    v->dtype = REE_I64;
    v->has_shape = true;
    v->rank = !scalar;
    v->dims[0] = 1;
    v->data = data;
    v->nbytes = 8;
    return v;
}

static struct ree_node *add_node(struct ree_graph *g, const char *op, size_t n,
                                 struct ree_value *const *inputs, uint32_t at) {
    struct ree_node *node = ree_arena_alloc(arena, sizeof *node);
    struct ree_value **ports = ree_arena_alloc_array(arena, n + 1, sizeof(struct ree_value *));
    struct ree_node **nodes =
        ree_arena_alloc_array(arena, g->n_nodes + 1, sizeof(struct ree_node *));
    memcpy(ports, inputs, n * sizeof *ports);
    char name[32];
    static uint32_t number;
    snprintf(name, sizeof name, "put.%u", number++);
    ports[n] = ree_graph_add_value(g, name);
    *node = (struct ree_node){.name = ports[n]->name,
                              .op_type = op,
                              .domain = "",
                              .opset = ree_graph_opset(g, ""),
                              .n_inputs = n,
                              .inputs = ports,
                              .n_outputs = 1,
                              .outputs = ports + n};
    ports[n]->producer = node;
    memcpy(nodes, g->nodes, at * sizeof *nodes);
    nodes[at] = node;
    memcpy(nodes + at + 1, g->nodes + at, (g->n_nodes - at) * sizeof *nodes);
    g->nodes = nodes;
    g->nodes_capacity = ++g->n_nodes;
    for (size_t i = at; i < g->n_nodes; i++)
        nodes[i]->id = (uint32_t)i;
    return node;
}

// Puts a node or two between a value and one that reads it.
static bool insert(struct ree_graph *g, struct ree_node *reader) {
    static const char *const unary[] = {"Exp",  "Neg",      "Relu",    "Sigmoid", "Sqrt",
                                        "Tanh", "Identity", "Softmax", "IsNaN",   "Abs"};
    if (!reader->n_inputs) return false;
    size_t i = draw((uint32_t)reader->n_inputs);
    struct ree_value *v = reader->inputs[i];
    if (!v) return false;
    uint32_t at = reader->id;
    struct ree_node *made;
    int64_t axis = (int64_t)draw(5) - 2;
    switch (draw(7)) {
    case 0:
        made = add_node(g, unary[draw(10)], 1, &v, at);
        if (draw(2)) set_int(made, "axis", axis);
        break;
    case 1:
        made = add_node(g, "CumSum", 2, (struct ree_value *[]){v, add_constant(g, axis, true)}, at);
        if (draw(2)) set_int(made, "reverse", 1);
        if (draw(2)) set_int(made, "exclusive", 1);
        break;
    case 2: { // a value and what all of an axis has in common
        struct ree_node *all = add_node(
            g, "ReduceSum", 2, (struct ree_value *[]){v, add_constant(g, axis, false)}, at);
        made = add_node(g, "Add", 2, (struct ree_value *[]){v, all->outputs[0]}, at + 1);
        break;
    }
    case 3: { // moved by one along an axis
        struct ree_value *bounds[] = {v, add_constant(g, draw(2), false),
                                      add_constant(g, INT32_MAX, false),
                                      add_constant(g, axis, false)};
        made = add_node(g, "Slice", 4, bounds, at);
        break;
    }
    case 4: {
        struct ree_node *shape = add_node(g, "Shape", 1, &v, at);
        struct ree_node *number = add_node(g, "Cast", 1, shape->outputs, at + 1);
        set_int(number, "to", 1);
        struct ree_node *one =
            add_node(g, "ReduceSum", 2,
                     (struct ree_value *[]){number->outputs[0], add_constant(g, 0, false)}, at + 2);
        made = add_node(g, "Add", 2, (struct ree_value *[]){v, one->outputs[0]}, at + 3);
        break;
    }
    case 5: {
        struct ree_value *other = some_value(g, reader);
        if (!other) return false;
        made = add_node(g, draw(2) ? "Add" : "Mul", 2, (struct ree_value *[]){v, other}, at);
        break;
    }
    default:
        made = add_node(g, "Trilu", 1, &v, at);
        set_int(made, "upper", draw(2));
        break;
    }
    struct ree_value **inputs =
        ree_arena_alloc_array(arena, reader->n_inputs, sizeof(struct ree_value *));
    memcpy(inputs, reader->inputs, reader->n_inputs * sizeof *inputs);
    inputs[i] = made->outputs[0];
    reader->inputs = inputs;
    return true;
}

static bool change(struct ree_graph *g) {
    struct ree_node *node = some_node(g);
    switch (draw(5)) {
    case 0: return change_attribute(node);
    case 1: return change_operator(node);
    case 2: return change_input(g, node);
    case 3: return change_constant(g);
    default: return insert(g, node);
    }
}

// Runs

struct trial {
    struct ree_model *model;
    const struct ree_roles *roles;
    struct ree_session *session;
    struct ree_tensor *outputs, *states; // states: of the inputs that are, in their order
    size_t vocab;
};

static void set_number(struct ree_tensor *t, size_t i, int64_t value) {
    if (t->dtype == REE_I64) ((int64_t *)t->data)[i] = value;
    if (t->dtype == REE_I32) ((int32_t *)t->data)[i] = (int32_t)value;
    if (t->dtype == REE_F32) ((float *)t->data)[i] = (float)value;
}

static enum ree_status make_input(struct trial *t, size_t i, const int32_t *ids, size_t from,
                                  size_t n, struct ree_tensor *out) {
    struct ree_error err;
    const struct ree_port *port = ree_model_input(t->model, i);
    int64_t dims[REE_MAX_RANK] = {1, (int64_t)n, 1};
    uint32_t rank = 2;
    enum ree_role role = t->roles->of_input[i];
    if (role == REE_ROLE_STATE) {
        size_t k = 0;
        for (size_t j = 0; j < i; j++)
            k += t->roles->of_input[j] == REE_ROLE_STATE;
        const struct ree_state_spec *spec = &t->roles->states[k];
        if (t->states[k].data || t->states[k].rank) {
            *out = t->states[k];
            t->states[k] = (struct ree_tensor){0};
            free((void *)(uintptr_t)out->name);
            out->name = strdup(port->name);
            return REE_OK;
        }
        rank = port->rank;
        memcpy(dims, port->dims, sizeof dims);
        dims[spec->batch_axis] = 1;
        dims[spec->axis] = 0;
    }
    if (role == REE_ROLE_ATTENTION_MASK) dims[1] = (int64_t)(from + n);
    if (role == REE_ROLE_TOTAL_LENGTH || role == REE_ROLE_PAST_LENGTH) rank = 0;
    if (role == REE_ROLE_POSITIONS && port->rank == 1) {
        rank = 1;
        dims[0] = (int64_t)n;
    }
    REE_TRY(ree_tensor_init(out, port->name, port->dtype, rank, dims, &err));
    for (size_t k = 0; k < out->nbytes / ree_dtype_size(out->dtype); k++)
        set_number(out, k,
                   role == REE_ROLE_TOKENS           ? ids[from + k]
                   : role == REE_ROLE_POSITIONS      ? (int64_t)(from + k)
                   : role == REE_ROLE_ATTENTION_MASK ? 1
                   : role == REE_ROLE_TOTAL_LENGTH   ? (int64_t)(from + n)
                   : role == REE_ROLE_PAST_LENGTH    ? (int64_t)from
                                                     : 0);
    return REE_OK;
}

static float logit(const struct ree_tensor *t, size_t i) {
    if (t->dtype == REE_F32) return ((const float *)t->data)[i];
    uint16_t half = ((const uint16_t *)t->data)[i];
    return (half & 0x7fff) > 0x7c00 ? NAN : (float)half; // bits are compared, and NaN told apart
}

// ids[from ... from + n - 1], their logits into rows `from` on.
static bool run(struct trial *t, const int32_t *ids, size_t from, size_t n, float *logits) {
    struct ree_error err;
    size_t n_in = t->roles->n_inputs, n_out = ree_model_n_outputs(t->model);
    struct ree_tensor *inputs = calloc(n_in + 1, sizeof *inputs);
    struct ree_tensor *outputs = calloc(n_out + 1, sizeof *outputs);
    bool ok = true;
    for (size_t i = 0; i < n_in && ok; i++)
        ok = make_input(t, i, ids, from, n, &inputs[i]) == REE_OK;
    ok = ok && ree_session_run(t->session, inputs, n_in, outputs, &err) == REE_OK;
    struct ree_tensor *out = &outputs[t->roles->logits];
    bool fits = ok && out->rank == 3 && out->dims[0] == 1 && out->dims[1] == (int64_t)n &&
                (out->dtype == REE_F32 || out->dtype == REE_F16 || out->dtype == REE_BF16);
    CHECK_MSG(!ok || fits, "the logits of a model that is said to be causal have another shape");
    if (fits) {
        t->vocab = (size_t)out->dims[2];
        for (size_t i = 0; i < n * t->vocab && t->vocab <= 1024; i++)
            logits[from * t->vocab + i] = logit(out, i);
        for (size_t k = 0; k < t->roles->n_states; k++) {
            struct ree_tensor *next = &outputs[t->roles->states[k].output];
            ree_tensor_finish(&t->states[k]);
            t->states[k] = *next;
            *next = (struct ree_tensor){0};
        }
    }
    for (size_t i = 0; i < n_in; i++)
        ree_tensor_finish(&inputs[i]);
    for (size_t i = 0; ok && i < n_out; i++)
        ree_tensor_finish(&outputs[i]);
    free(inputs);
    free(outputs);
    return fits;
}

static void forget(struct trial *t) {
    for (size_t k = 0; k < t->roles->n_states; k++)
        ree_tensor_finish(&t->states[k]);
    memset(t->states, 0, (t->roles->n_states + 1) * sizeof *t->states);
}

static bool row_has_nan(const float *row, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (isnan(row[i])) return true;
    return false;
}

static size_t differing_row(const float *a, const float *b, size_t n, size_t vocab) {
    for (size_t r = 0; r < n; r++)
        if (!row_has_nan(a + r * vocab, vocab) && !row_has_nan(b + r * vocab, vocab) &&
            memcmp(a + r * vocab, b + r * vocab, vocab * sizeof *a) != 0)
            return r;
    return n;
}

static long n_compared;

// False: it does not run.
static bool contradict(struct trial *t, int32_t vocab, uint64_t seed) {
    static float a[MAX_TOKENS * 1024], b[MAX_TOKENS * 1024];
    int32_t ids[MAX_TOKENS];
    size_t n = 2 + draw(MAX_TOKENS - 1), keep = 1 + draw((uint32_t)n - 1);
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)draw((uint32_t)vocab);
    if (!run(t, ids, 0, n, a)) return false;
    forget(t);
    // Token by token, or in two parts; without a cache each run begins anew.
    size_t step = draw(2) ? 1 : keep;
    for (size_t from = 0; from < n;) {
        size_t some = step < n - from ? step : n - from;
        bool ok = t->roles->n_states ? run(t, ids, from, some, b) : run(t, ids, 0, from + some, b);
        if (!ok) return false;
        from += some;
    }
    forget(t);
    size_t row = differing_row(a, b, n, t->vocab);
    CHECK_MSG(row == n,
              "seed %llu: row %zu of %zu differs when the tokens are cut into runs of %zu",
              (unsigned long long)seed, row, n, step);
    for (size_t i = keep; i < n; i++)
        ids[i] = (int32_t)draw((uint32_t)vocab);
    if (!run(t, ids, 0, n, b)) return false;
    forget(t);
    row = differing_row(a, b, keep, t->vocab);
    CHECK_MSG(row == keep, "seed %llu: row %zu depends on tokens from %zu on",
              (unsigned long long)seed, row, keep);
    n_compared++;
    return true;
}

struct counts {
    long changed, proved, ran;
};

static void try_one(const char *path, struct ree_device *device, uint64_t seed, uint32_t n_changes,
                    struct counts *counts) {
    struct ree_error err;
    struct ree_graph *graph = NULL;
    struct trial t = {0};
    struct ree_roles roles;
    char why[512];
    state = seed * 0x9e3779b97f4a7c15u + 1;
    REQUIRE(ree_onnx_load(path, NULL, NULL, &graph, &err) == REE_OK);
    struct ree_model_options options = {.no_fold = draw(2)};
    REQUIRE(ree_model_from_graph(graph, &options, &t.model, &err) == REE_OK);
    REQUIRE(ree_roles_find(t.model, &(struct ree_port_names){0}, &roles, &err) == REE_OK);
    graph = t.model->graph;
    arena = graph->arena;
    int32_t vocab = (int32_t)ree_model_output(t.model, roles.logits)->dims[2];
    uint32_t done = 0;
    for (uint32_t i = 0; i < 100 && done < n_changes; i++)
        done += change(graph);
    t.model->n_values = ree_graph_number(graph);
    ree_graph_count_uses(graph);
    counts->changed += done == n_changes;
    bool proved = ree_model_is_causal(t.model, &roles, draw(4) == 0 && n_changes, why, sizeof why);
    CHECK_MSG(proved || n_changes, "%s: %s", path, why);
    counts->proved += proved;
    t.roles = &roles;
    t.states = calloc(roles.n_states + 1, sizeof *t.states);
    if (proved && ree_session_create(t.model, device, NULL, &t.session, &err) == REE_OK)
        counts->ran += contradict(&t, vocab, seed);
    CHECK(n_changes || counts->ran);
    forget(&t);
    free(t.states);
    ree_session_destroy(t.session);
    ree_roles_finish(&roles);
    ree_model_destroy(t.model);
}

int main(int argc, char **argv) {
    struct ree_device *device;
    struct ree_error err;
    REQUIRE(argc > 2);
    REQUIRE(ree_device_open("cpu", NULL, &device, &err) == REE_OK);
    long count = atol(argv[1]);
    for (int i = 2; i < argc; i++) {
        struct counts counts = {0};
        try_one(argv[i], device, 0, 0, &counts);
        counts = (struct counts){0};
        for (long k = 1; k <= count; k++)
            try_one(argv[i], device, (uint64_t)k, 1 + (uint32_t)(k % 3 == 0), &counts);
        printf("%s: %ld changed, %ld still proved, %ld of these ran\n", argv[i], counts.changed,
               counts.proved, counts.ran);
        CHECK_MSG(counts.proved > 0 && counts.proved < counts.changed,
                  "some changes leave it causal, and not all");
        CHECK(counts.ran > 0);
    }
    printf("%ld models compared\n", n_compared);
    ree_device_destroy(device);
    return test_finish();
}
