#include "changes.h"
#include "splitmix.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct splitmix rng;
static struct ree_arena *arena; // the arena of the graph that is changed

void changes_begin(struct ree_graph *g, uint64_t seed) {
    rng.state = seed;
    arena = g ? g->arena : NULL;
}

uint32_t draw(uint32_t below) {
    return splitmix_below(&rng, below);
}

// Changes

static struct ree_value *some_value(struct ree_graph *g, const struct ree_node *before) {
    struct ree_value *v = g->values[draw((uint32_t)g->n_values)];
    return v->producer && v->producer->id >= before->id ? NULL : v;
}

// Operators, and the attributes that decide which positions they read.
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

void set_int(struct ree_node *node, const char *name, int64_t value) {
    struct ree_attr *grown = ree_arena_alloc_array(arena, node->n_attrs + 1, sizeof *grown);
    if (node->n_attrs) memcpy(grown, node->attrs, node->n_attrs * sizeof *grown);
    size_t i = 0;
    while (i < node->n_attrs && strcmp(grown[i].name, name) != 0)
        i++;
    if (i == node->n_attrs) node->n_attrs++;
    grown[i] = (struct ree_attr){.name = name, .kind = REE_ATTR_INT, .i = value};
    node->attrs = grown;
}

void set_ints(struct ree_node *node, const char *name, size_t n, const int64_t *values) {
    int64_t *ints = ree_arena_alloc_array(arena, n + 1, sizeof *ints);
    memcpy(ints, values, n * sizeof *ints);
    set_int(node, name, 0);
    for (size_t i = 0; i < node->n_attrs; i++)
        if (!strcmp(node->attrs[i].name, name))
            node->attrs[i] =
                (struct ree_attr){.name = name, .kind = REE_ATTR_INTS, .n = n, .ints = ints};
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

struct ree_value *add_numbers(struct ree_graph *g, size_t n, const int64_t *numbers,
                              uint32_t rank) {
    static uint32_t number;
    char name[32];
    snprintf(name, sizeof name, "made.%u", number++);
    struct ree_value *v = ree_graph_add_value(g, name);
    int64_t *data = ree_arena_alloc_array(arena, n + 1, sizeof *data);
    memcpy(data, numbers, n * sizeof *data);
    v->dtype = REE_I64;
    v->has_shape = true;
    v->rank = rank;
    v->dims[0] = (int64_t)n;
    v->data = data;
    v->nbytes = 8 * n;
    return v;
}

static struct ree_value *add_constant(struct ree_graph *g, int64_t n, bool scalar) {
    return add_numbers(g, 1, &n, !scalar);
}

struct ree_node *add_node(struct ree_graph *g, const char *op, size_t n,
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

// Inserts one or two nodes between a value and a node that reads it.
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
    case 2: { // a value plus a sum over an axis
        struct ree_node *all = add_node(
            g, "ReduceSum", 2, (struct ree_value *[]){v, add_constant(g, axis, false)}, at);
        made = add_node(g, "Add", 2, (struct ree_value *[]){v, all->outputs[0]}, at + 1);
        break;
    }
    case 3: { // from element 0 or 1 on, along an axis
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

bool change(struct ree_graph *g) {
    struct ree_node *node = some_node(g);
    switch (draw(5)) {
    case 0: return change_attribute(node);
    case 1: return change_operator(node);
    case 2: return change_input(g, node);
    case 3: return change_constant(g);
    default: return insert(g, node);
    }
}
