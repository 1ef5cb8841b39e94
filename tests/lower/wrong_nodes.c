// Random nodes of every row of the operator table, nearly all of them wrong: types, shapes, values
// and attributes as a hostile file may have them. A rule ends with tensors that lie within their
// storages and dispatches that pass the check, or with an error that has a message. Sanitizers see
// the rest.
//
//     test_lower_wrong_nodes [ROUNDS [OPERATOR [FIRST_ROUND]]]
//
// Attributes are made as the rule asks for them: the linker puts the functions below in the place
// of those of graph/ir.h (--wrap).
#include "base/dtype.h"
#include "wrong_graph.h"
#include "test.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MAX_ATTRS 64
#define MAX_INPUTS 12
#define MAX_OUTPUTS 6
#define MAX_LIST 12

static struct wrong_random rng;
static struct test_node node;
static struct ree_attr attrs[MAX_ATTRS];
static const char *asked[MAX_ATTRS]; // names that the rule has asked for, with or without an answer
static size_t n_asked;
static int64_t list_length; // of most lists of one node
static int64_t base_dims[REE_MAX_RANK];
static uint32_t base_rank;
static enum ree_dtype base_dtype;

static const struct wrong_template *template; // the node was made from, or NULL
static bool careful; // inputs and numbers that fit each other, but for a few

static char progress[128]; // for the message of a test that hangs or dies

static uint32_t below(uint32_t n) {
    return wrong_below(&rng, n);
}

static bool one_in(uint32_t n) {
    return below(n) == 0;
}

static void *memory(size_t size) {
    void *bytes = ree_arena_alloc(&node.arena, size + 1);
    REQUIRE(bytes != NULL);
    return bytes;
}

// Values

static int64_t random_int(void) {
    static const int64_t extremes[] = {
        INT64_MAX,
        INT64_MIN,
        INT32_MAX,
        INT32_MIN,
        INT64_C(1) << 31,
        -(INT64_C(1) << 31) - 1,
        INT64_C(1) << 32,
        INT64_C(1) << 62,
        INT64_C(0x55555555),
        65536,
        1 << 30,
        -1000000007,
    };
    if (one_in(careful ? 60 : 12)) return extremes[below(sizeof extremes / sizeof *extremes)];
    if (one_in(careful ? 12 : 4)) return (int64_t)below(24) - 8;
    return careful ? below(3) : (int64_t)below(5) - 1;
}

static float random_number(void) {
    static const float extremes[] = {INFINITY, -INFINITY, NAN, 1e30f, -1e30f, 3e9f, -3e9f, 1e-40f};
    if (one_in(12)) return extremes[below(sizeof extremes / sizeof *extremes)];
    if (one_in(2)) return (float)((int)below(9) - 3);
    return (float)((int)below(2001) - 700) / 256;
}

static const char *random_text(void) {
    static const char *const words[] = {
        "",
        "a",
        "b",
        "Linear",
        "linear",
        "nearest",
        "cubic",
        "constant",
        "reflect",
        "edge",
        "wrap",
        "zeros",
        "border",
        "reflection",
        "bilinear",
        "bicubic",
        "add",
        "mul",
        "max",
        "min",
        "none",
        "sum",
        "mean",
        "avg",
        "tanh",
        "forward",
        "reverse",
        "bidirectional",
        "Tanh",
        "Sigmoid",
        "Relu",
        "Affine",
        "LEFT",
        "RIGHT",
        "L1",
        "L2",
        "MAX",
        "TF",
        "IDF",
        "TFIDF",
        "SAME_UPPER",
        "SAME_LOWER",
        "VALID",
        "NOTSET",
        "silu",
        "swish",
        "nesterov",
        "standard",
        "half_pixel",
        "output_half_pixel",
        "align_corners",
        "asymmetric",
        "tf_crop_and_resize",
        "floor",
        "ceil",
        "round_prefer_floor",
        "circular",
        "gated",
        "delta",
        "gated_delta",
        "CRD",
        "DCR",
        "gelu",
        "ij->ji",
        "i,i->",
        "...i,ij->...j",
        "ii->i",
        "i...,i->...",
        "ab,,->",
        "zz...zz->",
        "1e30",
        "nan",
        "-7",
        " x ",
        "\xc3\xa9",
        "\xff\xfe",
        "LOWER",
        "UPPER",
        ".*",
        "(a|b)*c",
        "[",
        "inf",
        "stretch",
        "not_larger",
        "not_smaller",
        "down",
        "up",
        "round_even",
        "INT8",
        "FLOAT",
    };
    return words[below(sizeof words / sizeof *words)];
}

static enum ree_dtype random_dtype(void) {
    static const enum ree_dtype common[] = {REE_F32, REE_F32, REE_F32, REE_I64, REE_I64,
                                            REE_I32, REE_U8,  REE_I8,  REE_BOOL};
    for (;;) {
        enum ree_dtype dtype = one_in(3) ? (enum ree_dtype)(1 + below(REE_I2))
                                         : common[below(sizeof common / sizeof *common)];
        if (ree_dtype_size(dtype)) return dtype;
    }
}

static int64_t random_dim(void) {
    return one_in(20) ? 0 : one_in(30) ? 17 + below(50) : 1 + below(4);
}

static uint32_t random_dims(int64_t *dims) {
    uint32_t rank = one_in(12) ? below(REE_MAX_RANK + 1) : below(5);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = random_dim();
    return rank;
}

// Dims like those of the node's other inputs, more often than not.
static uint32_t similar_dims(int64_t *dims) {
    uint32_t rank = base_rank;
    memcpy(dims, base_dims, sizeof base_dims);
    switch (below(careful ? 24 : 8)) {
    case 0: return random_dims(dims);
    case 1:
        if (rank) dims[below(rank)] = random_dim();
        return rank;
    case 2: return rank ? rank - 1 : 0;
    case 3: // a vector
        dims[0] = base_rank && !one_in(4) ? base_dims[below(base_rank)] : (int64_t)below(6);
        return 1;
    case 4: return 0;
    case 5:
        if (rank >= 2) dims[rank - 1] = base_dims[rank - 2], dims[rank - 2] = base_dims[rank - 1];
        return rank;
    default: return rank;
    }
}

static size_t count_of(uint32_t rank, const int64_t *dims) {
    size_t n = 1;
    for (uint32_t i = 0; i < rank; i++)
        n *= (size_t)dims[i];
    return n;
}

static void *random_bytes(enum ree_dtype dtype, size_t n) {
    size_t size = ree_dtype_size(dtype);
    char *bytes = memory(n * size + 8);
    for (size_t i = 0; i < n; i++) {
        int64_t v = random_int();
        float f = random_number();
        double d = (double)f;
        uint8_t byte = (uint8_t)below(256);
        switch (dtype) {
        case REE_F32: memcpy(bytes + 4 * i, &f, 4); break;
        case REE_F64: memcpy(bytes + 8 * i, &d, 8); break;
        case REE_BOOL: bytes[i] = (char)(byte & 1); break;
        default:
            if (size > 1) {
                memcpy(bytes + size * i, &v, size);
            } else {
                while (!ree_dtype_byte_is_valid(dtype, byte))
                    byte = (uint8_t)below(256);
                bytes[i] = (char)byte;
            }
        }
    }
    return bytes;
}

static struct ree_tval *random_tensor(void) {
    struct ree_tval *t;
    int64_t dims[REE_MAX_RANK];
    uint32_t rank = similar_dims(dims);
    enum ree_dtype dtype = one_in(careful ? 12 : 3) ? random_dtype() : base_dtype;
    // What stands for a shape, a list of axes or an index.
    if (one_in(careful ? 6 : 4)) dtype = one_in(4) ? REE_I32 : REE_I64;
    if (one_in(careful ? 8 : 4)) rank = 1, dims[0] = below(6);
    size_t n = count_of(rank, dims);
    if (dtype == REE_STRING) {
        const char **texts = memory(n * sizeof *texts);
        for (size_t i = 0; i < n; i++)
            texts[i] = random_text();
        REQUIRE(ree_lower_strings(&node.lower, rank, dims, texts, &t) == REE_OK);
        return t;
    }
    // A value that only the device will know.
    if (one_in(6))
        REQUIRE(ree_lower_new(&node.lower, dtype, rank, dims, &t) == REE_OK);
    else
        REQUIRE(ree_lower_literal(&node.lower, dtype, rank, dims, random_bytes(dtype, n), &t) ==
                REE_OK);
    if (one_in(8) && rank >= 2) {
        uint32_t turned[REE_MAX_RANK];
        for (uint32_t i = 0; i < rank; i++)
            turned[i] = rank - 1 - i;
        REQUIRE(ree_lower_transpose(&node.lower, t, turned, &t) == REE_OK);
    }
    if (one_in(8) && rank >= 1 && t->dims[0] >= 2)
        REQUIRE(ree_lower_slice(&node.lower, t, 0, t->dims[0] - 1, -1, t->dims[0] - 1, &t) ==
                REE_OK);
    return t;
}

static struct ree_tval *random_value(bool any_kind) {
    struct ree_tval *t, *items[4];
    if (any_kind ? !one_in(2) : !one_in(40)) return random_tensor();
    if (one_in(4)) {
        REQUIRE(ree_lower_absent(&node.lower, base_dtype, &t) == REE_OK);
        return t;
    }
    size_t n = below(4), k = 0;
    while (k < n) {
        t = random_tensor();
        if (k && t->dtype != items[0]->dtype)
            REQUIRE(ree_lower_literal(&node.lower, items[0]->dtype, 0, NULL,
                                      random_bytes(items[0]->dtype, 1), &t) == REE_OK);
        items[k++] = t;
    }
    REQUIRE(ree_lower_sequence(&node.lower, n ? items[0]->dtype : base_dtype, n, items, &t) ==
            REE_OK);
    return t;
}

// Attributes

static struct ree_value *random_attr_tensor(void) {
    struct ree_value *value = memory(sizeof *value);
    value->name = "attribute";
    value->dtype = random_dtype();
    value->has_shape = true;
    value->rank = one_in(2) ? 1 : random_dims(value->dims);
    if (value->rank == 1) value->dims[0] = one_in(4) ? (int64_t)below(6) : list_length;
    if (one_in(2)) value->dtype = one_in(3) ? REE_U8 : base_dtype;
    size_t n = count_of(value->rank, value->dims);
    if (value->dtype == REE_STRING) {
        const char **texts = memory(n * sizeof *texts);
        for (size_t i = 0; i < n; i++)
            texts[i] = random_text();
        value->data = texts;
    } else {
        value->data = random_bytes(value->dtype, n);
    }
    value->nbytes = n * ree_dtype_size(value->dtype);
    return value;
}

static void fill_attr(struct ree_attr *attr, int64_t fallback) {
    attr->n = (size_t)(one_in(3) ? (int64_t)below(7) : list_length);
    switch (attr->kind) {
    case REE_ATTR_INT: attr->i = one_in(3) ? fallback : random_int(); break;
    case REE_ATTR_FLOAT: attr->f = random_number(); break;
    case REE_ATTR_STRING:
        attr->s = random_text();
        attr->s_size = strlen(attr->s);
        break;
    case REE_ATTR_TENSOR:
    case REE_ATTR_TYPE:
        attr->tensor = random_attr_tensor();
        if (one_in(10)) attr->tensor->kind = REE_SEQUENCE;
        break;
    case REE_ATTR_GRAPH: attr->graph = wrong_graph(&node, &rng); break;
    case REE_ATTR_INTS: {
        int64_t *values = memory(attr->n * sizeof *values);
        for (size_t i = 0; i < attr->n; i++)
            values[i] = random_int();
        attr->ints = values;
        break;
    }
    case REE_ATTR_FLOATS: {
        float *values = memory(attr->n * sizeof *values);
        for (size_t i = 0; i < attr->n; i++)
            values[i] = random_number();
        attr->floats = values;
        break;
    }
    case REE_ATTR_STRINGS: {
        const char **values = memory(attr->n * sizeof *values);
        for (size_t i = 0; i < attr->n; i++)
            values[i] = random_text();
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

// One input, changed now and then; `spec` is moved behind it.
static struct ree_tval *template_input(const char **spec) {
    const char *s = *spec;
    int64_t dims[REE_MAX_RANK] = {0};
    uint32_t rank = 0;
    struct ree_tval *t;
    char *end;
    enum ree_dtype dtype = type_of(*s++);
    while (*s && *s != ' ' && *s != '=') {
        REQUIRE(rank < REE_MAX_RANK);
        dims[rank++] = strtol(s, &end, 10);
        s = *end == ',' ? end + 1 : end;
    }
    bool listed = *s == '=';
    if (one_in(12)) dtype = random_dtype();
    if (one_in(12) && rank) dims[below(rank)] = random_dim();
    if (one_in(20)) rank = rank && one_in(2) ? rank - 1 : rank < REE_MAX_RANK ? rank + 1 : rank;
    size_t n = count_of(rank, dims);
    char *bytes = dtype == REE_STRING ? NULL : random_bytes(dtype, n);
    for (size_t i = 0; listed && *s && *s != ' '; i++) {
        double value = strtod(s + 1, &end);
        s = end;
        if (i < n && bytes && !one_in(15)) store(dtype, bytes + i * ree_dtype_size(dtype), value);
    }
    while (*s == ' ')
        s++;
    *spec = s;
    if (dtype == REE_STRING) {
        const char **texts = memory(n * sizeof *texts);
        for (size_t i = 0; i < n; i++)
            texts[i] = random_text();
        REQUIRE(ree_lower_strings(&node.lower, rank, dims, texts, &t) == REE_OK);
    } else if (!listed && one_in(3)) {
        REQUIRE(ree_lower_new(&node.lower, dtype, rank, dims, &t) == REE_OK);
    } else {
        REQUIRE(ree_lower_literal(&node.lower, dtype, rank, dims, bytes, &t) == REE_OK);
    }
    return t;
}

// The attributes; one may be changed, or left to be made up.
static void template_attrs(const char *spec) {
    char *copy = ree_arena_strdup(&node.arena, spec);
    REQUIRE(copy != NULL);
    for (char *name = strtok(copy, " "); name; name = strtok(NULL, " ")) {
        char *value = strchr(name, '='), *end;
        *value++ = 0;
        if (one_in(12)) continue;
        struct ree_attr *attr = &attrs[node.node.n_attrs++];
        *attr = (struct ree_attr){.name = name, .kind = REE_ATTR_STRING, .s = value};
        asked[n_asked++] = name;
        size_t size = strlen(value);
        int64_t number = strtoll(value, &end, 10);
        if (size && value[size - 1] == ',') {
            int64_t *list = memory(size * sizeof *list);
            attr->kind = REE_ATTR_INTS;
            for (char *at = value; *at; at++)
                list[attr->n++] = strtoll(at, &at, 10);
            if (one_in(12)) list[below((uint32_t)attr->n)] = random_int();
            if (one_in(20)) attr->n--;
            attr->ints = list;
        } else if (!*end) {
            attr->kind = REE_ATTR_INT;
            attr->i = one_in(12) ? random_int() : number;
        } else if (*end == '.' && end > value) {
            attr->kind = REE_ATTR_FLOAT;
            attr->f = one_in(12) ? random_number() : strtof(value, NULL);
        } else {
            if (one_in(12)) attr->s = random_text();
            attr->s_size = strlen(attr->s);
        }
    }
}

static const struct wrong_template *choose_template(const char *op) {
    size_t n = 0;
    const struct wrong_template *chosen = NULL;
    for (size_t i = 0; i < n_wrong_templates; i++)
        if (!strcmp(wrong_templates[i].op, op) && one_in((uint32_t)++n))
            chosen = &wrong_templates[i];
    return chosen;
}

// The rule asks for an attribute, which exists from now on, or does not.
static void decide(const struct ree_node *of, const char *name, int kind, int64_t fallback) {
    if (of != &node.node || n_asked == MAX_ATTRS) return;
    for (size_t i = 0; i < n_asked; i++)
        if (!strcmp(asked[i], name)) return;
    asked[n_asked++] = name;
    if (template && !one_in(kind == REE_ATTR_INT || kind < 0 ? 8 : 20) && !strstr(name, "body") &&
        !strstr(name, "branch"))
        return;
    if (!one_in(4) && (kind == REE_ATTR_INT || kind == REE_ATTR_FLOAT || kind == REE_ATTR_STRING)
            ? one_in(2)
            : one_in(5))
        return;
    // No kind: the rule looks for itself.
    if (kind < 0) {
        static const enum ree_attr_kind kinds[] = {
            REE_ATTR_INT,  REE_ATTR_FLOAT,  REE_ATTR_STRING,  REE_ATTR_TENSOR, REE_ATTR_GRAPH,
            REE_ATTR_INTS, REE_ATTR_FLOATS, REE_ATTR_STRINGS, REE_ATTR_TYPE};
        kind = kinds[below(sizeof kinds / sizeof *kinds)];
        bool graph = strstr(name, "branch") || !strcmp(name, "body") || strstr(name, "_mod");
        if (graph && !one_in(10)) kind = REE_ATTR_GRAPH;
        bool tensor = !strcmp(name, "value") || !strncmp(name, "nodes_", 6) ||
                      !strncmp(name, "leaf_", 5) || !strncmp(name, "member", 6);
        if (tensor && !one_in(10)) kind = REE_ATTR_TENSOR;
    } else if (one_in(20)) {
        kind = (int)below(REE_ATTR_TYPE + 1);
    }
    struct ree_attr *attr = &attrs[node.node.n_attrs++];
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

// Checks

static enum ree_status unknown(struct ree_lower *lower, struct ree_storage *storage) {
    (void)storage;
    return ree_lower_fail(lower, REE_UNSUPPORTED, "a value that only a run knows");
}

// A view must not reach outside its storage.
static bool lies_within(const struct ree_tval *t) {
    if (t->kind != REE_TENSOR) {
        for (size_t i = 0; i < t->n_items; i++)
            if (!lies_within(t->items[i])) return false;
        return true;
    }
    int64_t low = t->offset, high = t->offset;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dims[i] == 0) return true;
        int64_t reach = (t->dims[i] - 1) * t->strides[i];
        *(reach < 0 ? &low : &high) += reach;
    }
    return low >= 0 && (uint64_t)(high + 1) * ree_dtype_size(t->dtype) <= t->storage->nbytes;
}

static bool check_program(const char *when) {
    for (size_t i = 0; i < node.lower.n_dispatches; i++) {
        struct ree_error err = {.message = ""};
        bool right = ree_dispatch_check(&node.lower.dispatches[i], &err) == REE_OK;
        CHECK_MSG(right, "%s: dispatch %zu, %s: %s", progress, i, when, err.message);
        if (!right) return false;
    }
    return true;
}

static void check_result(enum ree_status status) {
    if (status != REE_OK) {
        CHECK_MSG(status != REE_INTERNAL && node.err.message[0] && node.err.status == status,
                  "%s: %s: '%s'", progress, ree_status_name(status), node.err.message);
        return;
    }
    bool *keep = memory(node.lower.n_storages + 1);
    for (size_t i = 0; i < node.node.n_outputs; i++) {
        struct ree_tval *t = node.out[i];
        if (!node.node.outputs[i]) continue;
        CHECK_MSG(t != NULL && lies_within(t), "%s: output %zu", progress, i);
        if (t && t->kind == REE_TENSOR) keep[t->storage->id] = true;
        for (size_t k = 0; t && k < t->n_items; k++)
            keep[t->items[k]->storage->id] = true;
    }
    if (!check_program("as emitted")) return;
    CHECK(ree_fuse_program(&node.lower, keep) == REE_OK);
    if (!check_program("fused")) return;
    CHECK(ree_prune_program(&node.lower, keep) == REE_OK);
    check_program("pruned");
}

static void add_input(struct ree_tval *t) {
    struct ree_value *value = &node.values[node.n_values];
    value->name = "v";
    value->id = node.n_values;
    node.tvals[node.n_values++] = t;
    node.inputs[node.node.n_inputs++] = value;
}

static void add_template_inputs(void) {
    for (const char *spec = template->inputs; *spec;) {
        if (*spec == '-') {
            test_node_omit(&node);
            spec += spec[1] == ' ' ? 2 : 1;
            continue;
        }
        struct ree_tval *t = template_input(&spec);
        if (one_in(50))
            test_node_omit(&node);
        else
            add_input(t);
        if (one_in(60)) break;
    }
    template_attrs(template->attrs);
}

static void add_random_inputs(const struct ree_op *op) {
    uint32_t n_in = op->min_inputs, room = op->max_inputs - op->min_inputs;
    if (room) n_in += below((room > 6 ? 6 : room) + 1);
    if (one_in(40)) n_in = below(MAX_INPUTS);
    if (n_in > MAX_INPUTS) n_in = MAX_INPUTS;
    for (uint32_t i = 0; i < n_in; i++) {
        if (i >= op->min_inputs ? one_in(4) : one_in(60))
            test_node_omit(&node);
        else
            add_input(random_value(op->narrow == REE_NARROW_ANY));
    }
}

static void run(const struct ree_op *op, uint64_t seed) {
    rng.state = seed * 0x9E3779B97F4A7C15u;
    n_asked = 0;
    int64_t span = op->until - op->since;
    int64_t opset =
        one_in(2) ? op->until : op->since + below((uint32_t)(span < 64 ? span + 1 : 64));
    test_node_start(&node, op->op_type, opset);
    memset(attrs, 0, sizeof attrs);
    node.node.domain = op->domain;
    node.node.attrs = attrs;
    node.lower.read_storage = unknown;
    node.lower.step_limit = 300;
    node.lower.fold_limit = 1 << 16;
    node.lower.fold = !one_in(4);
    node.lower.fuse = !one_in(4);
    careful = one_in(2);
    list_length = below(5);
    base_rank = random_dims(base_dims);
    base_dtype = careful && one_in(2) ? REE_F32 : random_dtype();
    // Of an image, where the rule may want one.
    if (careful && one_in(3)) {
        base_rank = 3 + below(2);
        for (uint32_t i = 0; i < base_rank; i++)
            base_dims[i] = 1 + below(3);
        list_length = base_rank - 2 * !one_in(3);
    }
    template = one_in(4) ? NULL : choose_template(op->op_type);
    if (template)
        add_template_inputs();
    else
        add_random_inputs(op);
    node.out = &node.tvals[node.n_values];
    uint32_t n_out = 1 + below(op->max_outputs < MAX_OUTPUTS ? op->max_outputs : MAX_OUTPUTS);
    if (one_in(60)) n_out = 0;
    for (uint32_t i = 0; i < n_out; i++) {
        struct ree_value *value = &node.values[node.n_values];
        value->name = "out";
        value->id = node.n_values++;
        node.outputs[node.node.n_outputs++] = i && one_in(6) ? NULL : value;
    }
    check_result(ree_lower_node(&node.lower, &node.node, node.tvals));
    test_node_finish(&node);
}

static const struct row {
    const char *domain, *type;
    int64_t until;
} rows[] = {
#define OP(domain, type, since, until, min_in, max_in, max_out, narrow, rule) {domain, type, until},
#include "graph/lower/ops.def"
#undef OP
};

static void say_where(int signal_number) {
    (void)signal_number;
    static const char text[] = "no end: ";
    ssize_t n = write(2, text, sizeof text - 1);
    n = write(2, progress, strlen(progress));
    (void)n;
    _exit(1);
}

// Sizes from hostile numbers must be refused for what they are or fail as out of memory.
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void) {
    return "allocator_may_return_null=1:max_allocation_size_mb=1024";
}

int main(int argc, char **argv) {
    long n_rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 400;
    long first = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
#ifndef __SANITIZE_ADDRESS__
    setrlimit(RLIMIT_AS, &(struct rlimit){(rlim_t)2 << 30, (rlim_t)2 << 30});
#endif
    signal(SIGALRM, say_where);
    signal(SIGABRT, say_where);
    long n_right = 0, n_all = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct ree_op *op = ree_op_find(rows[i].domain, rows[i].type, rows[i].until, NULL);
        if (argc > 2 && strcmp(argv[2], rows[i].type)) continue;
        long right = 0;
        for (long r = first; r < first + n_rounds; r++) {
            snprintf(progress, sizeof progress, "%s opset %lld, round %ld\n", op->op_type,
                     (long long)op->until, r);
            alarm(60);
            run(op, (uint64_t)r * 1024 + i + 1);
            right += node.err.message[0] == 0;
        }
        if (getenv("REE_TEST_VERBOSE"))
            printf("%-32s %ld of %ld right\n", op->op_type, right, n_rounds);
        n_right += right;
        n_all += n_rounds;
    }
    printf("%ld nodes, %ld of them right\n", n_all, n_right);
    return test_finish();
}
