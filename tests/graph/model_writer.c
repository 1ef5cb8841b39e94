#include "graph/model_writer.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pb_raw(struct pb *m, const void *bytes, size_t n) {
    if (m->size + n > m->capacity) {
        m->capacity = (m->size + n) * 2;
        m->data = realloc(m->data, m->capacity);
        if (!m->data) {
            fprintf(stderr, "out of memory\n");
            exit(1);
        }
    }
    if (n) memcpy(m->data + m->size, bytes, n);
    m->size += n;
}

void pb_number(struct pb *m, uint64_t value) {
    do {
        unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        pb_raw(m, &byte, 1);
        value >>= 7;
    } while (value);
}

static void tag(struct pb *m, uint32_t field, unsigned wire_type) {
    pb_number(m, (uint64_t)field << 3 | wire_type);
}

void pb_int(struct pb *m, uint32_t field, int64_t value) {
    tag(m, field, 0);
    pb_number(m, (uint64_t)value);
}

void pb_float(struct pb *m, uint32_t field, float value) {
    tag(m, field, 5);
    pb_raw(m, &value, 4);
}

void pb_bytes(struct pb *m, uint32_t field, const void *bytes, size_t n) {
    tag(m, field, 2);
    pb_number(m, n);
    pb_raw(m, bytes, n);
}

void pb_text(struct pb *m, uint32_t field, const char *s) {
    pb_bytes(m, field, s, strlen(s));
}

void pb_free(struct pb *m) {
    free(m->data);
    *m = (struct pb){0};
}

void pb_sub(struct pb *m, uint32_t field, struct pb sub) {
    pb_bytes(m, field, sub.data, sub.size);
    pb_free(&sub);
}

void pb_packed(struct pb *m, uint32_t field, size_t n, const int64_t *values) {
    struct pb packed = {0};
    for (size_t i = 0; i < n; i++)
        pb_number(&packed, (uint64_t)values[i]);
    pb_sub(m, field, packed);
}

struct pb pb_opset(const char *domain, int64_t version) {
    struct pb m = {0};
    pb_text(&m, 1, domain);
    pb_int(&m, 2, version);
    return m;
}

struct pb pb_model(struct pb graph) {
    struct pb m = {0};
    pb_int(&m, MODEL_IR, 8);
    pb_sub(&m, MODEL_GRAPH, graph);
    pb_sub(&m, MODEL_OPSET, pb_opset("", 13));
    return m;
}

struct pb pb_tensor_type(int elem_type, size_t rank, const int64_t *dims) {
    struct pb shape = {0}, tensor = {0}, type = {0};
    for (size_t i = 0; i < rank; i++) {
        struct pb dim = {0};
        if (dims[i] != -1) pb_int(&dim, 1, dims[i]);
        pb_sub(&shape, 1, dim);
    }
    pb_int(&tensor, 1, elem_type);
    pb_sub(&tensor, 2, shape);
    pb_sub(&type, 1, tensor);
    return type;
}

struct pb pb_value_of(const char *name, struct pb type) {
    struct pb m = {0};
    pb_text(&m, 1, name);
    pb_sub(&m, 2, type);
    return m;
}

struct pb pb_value(const char *name, int elem_type, size_t rank, const int64_t *dims) {
    return pb_value_of(name, pb_tensor_type(elem_type, rank, dims));
}

static void names(struct pb *m, uint32_t field, const char *list) {
    bool more = *list != 0;
    while (more) {
        size_t n = strcspn(list, ",");
        pb_bytes(m, field, list, n);
        more = list[n] == ',';
        list += n + more;
    }
}

struct pb pb_node(const char *op, const char *name, const char *inputs, const char *outputs) {
    struct pb m = {0};
    names(&m, NODE_INPUT, inputs);
    names(&m, NODE_OUTPUT, outputs);
    if (*name) pb_text(&m, NODE_NAME, name);
    if (*op) pb_text(&m, NODE_OP, op);
    return m;
}

static struct pb tensor_head(const char *name, int type, size_t rank, const int64_t *dims) {
    struct pb m = {0};
    for (size_t i = 0; i < rank; i++)
        pb_int(&m, TENSOR_DIMS, dims[i]);
    pb_int(&m, TENSOR_TYPE, type);
    if (*name) pb_text(&m, TENSOR_NAME, name);
    return m;
}

struct pb pb_tensor(const char *name, int type, size_t rank, const int64_t *dims, const void *raw,
                    size_t n) {
    struct pb m = tensor_head(name, type, rank, dims);
    if (raw) pb_bytes(&m, TENSOR_RAW, raw, n);
    return m;
}

struct pb pb_entry(const char *key, const char *value) {
    struct pb m = {0};
    pb_text(&m, 1, key);
    pb_text(&m, 2, value);
    return m;
}

struct pb pb_external(const char *name, int type, size_t rank, const int64_t *dims,
                      const char *location, const char *offset, const char *length,
                      const char *checksum) {
    struct pb m = tensor_head(name, type, rank, dims);
    if (location) pb_sub(&m, TENSOR_EXTERNAL, pb_entry("location", location));
    if (offset) pb_sub(&m, TENSOR_EXTERNAL, pb_entry("offset", offset));
    if (length) pb_sub(&m, TENSOR_EXTERNAL, pb_entry("length", length));
    if (checksum) pb_sub(&m, TENSOR_EXTERNAL, pb_entry("checksum", checksum));
    pb_int(&m, TENSOR_LOCATION, 1);
    return m;
}

struct pb pb_attr_int(const char *name, int64_t value) {
    struct pb m = {0};
    pb_text(&m, ATTR_NAME, name);
    pb_int(&m, ATTR_I, value);
    pb_int(&m, ATTR_TYPE, 2);
    return m;
}

struct pb pb_attr_graph(const char *name, struct pb graph) {
    struct pb m = {0};
    pb_text(&m, ATTR_NAME, name);
    pb_sub(&m, ATTR_G, graph);
    pb_int(&m, ATTR_TYPE, 5);
    return m;
}

struct pb pb_attr_tensor(const char *name, struct pb tensor) {
    struct pb m = {0};
    pb_text(&m, ATTR_NAME, name);
    pb_sub(&m, ATTR_T, tensor);
    pb_int(&m, ATTR_TYPE, 4);
    return m;
}

// Adds one attribute of every other kind.
static void add_attributes(struct pb *node) {
    struct pb a = {0};
    pb_text(&a, ATTR_NAME, "alpha");
    pb_float(&a, ATTR_F, 0.5f);
    pb_int(&a, ATTR_TYPE, 1);
    pb_sub(node, NODE_ATTRIBUTE, a);
    a = (struct pb){0};
    pb_text(&a, ATTR_NAME, "mode");
    pb_bytes(&a, ATTR_S, "a\"\n", 3);
    pb_int(&a, ATTR_TYPE, 3);
    pb_sub(node, NODE_ATTRIBUTE, a);
    a = (struct pb){0};
    pb_text(&a, ATTR_NAME, "axes");
    pb_int(&a, ATTR_INTS, 1);
    pb_int(&a, ATTR_INTS, -2);
    pb_int(&a, ATTR_TYPE, 7);
    pb_sub(node, NODE_ATTRIBUTE, a);
    a = (struct pb){0};
    pb_text(&a, ATTR_NAME, "scales");
    pb_float(&a, ATTR_FLOATS, 1.5f);
    pb_float(&a, ATTR_FLOATS, -0.25f);
    pb_int(&a, ATTR_TYPE, 6);
    pb_sub(node, NODE_ATTRIBUTE, a);
    a = (struct pb){0};
    pb_text(&a, ATTR_NAME, "words");
    pb_text(&a, ATTR_STRINGS, "one");
    pb_text(&a, ATTR_STRINGS, "two");
    pb_int(&a, ATTR_TYPE, 8);
    pb_sub(node, NODE_ATTRIBUTE, a);
}

static struct pb branch(const char *op, const char *output) {
    struct pb graph = {0}, value = {0};
    pb_sub(&graph, GRAPH_NODE, pb_node(op, "", "h,w", output));
    pb_text(&value, 1, output);
    pb_sub(&graph, GRAPH_OUTPUT, value);
    return graph;
}

struct pb pb_sample_model(void) {
    static const float weights[3] = {1, -2, 0.5f};
    struct pb graph = {0}, type = {0}, tensor = {0}, shape = {0}, dim = {0};
    pb_text(&graph, GRAPH_NAME, "sample");
    // x: float32[n,3]
    pb_text(&dim, 2, "n");
    pb_sub(&shape, 1, dim);
    dim = (struct pb){0};
    pb_int(&dim, 1, 3);
    pb_sub(&shape, 1, dim);
    pb_int(&tensor, 1, 1);
    pb_sub(&tensor, 2, shape);
    pb_sub(&type, 1, tensor);
    pb_sub(&graph, GRAPH_INPUT, pb_value_of("x", type));
    pb_sub(&graph, GRAPH_INPUT, pb_value("flag", 9, 0, NULL));
    // w: raw, c: in int64_data
    pb_sub(&graph, GRAPH_INITIALIZER,
           pb_tensor("w", 1, 1, (int64_t[]){3}, weights, sizeof weights));
    struct pb c = tensor_head("c", 7, 1, (int64_t[]){2});
    pb_packed(&c, TENSOR_INT64S, 2, (int64_t[]){-1, 3});
    pb_sub(&graph, GRAPH_INITIALIZER, c);

    struct pb node = pb_node("Everything", "all", "x,,c", "h,");
    add_attributes(&node);
    struct pb t = tensor_head("", 3, 1, (int64_t[]){2});
    pb_packed(&t, TENSOR_INT32S, 2, (int64_t[]){-128, 127});
    pb_sub(&node, NODE_ATTRIBUTE, pb_attr_tensor("value", t));
    pb_text(&node, NODE_DOMAIN, "test.domain");
    pb_sub(&graph, GRAPH_NODE, node);
    node = pb_node("If", "choice", "flag", "y");
    pb_sub(&node, NODE_ATTRIBUTE, pb_attr_graph("then_branch", branch("Add", "sum")));
    pb_sub(&node, NODE_ATTRIBUTE, pb_attr_graph("else_branch", branch("Mul", "product")));
    pb_sub(&graph, GRAPH_NODE, node);
    pb_sub(&graph, GRAPH_VALUE_INFO, pb_value("h", 1, 2, (int64_t[]){-1, 3}));
    pb_sub(&graph, GRAPH_OUTPUT, pb_value("y", 1, 2, (int64_t[]){-1, 3}));

    struct pb model = pb_model(graph);
    pb_sub(&model, MODEL_OPSET, pb_opset("test.domain", 2));
    pb_sub(&model, MODEL_METADATA, pb_entry("author", "nobody"));
    return model;
}
