#include "random_graph.h"

#include <stdio.h>
#include <string.h>

#include "session/model.h"
#include "splitmix.h"

static struct splitmix rng;

static uint32_t next(uint32_t below) {
    return splitmix_below(&rng, below);
}

static float random_float(void) {
    switch (next(40)) {
    case 0: return 0.0f;
    case 1: return -0.0f;
    case 2: return 1e-39f; // subnormal
    case 3: return -3e-42f;
    case 4: return 1e30f;
    default: return (float)((int)next(20001) - 10000) / 4096.0f;
    }
}

struct builder {
    struct ree_graph *graph;
    struct ree_value *values[MAX_VALUES]; // float32 values with known shapes
    uint32_t n;
    uint32_t n_names;
};

static struct ree_value *new_value(struct builder *b, uint32_t rank, const int64_t *dims) {
    char name[16];
    snprintf(name, sizeof name, "v%u", b->n_names++);
    struct ree_value *v = ree_graph_add_value(b->graph, name);
    v->dtype = REE_F32;
    v->has_shape = true;
    v->rank = rank;
    memcpy(v->dims, dims, rank * sizeof *dims);
    return v;
}

static int64_t count(const struct ree_value *v) {
    int64_t n = 1;
    for (uint32_t i = 0; i < v->rank; i++)
        n *= v->dims[i];
    return n;
}

static struct ree_value *new_constant(struct builder *b, uint32_t rank, const int64_t *dims) {
    struct ree_value *v = new_value(b, rank, dims);
    v->nbytes = (size_t)count(v) * 4;
    float *data = ree_arena_alloc(b->graph->arena, v->nbytes + 64);
    for (int64_t i = 0; i < count(v); i++)
        data[i] = random_float();
    v->data = data;
    return v;
}

static struct ree_value *new_ints(struct builder *b, uint32_t n, const int64_t *ints) {
    int64_t dim = n;
    struct ree_value *v = new_value(b, 1, &dim);
    v->dtype = REE_I64;
    v->nbytes = n * 8;
    int64_t *data = ree_arena_alloc(b->graph->arena, v->nbytes + 64);
    memcpy(data, ints, n * sizeof *ints);
    v->data = data;
    return v;
}

static struct ree_node *new_node(struct builder *b, const char *op, uint32_t n_in,
                                 struct ree_value *const *in, struct ree_value *out) {
    struct ree_graph *g = b->graph;
    struct ree_node *node = ree_arena_alloc(g->arena, sizeof *node);
    node->op_type = op;
    node->domain = "";
    node->name = "";
    node->opset = 17;
    node->n_inputs = n_in;
    node->inputs = ree_arena_alloc_array(g->arena, n_in + 1, sizeof *node->inputs);
    memcpy(node->inputs, in, n_in * sizeof *in);
    node->n_outputs = 1;
    node->outputs = ree_arena_alloc_array(g->arena, 1, sizeof *node->outputs);
    node->outputs[0] = out;
    node->attrs = ree_arena_alloc_array(g->arena, 4, sizeof *node->attrs);
    node->id = (uint32_t)g->n_nodes;
    out->producer = node;
    g->nodes[g->n_nodes++] = node;
    return node;
}

static void add_int(struct ree_node *node, const char *name, int64_t i) {
    node->attrs[node->n_attrs++] = (struct ree_attr){.name = name, .kind = REE_ATTR_INT, .i = i};
}

static void add_ints(struct builder *b, struct ree_node *node, const char *name, uint32_t n,
                     const int64_t *ints) {
    int64_t *copy = ree_arena_alloc_array(b->graph->arena, n, sizeof *copy);
    memcpy(copy, ints, n * sizeof *ints);
    node->attrs[node->n_attrs++] =
        (struct ree_attr){.name = name, .kind = REE_ATTR_INTS, .n = n, .ints = copy};
}

static void keep(struct builder *b, struct ree_value *v) {
    if (b->n < MAX_VALUES) b->values[b->n++] = v;
}

static struct ree_value *pick(struct builder *b) {
    return b->values[next(b->n)];
}

static void grow_unary(struct builder *b) {
    static const char *const ops[] = {"Relu", "Sigmoid", "Tanh", "Exp",   "Neg",      "Abs",
                                      "Sqrt", "Erf",     "Sin",  "Floor", "Softplus", "HardSwish"};
    struct ree_value *x = pick(b), *y = new_value(b, x->rank, x->dims);
    new_node(b, ops[next(sizeof ops / sizeof *ops)], 1, &x, y);
    keep(b, y);
}

// Returns a second operand with x's dimensions, some of them 1 and some leading ones removed.
static struct ree_value *partner(struct builder *b, const struct ree_value *x) {
    for (uint32_t tries = 0; tries < 4; tries++) {
        struct ree_value *v = pick(b);
        bool same = v->rank == x->rank;
        for (uint32_t i = 0; same && i < v->rank; i++)
            same = v->dims[i] == x->dims[i];
        if (same) return v;
    }
    int64_t dims[REE_MAX_RANK];
    uint32_t lead = x->rank ? next(x->rank) : 0, rank = x->rank - lead;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = next(3) ? x->dims[lead + i] : 1;
    return new_constant(b, rank, dims);
}

static void grow_binary(struct builder *b) {
    static const char *const ops[] = {"Add", "Sub", "Mul", "Div", "Max", "Min"};
    struct ree_value *x = pick(b), *in[2] = {x, partner(b, x)};
    struct ree_value *y = new_value(b, x->rank, x->dims);
    if (next(2)) {
        struct ree_value *t = in[0];
        in[0] = in[1];
        in[1] = t;
    }
    new_node(b, ops[next(sizeof ops / sizeof *ops)], 2, in, y);
    keep(b, y);
}

static void grow_transpose(struct builder *b) {
    struct ree_value *x = pick(b);
    int64_t perm[REE_MAX_RANK], dims[REE_MAX_RANK];
    for (uint32_t i = 0; i < x->rank; i++)
        perm[i] = i;
    for (uint32_t i = x->rank; i > 1; i--) {
        uint32_t j = next(i);
        int64_t t = perm[i - 1];
        perm[i - 1] = perm[j];
        perm[j] = t;
    }
    for (uint32_t i = 0; i < x->rank; i++)
        dims[i] = x->dims[perm[i]];
    struct ree_value *y = new_value(b, x->rank, dims);
    add_ints(b, new_node(b, "Transpose", 1, &x, y), "perm", x->rank, perm);
    keep(b, y);
}

static void grow_reshape(struct builder *b) {
    struct ree_value *x = pick(b);
    // Merges two adjacent dimensions or splits one.
    int64_t dims[REE_MAX_RANK];
    uint32_t rank = 0, at = x->rank ? next(x->rank) : 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (i == at && x->dims[i] % 2 == 0 && x->dims[i] && x->rank < 5) {
            dims[rank++] = 2;
            dims[rank++] = x->dims[i] / 2;
        } else if (i == at && i + 1 < x->rank) {
            dims[rank++] = x->dims[i] * x->dims[i + 1];
            i++;
        } else {
            dims[rank++] = x->dims[i];
        }
    }
    struct ree_value *in[2] = {x, new_ints(b, rank, dims)}, *y = new_value(b, rank, dims);
    new_node(b, "Reshape", 2, in, y);
    keep(b, y);
}

static void grow_slice(struct builder *b) {
    struct ree_value *x = pick(b);
    if (!x->rank) return;
    uint32_t axis = next(x->rank);
    int64_t n = x->dims[axis];
    if (n < 2) return;
    bool backwards = next(3) == 0;
    int64_t start = next((uint32_t)n / 2), length = 1 + next((uint32_t)(n - start));
    int64_t starts = backwards ? start + length - 1 : start;
    int64_t ends = backwards ? start - 1 - (start == 0 ? n : 0) : start + length;
    int64_t axes = axis, steps = backwards ? -1 : 1;
    struct ree_value *in[5] = {x, new_ints(b, 1, &starts), new_ints(b, 1, &ends),
                               new_ints(b, 1, &axes), new_ints(b, 1, &steps)};
    int64_t dims[REE_MAX_RANK];
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = length;
    struct ree_value *y = new_value(b, x->rank, dims);
    new_node(b, "Slice", 5, in, y);
    keep(b, y);
}

static void grow_concat(struct builder *b) {
    struct ree_value *x = pick(b);
    if (!x->rank) return;
    uint32_t axis = next(x->rank);
    int64_t dims[REE_MAX_RANK];
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = 1 + next(3);
    struct ree_value *in[3] = {x, new_constant(b, x->rank, dims), x};
    dims[axis] += 2 * x->dims[axis];
    struct ree_value *y = new_value(b, x->rank, dims);
    if (count(y) > 20000) return;
    add_int(new_node(b, "Concat", 3, in, y), "axis", axis);
    keep(b, y);
}

static void grow_matmul(struct builder *b) {
    struct ree_value *x = pick(b);
    if (x->rank < 2) return;
    int64_t dims[2] = {x->dims[x->rank - 1], 1 + next(20)}, out[REE_MAX_RANK];
    struct ree_value *in[2] = {x, new_constant(b, 2, dims)};
    memcpy(out, x->dims, sizeof out);
    out[x->rank - 1] = dims[1];
    struct ree_value *y = new_value(b, x->rank, out);
    new_node(b, "MatMul", 2, in, y);
    keep(b, y);
}

static void grow_conv(struct builder *b) {
    struct ree_value *x = pick(b);
    if (x->rank != 4 || x->dims[2] < 3 || x->dims[3] < 3) return;
    int64_t w_dims[4] = {1 + next(6), x->dims[1], 3, 3}, bias[1] = {w_dims[0]};
    struct ree_value *in[3] = {x, new_constant(b, 4, w_dims), new_constant(b, 1, bias)};
    int64_t out[4] = {x->dims[0], w_dims[0], x->dims[2], x->dims[3]};
    struct ree_value *y = new_value(b, 4, out);
    struct ree_node *node = new_node(b, "Conv", 2 + next(2), in, y);
    add_ints(b, node, "pads", 4, (int64_t[]){1, 1, 1, 1});
    keep(b, y);
}

static void grow_softmax(struct builder *b) {
    struct ree_value *x = pick(b);
    if (!x->rank) return;
    struct ree_value *y = new_value(b, x->rank, x->dims);
    add_int(new_node(b, next(2) ? "Softmax" : "LogSoftmax", 1, &x, y), "axis", next(x->rank));
    keep(b, y);
}

static void grow_norm(struct builder *b) {
    struct ree_value *x = pick(b);
    if (!x->rank) return;
    int64_t dim = x->dims[x->rank - 1];
    struct ree_value *in[3] = {x, new_constant(b, 1, &dim), new_constant(b, 1, &dim)};
    struct ree_value *y = new_value(b, x->rank, x->dims);
    new_node(b, "LayerNormalization", 2 + next(2), in, y);
    keep(b, y);
}

static void grow_reduce(struct builder *b) {
    static const char *const ops[] = {"ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp"};
    struct ree_value *x = pick(b);
    if (!x->rank) return;
    int64_t axis = next(x->rank), dims[REE_MAX_RANK];
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = 1;
    struct ree_value *y = new_value(b, x->rank, dims);
    add_ints(b, new_node(b, ops[next(4)], 1, &x, y), "axes", 1, &axis);
    keep(b, y);
}

struct ree_graph *random_graph(uint64_t seed) {
    rng.state = seed;
    struct builder b = {.graph = ree_graph_create()};
    struct ree_graph *g = b.graph;
    g->file = "";
    g->name = "random";
    g->ir_version = 8;
    g->opsets = ree_arena_alloc(g->arena, sizeof *g->opsets);
    *g->opsets = (struct ree_opset_import){"", 17};
    g->n_opsets = 1;
    g->nodes = ree_arena_alloc_array(g->arena, 64, sizeof *g->nodes);
    g->inputs = ree_arena_alloc_array(g->arena, 2, sizeof *g->inputs);
    g->outputs = ree_arena_alloc_array(g->arena, MAX_VALUES, sizeof *g->outputs);
    for (uint32_t i = 0; i < 2; i++) {
        int64_t dims[4] = {1 + next(2), 1 + next(6), 3 + next(8), 3 + next(8)};
        struct ree_value *v = new_value(&b, next(4) ? 4 : 2, dims);
        v->is_input = true;
        g->inputs[g->n_inputs++] = v;
        keep(&b, v);
    }
    int64_t dims[3] = {2, 3, 8};
    keep(&b, new_constant(&b, 3, dims));
    static void (*const grow[])(struct builder *) = {
        grow_unary,     grow_unary,   grow_binary, grow_binary, grow_binary,
        grow_transpose, grow_reshape, grow_slice,  grow_concat, grow_matmul,
        grow_softmax,   grow_norm,    grow_reduce, grow_conv};
    uint32_t n_nodes = 4 + next(24);
    for (uint32_t i = 0; i < n_nodes && g->n_nodes < 60; i++)
        grow[next(14)](&b);
    // Outputs: the last values, so that the others can be fused, and at random one in the middle.
    for (uint32_t i = b.n > 5 ? b.n - 3 : 2; i < b.n; i++)
        g->outputs[g->n_outputs++] = b.values[i];
    if (b.n > 8 && next(2)) g->outputs[g->n_outputs++] = b.values[b.n / 2];
    for (size_t i = 0; i < g->n_outputs; i++)
        g->outputs[i]->is_output = true;
    ree_graph_count_uses(g);
    return g;
}

void random_inputs(const struct ree_model *model, uint64_t seed, struct ree_tensor *out) {
    rng.state = seed ^ 0xA5A5A5A5u;
    for (size_t i = 0; i < ree_model_n_inputs(model); i++) {
        const struct ree_port *port = ree_model_input(model, i);
        ree_tensor_init(&out[i], port->name, REE_F32, port->rank, port->dims, NULL);
        float *data = out[i].data;
        for (size_t k = 0; k < out[i].nbytes / 4; k++)
            data[k] = random_float();
    }
}
