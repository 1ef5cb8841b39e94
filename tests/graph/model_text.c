#include "graph/model_text.h"

#include "ree.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parser {
    const char *at, *start;
};

static void fail(const struct parser *p, const char *expected) {
    fprintf(stderr, "test model: expected %s at: %.40s\nin %s\n", expected, p->at, p->start);
    exit(1);
}

static void skip(struct parser *p) {
    for (;; p->at++) {
        if (*p->at == '#') p->at += strcspn(p->at, "\n");
        if (!*p->at || !isspace((unsigned char)*p->at)) return;
    }
}

static bool accept(struct parser *p, const char *token) {
    skip(p);
    size_t n = strlen(token);
    if (strncmp(p->at, token, n) != 0) return false;
    p->at += n;
    return true;
}

static void expect(struct parser *p, const char *token) {
    if (!accept(p, token)) fail(p, token);
}

static bool is_name(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '/';
}

static bool at_name(struct parser *p) {
    skip(p);
    return is_name(*p->at);
}

// Reads the next name into a buffer of 64 bytes.
static void read_name(struct parser *p, char *out) {
    if (!at_name(p)) fail(p, "a name");
    size_t n = 0;
    while (is_name(*p->at) && n < 63)
        out[n++] = *p->at++;
    out[n] = 0;
}

// Reads a list of names up to `end`, each into field `field` of m; "_" becomes "".
static void read_names(struct parser *p, struct pb *m, uint32_t field, const char *end) {
    char name[64];
    while (at_name(p)) {
        read_name(p, name);
        pb_text(m, field, strcmp(name, "_") ? name : "");
        if (!accept(p, ",")) break;
    }
    expect(p, end);
}

int model_text_dtype(const char *name, size_t n) {
    for (int i = 1; i < 32; i++) {
        const char *known = ree_dtype_name((enum ree_dtype)i);
        if (strlen(known) == n && strncmp(known, name, n) == 0) return i;
    }
    return 0;
}

static int read_dtype(struct parser *p) {
    char name[64];
    read_name(p, name);
    int dtype = model_text_dtype(name, strlen(name));
    if (!dtype) fail(p, "a type before this");
    return dtype;
}

static struct pb read_type(struct parser *p) {
    struct pb type = {0}, inner = {0};
    bool sequence = accept(p, "seq("), optional = !sequence && accept(p, "opt(");
    if (sequence || optional) {
        pb_sub(&inner, 1, read_type(p));
        expect(p, ")");
        pb_sub(&type, sequence ? 4 : 9, inner);
        return type;
    }
    pb_int(&inner, 1, read_dtype(p));
    if (accept(p, "[")) {
        struct pb shape = {0};
        while (!accept(p, "]")) {
            struct pb dim = {0};
            char name[64];
            read_name(p, name);
            if (isdigit((unsigned char)name[0]))
                pb_int(&dim, 1, atoll(name));
            else
                pb_text(&dim, 2, name);
            pb_sub(&shape, 1, dim);
            accept(p, ",");
        }
        pb_sub(&inner, 2, shape);
    }
    pb_sub(&type, 1, inner);
    return type;
}

// Reads NAME or NAME:TYPE, separated by commas, up to ")".
static void read_values(struct parser *p, struct pb *graph, uint32_t field) {
    char name[64];
    while (at_name(p)) {
        struct pb value = {0};
        read_name(p, name);
        pb_text(&value, 1, name);
        if (accept(p, ":")) pb_sub(&value, 2, read_type(p));
        pb_sub(graph, field, value);
        if (!accept(p, ",")) break;
    }
    expect(p, ")");
}

// Reads "text" without escapes.
static void read_string(struct parser *p, struct pb *m, uint32_t field) {
    expect(p, "\"");
    size_t n = strcspn(p->at, "\"");
    pb_bytes(m, field, p->at, n);
    p->at += n;
    expect(p, "\"");
}

static double read_number(struct parser *p, bool *is_float) {
    skip(p);
    char *end;
    double number = strtod(p->at, &end);
    if (end == p->at) fail(p, "a number");
    *is_float = false;
    for (; p->at < end; p->at++)
        if (strchr(".en", *p->at)) *is_float = true; // 1.5, 1e9, nan, inf
    return number;
}

static struct pb read_tensor(struct parser *p) {
    struct pb tensor = {0};
    bool is_float;
    int dtype = read_dtype(p);
    expect(p, "[");
    while (!accept(p, "]")) {
        pb_int(&tensor, TENSOR_DIMS, (int64_t)read_number(p, &is_float));
        accept(p, ",");
    }
    pb_int(&tensor, TENSOR_TYPE, dtype);
    while (!accept(p, ">")) {
        if (dtype == REE_STRING) {
            read_string(p, &tensor, TENSOR_STRINGS);
            continue;
        }
        double number = read_number(p, &is_float);
        if (dtype == REE_F32)
            pb_float(&tensor, TENSOR_FLOATS, (float)number);
        else
            pb_int(&tensor, dtype == REE_I64 ? TENSOR_INT64S : TENSOR_INT32S, (int64_t)number);
    }
    return tensor;
}

static struct pb read_graph(struct parser *p);

static void read_list(struct parser *p, struct pb *attr) {
    int kind = 7;
    while (!accept(p, "]")) {
        skip(p);
        bool is_float = false;
        if (*p->at == '"') {
            read_string(p, attr, ATTR_STRINGS);
            kind = 8;
        } else {
            double number = read_number(p, &is_float);
            if (is_float)
                pb_float(attr, ATTR_FLOATS, (float)number);
            else
                pb_int(attr, ATTR_INTS, (int64_t)number);
            if (is_float) kind = 6;
        }
        accept(p, ",");
    }
    pb_int(attr, ATTR_TYPE, kind);
}

static struct pb read_attribute(struct parser *p, const char *name) {
    struct pb attr = {0};
    bool is_float;
    pb_text(&attr, ATTR_NAME, name);
    skip(p);
    if (accept(p, "@")) {
        char other[64];
        read_name(p, other);
        pb_text(&attr, ATTR_REF, other);
        if (accept(p, ":")) { // an optional attribute kind
            pb_int(&attr, ATTR_TYPE, (int64_t)read_number(p, &is_float));
        }
    } else if (accept(p, "[")) {
        read_list(p, &attr);
    } else if (accept(p, "<")) {
        pb_sub(&attr, ATTR_T, read_tensor(p));
        pb_int(&attr, ATTR_TYPE, 4);
    } else if (*p->at == '(') {
        pb_sub(&attr, ATTR_G, read_graph(p));
        pb_int(&attr, ATTR_TYPE, 5);
    } else if (*p->at == '"') {
        read_string(p, &attr, ATTR_S);
        pb_int(&attr, ATTR_TYPE, 3);
    } else {
        double number = read_number(p, &is_float);
        if (is_float)
            pb_float(&attr, ATTR_F, (float)number);
        else
            pb_int(&attr, ATTR_I, (int64_t)number);
        pb_int(&attr, ATTR_TYPE, is_float ? 1 : 2);
    }
    return attr;
}

static void read_attributes(struct parser *p, struct pb *m, uint32_t field, const char *end) {
    char name[64];
    while (at_name(p)) {
        read_name(p, name);
        if (accept(p, "="))
            pb_sub(m, field, read_attribute(p, name));
        else
            pb_text(m, 6, name); // an attribute of a function, without default
        if (!accept(p, ",")) break;
    }
    expect(p, end);
}

static void read_operator(struct parser *p, struct pb *m, uint32_t name_field,
                          uint32_t domain_field) {
    char name[64];
    read_name(p, name);
    if (accept(p, ".")) {
        pb_text(m, domain_field, name);
        read_name(p, name);
    }
    pb_text(m, name_field, name);
}

static void read_nodes(struct parser *p, struct pb *m, uint32_t field) {
    char name[64];
    while (!accept(p, "}")) {
        struct pb node = {0};
        do {
            read_name(p, name);
            pb_text(&node, NODE_OUTPUT, strcmp(name, "_") ? name : "");
        } while (accept(p, ","));
        expect(p, "=");
        read_operator(p, &node, NODE_OP, NODE_DOMAIN);
        expect(p, "(");
        read_names(p, &node, NODE_INPUT, ")");
        if (accept(p, "{")) read_attributes(p, &node, NODE_ATTRIBUTE, "}");
        pb_sub(m, field, node);
    }
}

static struct pb read_graph(struct parser *p) {
    struct pb graph = {0};
    expect(p, "(");
    read_values(p, &graph, GRAPH_INPUT);
    expect(p, "->");
    expect(p, "(");
    read_values(p, &graph, GRAPH_OUTPUT);
    expect(p, "{");
    read_nodes(p, &graph, GRAPH_NODE);
    return graph;
}

// FunctionProto: name 1, input 4, output 5, attribute 6, node 7, opset_import 9, domain 10,
// attribute_proto 11
static struct pb read_function(struct parser *p, int64_t opset) {
    struct pb function = {0};
    read_operator(p, &function, 1, 10);
    expect(p, "(");
    char name[64];
    while (at_name(p)) {
        read_name(p, name);
        pb_text(&function, 4, name);
        if (!accept(p, ",")) break;
    }
    if (accept(p, ";"))
        read_attributes(p, &function, 11, ")");
    else
        expect(p, ")");
    expect(p, "->");
    expect(p, "(");
    read_names(p, &function, 5, ")");
    pb_sub(&function, 9, pb_opset("", opset));
    pb_sub(&function, 9, pb_opset("local", 1));
    expect(p, "{");
    read_nodes(p, &function, 7);
    return function;
}

struct pb model_text(const char *text) {
    struct parser p = {text, text};
    struct pb model = {0};
    bool is_float;
    int64_t opset = accept(&p, "opset") ? (int64_t)read_number(&p, &is_float) : 17;
    pb_int(&model, MODEL_IR, 8);
    pb_sub(&model, MODEL_OPSET, pb_opset("", opset));
    pb_sub(&model, MODEL_OPSET, pb_opset("local", 1));
    while (accept(&p, "function"))
        pb_sub(&model, MODEL_FUNCTION, read_function(&p, opset));
    pb_sub(&model, MODEL_GRAPH, read_graph(&p));
    skip(&p);
    if (*p.at) fail(&p, "the end");
    return model;
}
