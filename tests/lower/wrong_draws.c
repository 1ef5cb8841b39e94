// Draws a node for a row of the operator table: a template with a few changes, or arbitrary inputs.
// Attributes are created when the rule reads them: the linker (--wrap) replaces the functions of
// graph/ir/ir.h by the ones below.
#include "wrong_draws.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ATTRS 64
#define MAX_INPUTS 12
#define MAX_OUTPUTS 6

struct wrong wrong;
static struct ree_attr attrs[MAX_ATTRS];
static const char *asked[MAX_ATTRS]; // names that the rule has read, present or absent
static size_t n_asked;

// Attributes

static struct ree_value *random_attr_tensor(void) {
    struct ree_value *value = wrong_memory(sizeof *value);
    value->name = "attribute";
    value->dtype = wrong_dtype();
    value->has_shape = true;
    value->rank = wrong_one_in(2) ? 1 : wrong_dims(value->dims);
    if (value->rank == 1)
        value->dims[0] = wrong_one_in(4) ? (int64_t)wrong_any(6) : wrong.list_length;
    if (wrong_one_in(2)) value->dtype = wrong_one_in(3) ? REE_U8 : wrong.base_dtype;
    size_t n = wrong_count(value->rank, value->dims);
    if (value->dtype == REE_STRING) {
        const char **texts = wrong_memory(n * sizeof *texts);
        for (size_t i = 0; i < n; i++)
            texts[i] = wrong_text();
        value->data = texts;
    } else {
        value->data = wrong_bytes(value->dtype, n);
    }
    value->nbytes = n * ree_dtype_size(value->dtype);
    return value;
}

static void fill_attr(struct ree_attr *attr, int64_t fallback) {
    attr->n = (size_t)(wrong_one_in(3) ? (int64_t)wrong_any(7) : wrong.list_length);
    switch (attr->kind) {
    case REE_ATTR_INT: attr->i = wrong_one_in(3) ? fallback : wrong_int(); break;
    case REE_ATTR_FLOAT: attr->f = wrong_number(); break;
    case REE_ATTR_STRING:
        attr->s = wrong_text();
        attr->s_size = strlen(attr->s);
        break;
    case REE_ATTR_TENSOR:
    case REE_ATTR_TYPE:
        attr->tensor = random_attr_tensor();
        if (wrong_one_in(10)) attr->tensor->kind = REE_SEQUENCE;
        break;
    case REE_ATTR_GRAPH: attr->graph = wrong_graph(&wrong.node, &wrong.rng); break;
    case REE_ATTR_INTS: {
        int64_t *values = wrong_memory(attr->n * sizeof *values);
        for (size_t i = 0; i < attr->n; i++)
            values[i] = wrong_int();
        attr->ints = values;
        break;
    }
    case REE_ATTR_FLOATS: {
        float *values = wrong_memory(attr->n * sizeof *values);
        for (size_t i = 0; i < attr->n; i++)
            values[i] = wrong_number();
        attr->floats = values;
        break;
    }
    case REE_ATTR_STRINGS: {
        const char **values = wrong_memory(attr->n * sizeof *values);
        for (size_t i = 0; i < attr->n; i++)
            values[i] = wrong_text();
        attr->strings = values;
        break;
    }
    }
}

// Templates

static enum ree_dtype type_of(char letter) {
    static const char letters[] = "fhildbtcuse";
    static const enum ree_dtype types[] = {REE_F32, REE_F16,  REE_I32,     REE_I64,
                                           REE_F64, REE_BOOL, REE_STRING,  REE_I8,
                                           REE_U8,  REE_I16,  REE_F8E4M3FN};
    const char *at = strchr(letters, letter);
    REQUIRE(letter && at);
    return types[at - letters];
}

static void store(enum ree_dtype dtype, char *at, double value) {
    float f = (float)value;
    int64_t i = (int64_t)value;
    if (dtype == REE_F32)
        memcpy(at, &f, 4);
    else if (dtype == REE_F64)
        memcpy(at, &value, 8);
    else
        memcpy(at, &i, ree_dtype_size(dtype));
}

// Makes one input, sometimes changed; advances `spec` past it.
static struct ree_view *template_input(const char **spec) {
    const char *s = *spec;
    int64_t dims[REE_MAX_RANK] = {0};
    uint32_t rank = 0;
    struct ree_view *t;
    char *end;
    enum ree_dtype dtype = type_of(*s++);
    while (*s && *s != ' ' && *s != '=') {
        REQUIRE(rank < REE_MAX_RANK);
        dims[rank++] = strtol(s, &end, 10);
        s = *end == ',' ? end + 1 : end;
    }
    bool listed = *s == '=';
    if (wrong_one_in(12)) dtype = wrong_dtype();
    if (wrong_one_in(12) && rank) dims[wrong_any(rank)] = wrong_dim();
    if (wrong_one_in(20))
        rank = rank && wrong_one_in(2) ? rank - 1 : rank < REE_MAX_RANK ? rank + 1 : rank;
    size_t n = wrong_count(rank, dims);
    char *bytes = dtype == REE_STRING ? NULL : wrong_bytes(dtype, n);
    for (size_t i = 0; listed && *s && *s != ' '; i++) {
        double value = strtod(s + 1, &end);
        s = end;
        if (i < n && bytes && !wrong_one_in(15))
            store(dtype, bytes + i * ree_dtype_size(dtype), value);
    }
    while (*s == ' ')
        s++;
    *spec = s;
    if (dtype == REE_STRING) {
        const char **texts = wrong_memory(n * sizeof *texts);
        for (size_t i = 0; i < n; i++)
            texts[i] = wrong_text();
        REQUIRE(ree_lower_strings(&wrong.node.lower, rank, dims, texts, &t) == REE_OK);
    } else if (!listed && wrong_one_in(3)) {
        REQUIRE(ree_lower_new(&wrong.node.lower, dtype, rank, dims, &t) == REE_OK);
    } else {
        REQUIRE(ree_lower_literal(&wrong.node.lower, dtype, rank, dims, bytes, &t) == REE_OK);
    }
    return t;
}

// Makes the attributes; one may be changed, or omitted so that `decide` creates it.
static void template_attrs(const char *spec) {
    char *copy = ree_arena_strdup(&wrong.node.arena, spec);
    REQUIRE(copy != NULL);
    for (char *name = strtok(copy, " "); name; name = strtok(NULL, " ")) {
        char *value = strchr(name, '='), *end;
        *value++ = 0;
        if (wrong_one_in(12)) continue;
        struct ree_attr *attr = &attrs[wrong.node.node.n_attrs++];
        *attr = (struct ree_attr){.name = name, .kind = REE_ATTR_STRING, .s = value};
        asked[n_asked++] = name;
        size_t size = strlen(value);
        int64_t number = strtoll(value, &end, 10);
        if (size && value[size - 1] == ',') {
            int64_t *list = wrong_memory(size * sizeof *list);
            attr->kind = REE_ATTR_INTS;
            for (char *at = value; *at; at++)
                list[attr->n++] = strtoll(at, &at, 10);
            if (wrong_one_in(12)) list[wrong_any((uint32_t)attr->n)] = wrong_int();
            if (wrong_one_in(20)) attr->n--;
            attr->ints = list;
        } else if (!*end) {
            attr->kind = REE_ATTR_INT;
            attr->i = wrong_one_in(12) ? wrong_int() : number;
        } else if (*end == '.' && end > value) {
            attr->kind = REE_ATTR_FLOAT;
            attr->f = wrong_one_in(12) ? wrong_number() : strtof(value, NULL);
        } else {
            if (wrong_one_in(12)) attr->s = wrong_text();
            attr->s_size = strlen(attr->s);
        }
    }
}

static const struct wrong_template *choose_template(const char *op) {
    size_t n = 0;
    const struct wrong_template *chosen = NULL;
    for (size_t i = 0; i < n_wrong_templates; i++)
        if (!strcmp(wrong_templates[i].op, op) && wrong_one_in((uint32_t)++n))
            chosen = &wrong_templates[i];
    return chosen;
}

// Called when the rule reads an attribute: decides whether it exists, and creates it.
static void decide(const struct ree_node *of, const char *name, int kind, int64_t fallback) {
    if (of != &wrong.node.node || n_asked == MAX_ATTRS) return;
    for (size_t i = 0; i < n_asked; i++)
        if (!strcmp(asked[i], name)) return;
    asked[n_asked++] = name;
    if (wrong.template && !wrong_one_in(kind == REE_ATTR_INT || kind < 0 ? 8 : 20) &&
        !strstr(name, "body") && !strstr(name, "branch"))
        return;
    if (!wrong_one_in(4) &&
                (kind == REE_ATTR_INT || kind == REE_ATTR_FLOAT || kind == REE_ATTR_STRING)
            ? wrong_one_in(2)
            : wrong_one_in(5))
        return;
    // A negative kind: the rule reads the attribute itself, so any kind is possible.
    if (kind < 0) {
        static const enum ree_attr_kind kinds[] = {
            REE_ATTR_INT,  REE_ATTR_FLOAT,  REE_ATTR_STRING,  REE_ATTR_TENSOR, REE_ATTR_GRAPH,
            REE_ATTR_INTS, REE_ATTR_FLOATS, REE_ATTR_STRINGS, REE_ATTR_TYPE};
        kind = kinds[wrong_any(sizeof kinds / sizeof *kinds)];
        bool graph = strstr(name, "branch") || !strcmp(name, "body") || strstr(name, "_mod");
        if (graph && !wrong_one_in(10)) kind = REE_ATTR_GRAPH;
        bool tensor = !strcmp(name, "value") || !strncmp(name, "nodes_", 6) ||
                      !strncmp(name, "leaf_", 5) || !strncmp(name, "member", 6);
        if (tensor && !wrong_one_in(10)) kind = REE_ATTR_TENSOR;
    } else if (wrong_one_in(20)) {
        kind = (int)wrong_any(REE_ATTR_TYPE + 1);
    }
    struct ree_attr *attr = &attrs[wrong.node.node.n_attrs++];
    *attr = (struct ree_attr){.name = name, .kind = (enum ree_attr_kind)kind};
    fill_attr(attr, fallback);
}

#define WRAP(result, name, parameters)                                                             \
    result __real_##name parameters;                                                               \
    result __wrap_##name parameters;                                                               \
    result __wrap_##name parameters

WRAP(const struct ree_attr *, ree_node_attr, (const struct ree_node *of, const char *name)) {
    decide(of, name, -1, 0);
    return __real_ree_node_attr(of, name);
}

WRAP(int64_t, ree_node_int, (const struct ree_node *of, const char *name, int64_t fallback)) {
    decide(of, name, REE_ATTR_INT, fallback);
    return __real_ree_node_int(of, name, fallback);
}

WRAP(float, ree_node_float, (const struct ree_node *of, const char *name, float fallback)) {
    decide(of, name, REE_ATTR_FLOAT, 0);
    return __real_ree_node_float(of, name, fallback);
}

WRAP(const char *, ree_node_string,
     (const struct ree_node *of, const char *name, const char *fallback)) {
    decide(of, name, REE_ATTR_STRING, 0);
    return __real_ree_node_string(of, name, fallback);
}

WRAP(const int64_t *, ree_node_ints, (const struct ree_node *of, const char *name, size_t *out_n)) {
    decide(of, name, REE_ATTR_INTS, 0);
    return __real_ree_node_ints(of, name, out_n);
}

WRAP(const float *, ree_node_floats, (const struct ree_node *of, const char *name, size_t *out_n)) {
    decide(of, name, REE_ATTR_FLOATS, 0);
    return __real_ree_node_floats(of, name, out_n);
}

// The node

static void add_input(struct ree_view *t) {
    struct ree_value *value = &wrong.node.values[wrong.node.n_values];
    value->name = "v";
    value->id = wrong.node.n_values;
    wrong.node.views[wrong.node.n_values++] = t;
    wrong.node.inputs[wrong.node.node.n_inputs++] = value;
}

static void add_template_inputs(void) {
    for (const char *spec = wrong.template->inputs; *spec;) {
        if (*spec == '-') {
            test_node_omit(&wrong.node);
            spec += spec[1] == ' ' ? 2 : 1;
            continue;
        }
        struct ree_view *t = template_input(&spec);
        if (wrong_one_in(50))
            test_node_omit(&wrong.node);
        else
            add_input(t);
        if (wrong_one_in(60)) break;
    }
    template_attrs(wrong.template->attrs);
}

static void add_random_inputs(const struct ree_op *op) {
    uint32_t n_in = op->min_inputs, n_optional = op->max_inputs - op->min_inputs;
    if (n_optional) n_in += wrong_any((n_optional > 6 ? 6 : n_optional) + 1);
    if (wrong_one_in(40)) n_in = wrong_any(MAX_INPUTS);
    if (n_in > MAX_INPUTS) n_in = MAX_INPUTS;
    for (uint32_t i = 0; i < n_in; i++) {
        if (i >= op->min_inputs ? wrong_one_in(4) : wrong_one_in(60))
            test_node_omit(&wrong.node);
        else
            add_input(wrong_value(op->narrow == REE_NARROW_ANY));
    }
}

void wrong_draw(const struct ree_op *op, uint64_t seed) {
    wrong.rng.state = seed * 0x9E3779B97F4A7C15u;
    n_asked = 0;
    int64_t span = op->until - op->since;
    int64_t opset =
        wrong_one_in(2) ? op->until : op->since + wrong_any((uint32_t)(span < 64 ? span + 1 : 64));
    test_node_start(&wrong.node, op->op_type, opset);
    memset(attrs, 0, sizeof attrs);
    wrong.node.node.domain = op->domain;
    wrong.node.node.attrs = attrs;
    wrong.node.lower.step_limit = 300;
    wrong.node.lower.fold_limit = 1 << 16;
    wrong.node.lower.fold = !wrong_one_in(4);
    wrong.node.lower.fuse = !wrong_one_in(4);
    wrong.careful = wrong_one_in(2);
    wrong.list_length = wrong_any(5);
    wrong.base_rank = wrong_dims(wrong.base_dims);
    wrong.base_dtype = wrong.careful && wrong_one_in(2) ? REE_F32 : wrong_dtype();
    // Shapes of an image, for rules that may require one.
    if (wrong.careful && wrong_one_in(3)) {
        wrong.base_rank = 3 + wrong_any(2);
        for (uint32_t i = 0; i < wrong.base_rank; i++)
            wrong.base_dims[i] = 1 + wrong_any(3);
        wrong.list_length = wrong.base_rank - 2 * !wrong_one_in(3);
    }
    wrong.template = wrong_one_in(4) ? NULL : choose_template(op->op_type);
    if (wrong.template)
        add_template_inputs();
    else
        add_random_inputs(op);
    wrong.node.out = &wrong.node.views[wrong.node.n_values];
    uint32_t n_out = 1 + wrong_any(op->max_outputs < MAX_OUTPUTS ? op->max_outputs : MAX_OUTPUTS);
    if (wrong_one_in(60)) n_out = 0;
    for (uint32_t i = 0; i < n_out; i++) {
        struct ree_value *value = &wrong.node.values[wrong.node.n_values];
        value->name = "out";
        value->id = wrong.node.n_values++;
        wrong.node.outputs[wrong.node.node.n_outputs++] = i && wrong_one_in(6) ? NULL : value;
    }
}
