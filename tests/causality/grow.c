#include "grow.h"

#include <stdio.h>
#include <string.h>

#include "changes.h"
#include "trial.h"

#define N_NODES 60 // nodes tried for each model

static struct ree_graph *graph;
static const struct claims *claims;

// Inputs of new nodes

enum want { ANY, LIST, INDEX, FLOAT, BOOL };

static bool is_wanted(const struct ree_fact *f, enum want want) {
    switch (want) {
    case ANY: return true;
    case LIST: return f->n_counts > 0;
    case INDEX: return ree_fact_is_index(f);
    case FLOAT: return ree_fact_is_float(f);
    case BOOL: return f->dtype == REE_BOOL;
    }
    return false;
}

// Returns a random value with a fact of the kind; NULL if none was found.
static struct ree_value *pick(enum want want) {
    for (uint32_t i = 0; i < 200; i++) {
        // Prefer later values: the added nodes computed them.
        uint32_t n = (uint32_t)claims->n_facts, id = draw(n), other = draw(n);
        if (draw(2) && other > id) id = other;
        if (!claims->facts[id].why_not && is_wanted(&claims->facts[id], want))
            return graph->values[id];
    }
    return NULL;
}

static int64_t draw_number(void) {
    static const int64_t small[] = {0, 1, 2, 3, 4, -1, -2, 1, 1, 2, 0, 8};
    static const int64_t large[] = {INT32_MAX,     INT64_MAX, INT64_MIN,   -INT64_MAX,
                                    1LL << 31,     1LL << 32, (1LL << 62), -3,
                                    INT64_MAX - 1, 5,         7,           -(1LL << 31)};
    return draw(8) ? small[draw(12)] : large[draw(12)];
}

static struct ree_value *numbers(size_t n) {
    int64_t values[8];
    for (size_t i = 0; i < n; i++)
        values[i] = draw_number();
    return add_numbers(graph, n, values, 1);
}

static struct ree_value *scalar(void) {
    int64_t n = draw_number();
    return add_numbers(graph, 1, &n, draw(2));
}

static struct ree_value *list(void) {
    struct ree_value *v = draw(3) ? pick(LIST) : NULL;
    return v ? v : numbers(1 + draw(4));
}

static const struct ree_fact *fact_of(const struct ree_value *v) {
    return v->id < claims->n_facts ? &claims->facts[v->id] : NULL;
}

static uint32_t rank_of(const struct ree_value *v) {
    const struct ree_fact *f = fact_of(v);
    return f ? f->rank : v->rank;
}

static int64_t draw_axis(const struct ree_value *v) {
    uint32_t rank = rank_of(v);
    if (!rank || !draw(20)) return draw_number();
    return (int64_t)draw(rank) - (draw(2) ? (int64_t)rank : 0);
}

static struct ree_value *axis_of(const struct ree_value *v) {
    int64_t axis = draw_axis(v);
    return add_numbers(graph, 1, &axis, 1);
}

static struct ree_node *node(const char *op, size_t n, struct ree_value *const *inputs) {
    for (size_t i = 0; i < n; i++)
        if (!inputs[i] && (i == 0 || draw(4))) return NULL;
    return add_node(graph, op, n, inputs, (uint32_t)graph->n_nodes);
}

#define NODE(op, ...)                                                                              \
    node(op, sizeof((struct ree_value *[]){__VA_ARGS__}) / sizeof(struct ree_value *),             \
         (struct ree_value *[]){__VA_ARGS__})

// New nodes. Each function returns its last node, or NULL.

static struct ree_node *shaped(void) {
    struct ree_value *v = pick(ANY), *sizes;
    struct ree_node *n;
    if (!v) return NULL;
    switch (draw(4)) {
    case 0: { // sizes that are kept (0), joined (-1) or constant
        int64_t dims[REE_MAX_RANK];
        uint32_t rank = 1 + draw(4);
        for (uint32_t i = 0; i < rank; i++)
            dims[i] = (int64_t[]){0, -1, 1, 2, 4, 8}[draw(6)];
        sizes = add_numbers(graph, rank, dims, 1);
        break;
    }
    case 1: { // a list reshaped to a table
        const struct ree_fact *f = fact_of(v = pick(LIST) ? pick(LIST) : v);
        int64_t k = f && f->n_counts ? (int64_t)f->n_counts : 1, some = 1 + draw(4);
        while (k % some)
            some--;
        sizes =
            add_numbers(graph, 2, (int64_t[]){draw(2) ? some : k / some, draw(2) ? -1 : some}, 1);
        break;
    }
    case 2: sizes = numbers(1 + draw(4)); break;
    default: sizes = list(); break;
    }
    n = NODE("Reshape", v, sizes);
    if (n && !draw(4)) set_int(n, "allowzero", draw(2));
    return n;
}

static struct ree_node *transposed(void) {
    struct ree_value *v = pick(draw(2) ? ANY : LIST);
    if (!v) return NULL;
    struct ree_node *n = NODE("Transpose", v);
    int64_t perm[REE_MAX_RANK];
    uint32_t rank = rank_of(v);
    for (uint32_t i = 0; i < rank; i++)
        perm[i] = i;
    for (uint32_t i = rank; i > 1; i--) {
        uint32_t k = draw(i);
        int64_t kept = perm[i - 1];
        perm[i - 1] = perm[k];
        perm[k] = kept;
    }
    if (n && rank && draw(3)) set_ints(n, "perm", rank, perm);
    return n;
}

// Makes tables of lists: broadcasts two lists across each other, or permutes the elements of one.
static struct ree_node *tabled(void) {
    struct ree_value *a = list(), *b = list();
    struct ree_node *n;
    if (draw(2)) {
        int64_t axis = draw(2);
        struct ree_node *column = NODE("Unsqueeze", a, add_numbers(graph, 1, &axis, 1));
        axis = draw(4) ? !axis : axis;
        struct ree_node *row = NODE("Unsqueeze", b, add_numbers(graph, 1, &axis, 1));
        n = column && row ? NODE(draw(2) ? "Add" : "Mul", column->outputs[0], row->outputs[0])
                          : NULL;
    } else {
        int64_t sizes[2] = {2, -1};
        n = NODE("Concat", a, draw(2) ? a : b);
        n = n ? NODE("Reshape", n->outputs[0], add_numbers(graph, 2, sizes, 1)) : NULL;
        n = n ? NODE("Transpose", n->outputs[0]) : NULL;
    }
    return n && draw(2) ? NODE("Reshape", n->outputs[0], add_numbers(graph, 1, (int64_t[]){-1}, 1))
                        : n;
}

static struct ree_node *sliced(void) {
    struct ree_value *v = pick(draw(2) ? ANY : LIST);
    if (!v) return NULL;
    static const int64_t far[2] = {INT32_MAX, INT64_MAX}, both[2] = {0, -1};
    static const int64_t steps[2] = {INT64_MAX, INT64_MAX - 1};
    size_t k = rank_of(v) > 1 && !draw(4) ? 2 : 1;
    struct ree_value *bounds[5] = {v, numbers(k), draw(4) ? numbers(k) : list(),
                                   k == 1 ? axis_of(v) : add_numbers(graph, 2, both, 1),
                                   draw(3) ? numbers(k) : add_numbers(graph, k, steps, 1)};
    if (!draw(3)) bounds[2] = add_numbers(graph, k, far, 1);
    return node("Slice", 3 + draw(3), bounds);
}

static struct ree_node *joined(void) {
    struct ree_value *v = pick(draw(2) ? ANY : LIST), *parts[4];
    if (!v) return NULL;
    size_t n = 1 + draw(4);
    for (size_t i = 0; i < n; i++)
        parts[i] = draw(3) ? v : pick(rank_of(v) == 1 ? LIST : ANY);
    struct ree_node *made = node("Concat", n, parts);
    if (made) set_int(made, "axis", draw_axis(v));
    return made;
}

static struct ree_node *split(void) {
    struct ree_value *v = pick(ANY);
    if (!v) return NULL;
    struct ree_node *n = draw(2) ? NODE("Split", v) : NODE("Split", v, numbers(2));
    if (!n) return NULL;
    struct ree_value **outputs = ree_arena_alloc_array(graph->arena, 2, sizeof(struct ree_value *));
    char name[40];
    snprintf(name, sizeof name, "%s.1", n->outputs[0]->name);
    outputs[0] = n->outputs[0];
    outputs[1] = ree_graph_add_value(graph, name);
    outputs[1]->producer = n;
    n->outputs = outputs;
    n->n_outputs = 2;
    set_int(n, "axis", draw_axis(v));
    return n;
}

// Returns random indices into a list of n elements, counted from its beginning or its end.
static struct ree_value *places(size_t n) {
    int64_t at[3];
    uint32_t n_at = 1 + draw(3);
    for (uint32_t i = 0; i < n_at; i++)
        at[i] = (int64_t)draw((uint32_t)(2 * n)) - (int64_t)n;
    return add_numbers(graph, n_at, at, 1);
}

static struct ree_node *gathered(void) {
    struct ree_value *v = pick(draw(2) ? ANY : LIST);
    struct ree_value *index = draw(3) ? draw(2) ? scalar() : numbers(1 + draw(3)) : pick(INDEX);
    if (!v) return NULL;
    const struct ree_fact *f = fact_of(v);
    if (f && f->n_counts && f->rank == 1 && draw(2)) index = places(f->n_counts);
    struct ree_node *n = NODE("Gather", v, index);
    if (n) set_int(n, "axis", draw_axis(v));
    return n;
}

static struct ree_node *axes_changed(void) {
    struct ree_value *v = pick(draw(2) ? ANY : LIST);
    if (!v) return NULL;
    if (draw(3)) return NODE("Unsqueeze", v, draw(3) ? axis_of(v) : numbers(1 + draw(2)));
    return NODE("Squeeze", v, axis_of(v));
}

static struct ree_node *computed(void) {
    static const char *const ops[] = {"Add", "Sub", "Mul", "Div", "Min", "Max"};
    bool counts = draw(3);
    struct ree_value *a = counts ? list() : pick(ANY), *b = counts ? list() : pick(ANY);
    return NODE(ops[draw(counts ? 4 : 6)], draw(10) ? a : scalar(), draw(4) ? b : scalar());
}

static struct ree_node *reduced(void) {
    static const char *const ops[] = {"ReduceSum", "ReduceMax", "ReduceMean", "ReduceProd",
                                      "CumSum",    "Softmax",   "Trilu"};
    uint32_t op = draw(7);
    struct ree_value *v = pick(ANY);
    if (!v) return NULL;
    struct ree_node *n = op >= 5 && draw(3) ? NODE(ops[op], v)
                         : op == 6          ? NODE(ops[op], v, scalar())
                                            : NODE(ops[op], v, draw(5) ? axis_of(v) : list());
    if (!n) return NULL;
    if (op < 4 && draw(2)) set_int(n, "keepdims", draw(2));
    if (op == 4 && !draw(3)) set_int(n, draw(2) ? "exclusive" : "reverse", 1);
    if (op == 5) n->n_inputs = 1;
    if (op == 5 && draw(2)) set_int(n, "axis", draw_axis(v));
    if (op == 6 && draw(2)) set_int(n, "upper", draw(2));
    return n;
}

static struct ree_node *made_of_sizes(void) {
    switch (draw(4)) {
    case 0: return NODE("ConstantOfShape", list());
    case 1: return NODE("Expand", pick(ANY), list());
    case 2: {
        struct ree_value *one = add_numbers(graph, 1, (int64_t[]){1}, 0);
        struct ree_value *zero = add_numbers(graph, 1, (int64_t[]){draw(4) ? 0 : draw_number()}, 0);
        return NODE("Range", draw(2) ? zero : pick(LIST), pick(LIST), draw(5) ? one : scalar());
    }
    default: break;
    }
    struct ree_value *v = pick(ANY);
    struct ree_node *n = v ? NODE("Shape", v) : NULL;
    if (n && !draw(3)) set_int(n, "start", draw_number());
    if (n && !draw(3)) set_int(n, "end", draw_number());
    return n;
}

static struct ree_node *compared(void) {
    static const char *const ops[] = {"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"};
    static const char *const logic[] = {"And", "Or", "Xor"};
    switch (draw(6)) {
    case 0: return NODE("Where", pick(BOOL), pick(FLOAT), pick(FLOAT));
    case 1: return NODE("Not", pick(BOOL));
    case 2: return NODE(logic[draw(3)], pick(BOOL), pick(BOOL));
    case 3: {
        struct ree_node *n = NODE("Cast", pick(ANY));
        if (n) set_int(n, "to", (int64_t[]){1, 6, 7, 9, 10, 11, 3, 5}[draw(8)]);
        return n;
    }
    default: return NODE(ops[draw(5)], pick(INDEX), pick(INDEX));
    }
}

static struct ree_node *weighed(void) {
    if (draw(2)) return NODE("MatMul", pick(FLOAT), pick(FLOAT));
    static const char *const unary[] = {"Exp", "Neg", "Sigmoid", "Identity", "Abs", "Cos"};
    return NODE(unary[draw(6)], pick(ANY));
}

// Attention with the heads and lengths that the operator requires, and random widths.
static struct ree_node *attended(void) {
    struct ree_value *q = pick(FLOAT), *k = pick(FLOAT), *v = pick(FLOAT);
    int64_t heads = 1 + draw(2), kv_heads = draw(20) ? heads : draw_number();
    if (!q || !k || !v) return NULL;
    if (draw(2)) k = q;
    struct ree_node *n;
    if (draw(2)) {
        n = NODE("Attention", q, k, v);
        if (!n) return NULL;
        n->opset = 23;
        set_int(n, "q_num_heads", heads);
        set_int(n, "kv_num_heads", kv_heads);
        set_int(n, "is_causal", draw(4) != 0);
        return n;
    }
    struct ree_node *shape = NODE("Shape", q), *length, *before;
    length =
        shape ? NODE("Gather", shape->outputs[0], add_numbers(graph, 1, (int64_t[]){1}, 0)) : NULL;
    if (!length) return NULL;
    before = NODE("Sub", length->outputs[0], add_numbers(graph, 1, (int64_t[]){1}, 1));
    length = NODE("Cast", length->outputs[0]);
    before = before ? NODE("Cast", before->outputs[0]) : NULL;
    if (!length || !before) return NULL;
    set_int(length, "to", REE_I32);
    set_int(before, "to", REE_I32);
    bool packed = !draw(3);
    struct ree_value *inputs[7] = {q,    packed ? NULL : k,  packed ? NULL : v, NULL,
                                   NULL, before->outputs[0], length->outputs[0]};
    n = add_node(graph, "GroupQueryAttention", 7, inputs, (uint32_t)graph->n_nodes);
    n->domain = "com.microsoft";
    n->opset = 1;
    set_int(n, "num_heads", heads);
    set_int(n, "kv_num_heads", kv_heads);
    return n;
}

static struct ree_node *some(void) {
    static struct ree_node *(*const kinds[])(void) = {
        shaped,       transposed, sliced,       joined,        split,    gathered,
        axes_changed, computed,   computed,     made_of_sizes, compared, weighed,
        attended,     reduced,    axes_changed, sliced,        tabled};
    return kinds[draw(sizeof kinds / sizeof *kinds)]();
}

// Trials

static struct grown_operator *operator_of(struct grown *grown, const char *op_type) {
    size_t i = 0;
    while (i < 63 && grown->operators[i].op_type && strcmp(grown->operators[i].op_type, op_type))
        i++;
    grown->operators[i].op_type = op_type;
    return &grown->operators[i];
}

// Returns whether the value is too large to compute in a test.
static bool is_large(const struct ree_fact *f) {
    double n = 1;
    for (uint32_t i = 0; i < f->rank; i++)
        n *= f->axes[i].kind == REE_AXIS_FIXED ? (double)f->axes[i].size : TRIAL_MAX_TOKENS;
    return n > 1 << 18;
}

static bool is_claimed(const struct ree_node *n) {
    bool claimed = false;
    for (size_t i = 0; i < n->n_outputs; i++) {
        const struct ree_fact *f = &claims->facts[n->outputs[i]->id];
        if (!f->why_not && is_large(f)) return false;
        claimed = claimed || !f->why_not;
    }
    return claimed;
}

bool grow(const char *path, struct ree_device *device, uint64_t seed, struct grown *grown) {
    struct trial t;
    char label[512];
    snprintf(label, sizeof label, "%s, grown with seed %llu", path, (unsigned long long)seed);
    changes_begin(NULL, seed);
    if (!trial_load(&t, path,
                    &(struct ree_model_options){.size = sizeof(struct ree_model_options)}))
        return false;
    graph = t.model->graph;
    claims = &t.claims;
    changes_begin(graph, seed);
    trial_ask(&t, false);
    bool ok = t.proved;
    for (uint32_t i = 0; i < N_NODES && ok; i++) {
        size_t n_nodes = graph->n_nodes, n_values = graph->n_values;
        struct ree_node *n = some();
        grown->n_tried++;
        bool claimed = false;
        enum trial_result result = TRIAL_FAILS;
        if (n) {
            trial_ask(&t, false);
            claimed = is_claimed(n);
        }
        if (claimed) {
            grown->n_claimed++;
            operator_of(grown, n->op_type)->n_claimed++;
            result = trial_run(&t, device, label);
        }
        ok = result != TRIAL_CONTRADICTS;
        if (result == TRIAL_AGREES) {
            grown->n_ran++;
            operator_of(grown, n->op_type)->n_ran++;
        } else if (graph->n_nodes != n_nodes || graph->n_values != n_values) {
            graph->n_nodes = n_nodes;
            graph->n_values = n_values;
            trial_ask(&t, false);
        }
    }
    trial_finish(&t);
    return ok;
}

void grown_print(const struct grown *grown) {
    printf("  grown: %ld nodes, %ld claimed, %ld ran:", grown->n_tried, grown->n_claimed,
           grown->n_ran);
    for (size_t i = 0; i < 64 && grown->operators[i].op_type; i++)
        printf(" %s %ld/%ld", grown->operators[i].op_type, grown->operators[i].n_ran,
               grown->operators[i].n_claimed);
    printf("\n");
}
