#include "graph/onnx/reader.h"

#include <stdlib.h>
#include <string.h>

// Far more attributes than any operator has. Keeps the search for duplicates short.
#define MAX_ATTRIBUTES 64

static const char *const kind_names[] = {
    "nothing", "a float",         "an int",         "a string", "a tensor",
    "a graph", "floats",          "ints",           "strings",  "tensors",
    "graphs",  "a sparse tensor", "sparse tensors", "a type",   "types",
};
#define N_KINDS (sizeof kind_names / sizeof *kind_names)

#define KIND(name) ONNX__ATTRIBUTE_PROTO__KIND__KIND_##name

// Finds the kind that the message declares. Files from before ONNX 1.0 declare none; the kind is
// then that of the filled field. A filled field of another kind is an error.
static enum ree_status find_kind(struct ree_onnx_reader *reader, const Onnx__AttributeProto *proto,
                                 int32_t *out) {
    const bool filled[N_KINDS] = {
        [KIND(FLOAT)] = proto->has_f,
        [KIND(INT)] = proto->has_i,
        [KIND(STRING)] = proto->has_s,
        [KIND(TENSOR)] = proto->t != NULL,
        [KIND(GRAPH)] = proto->g != NULL,
        [KIND(FLOATS)] = proto->n_floats > 0,
        [KIND(INTS)] = proto->n_ints > 0,
        [KIND(STRINGS)] = proto->n_strings > 0,
        [KIND(TENSORS)] = proto->n_tensors > 0,
        [KIND(GRAPHS)] = proto->n_graphs > 0,
        [KIND(SPARSE_TENSOR)] = proto->sparse_tensor != NULL,
        [KIND(SPARSE_TENSORS)] = proto->n_sparse_tensors > 0,
        [KIND(TYPE)] = proto->tp != NULL,
        [KIND(TYPES)] = proto->n_type_protos > 0,
    };
    int32_t kind = proto->type;
    if (kind < 0 || (size_t)kind >= N_KINDS)
        return ree_fail(reader->err, REE_UNSUPPORTED, "has the unknown kind %d", kind);
    for (int32_t i = 1; i < (int32_t)N_KINDS; i++) {
        if (!filled[i]) continue;
        if (kind == KIND(UNDEFINED)) kind = i;
        if (kind == i) continue;
        // A scalar field that is zero or empty may have been written unintentionally; it is
        // ignored.
        bool zero = (i == KIND(FLOAT) && proto->f == 0) || (i == KIND(INT) && proto->i == 0) ||
                    (i == KIND(STRING) && proto->s.len == 0);
        if (!zero)
            return ree_fail(reader->err, REE_INVALID, "is declared as %s, but contains %s",
                            kind_names[kind], kind_names[i]);
    }
    if (kind == KIND(UNDEFINED)) return ree_fail(reader->err, REE_INVALID, "has no value");
    *out = kind;
    return REE_OK;
}

static enum ree_status read_string(struct ree_onnx_reader *reader, const ProtobufCBinaryData *data,
                                   const char **out) {
    if (data->len && memchr(data->data, 0, data->len))
        return ree_fail(reader->err, REE_UNSUPPORTED, "has a string that contains a NUL byte");
    *out = ree_arena_strndup(reader->arena, (const char *)data->data, data->len);
    return *out ? REE_OK : ree_onnx_no_memory(reader);
}

static enum ree_status read_strings(struct ree_onnx_reader *reader,
                                    const Onnx__AttributeProto *proto, struct ree_attr *attr) {
    const char **strings = ree_arena_alloc_array(reader->arena, proto->n_strings, sizeof *strings);
    if (!strings) return ree_onnx_no_memory(reader);
    for (size_t i = 0; i < proto->n_strings; i++) {
        REE_TRY(read_string(reader, &proto->strings[i], &strings[i]));
    }
    attr->strings = strings;
    attr->n = proto->n_strings;
    return REE_OK;
}

static enum ree_status read_array(struct ree_onnx_reader *reader, const void *data, size_t n,
                                  size_t size, const void **out) {
    void *copy = ree_arena_alloc_array(reader->arena, n, size);
    if (!copy) return ree_onnx_no_memory(reader);
    if (n) memcpy(copy, data, n * size);
    *out = copy;
    return REE_OK;
}

static enum ree_status read_tensor(struct ree_onnx_reader *reader, const Onnx__TensorProto *proto,
                                   struct ree_attr *attr) {
    if (!proto)
        return ree_fail(reader->err, REE_INVALID, "is declared as a tensor, but contains none");
    struct ree_value *value = ree_arena_alloc(reader->arena, sizeof *value);
    if (!value) return ree_onnx_no_memory(reader);
    value->name = ree_arena_strdup(reader->arena, ree_onnx_text(proto->name));
    if (!value->name) return ree_onnx_no_memory(reader);
    attr->tensor = value;
    return ree_onnx_read_tensor(reader, proto, value);
}

static enum ree_status read_subgraph(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                                     struct ree_graph *graph, const struct ree_scope *scope,
                                     struct ree_attr *attr) {
    if (!proto)
        return ree_fail(reader->err, REE_INVALID, "is declared as a graph, but contains none");
    if (!graph)
        return ree_fail(reader->err, REE_UNSUPPORTED, "a default that is a graph is not supported");
    attr->graph = ree_graph_add_subgraph(graph);
    if (!attr->graph) return ree_onnx_no_memory(reader);
    return ree_onnx_read_graph(reader, proto, attr->graph, scope);
}

enum ree_status ree_onnx_read_attribute(struct ree_onnx_reader *reader,
                                        const Onnx__AttributeProto *proto, struct ree_graph *graph,
                                        const struct ree_scope *scope, struct ree_attr *attr) {
    const void *array = NULL;
    int32_t kind;
    if (ree_onnx_text(proto->ref_attr_name)[0])
        return ree_fail(reader->err, REE_INVALID,
                        "refers to the attribute '%s' of a function, but is not in a function",
                        proto->ref_attr_name);
    REE_TRY(find_kind(reader, proto, &kind));
    switch (kind) {
    case KIND(FLOAT): attr->kind = REE_ATTR_FLOAT, attr->f = proto->f; return REE_OK;
    case KIND(INT): attr->kind = REE_ATTR_INT, attr->i = proto->i; return REE_OK;
    case KIND(STRING):
        attr->kind = REE_ATTR_STRING, attr->s_size = proto->s.len;
        return read_string(reader, &proto->s, &attr->s);
    case KIND(TENSOR): attr->kind = REE_ATTR_TENSOR; return read_tensor(reader, proto->t, attr);
    case KIND(GRAPH):
        attr->kind = REE_ATTR_GRAPH;
        return read_subgraph(reader, proto->g, graph, scope, attr);
    case KIND(FLOATS):
        attr->kind = REE_ATTR_FLOATS, attr->n = proto->n_floats;
        REE_TRY(read_array(reader, proto->floats, attr->n, sizeof *attr->floats, &array));
        attr->floats = array;
        return REE_OK;
    case KIND(INTS):
        attr->kind = REE_ATTR_INTS, attr->n = proto->n_ints;
        REE_TRY(read_array(reader, proto->ints, attr->n, sizeof *attr->ints, &array));
        attr->ints = array;
        return REE_OK;
    case KIND(STRINGS): attr->kind = REE_ATTR_STRINGS; return read_strings(reader, proto, attr);
    case KIND(TYPE):
        if (!proto->tp)
            return ree_fail(reader->err, REE_INVALID, "is declared as a type, but contains none");
        attr->kind = REE_ATTR_TYPE;
        attr->tensor = ree_arena_alloc(reader->arena, sizeof *attr->tensor);
        if (!attr->tensor) return ree_onnx_no_memory(reader);
        attr->tensor->name = "";
        return ree_onnx_read_type(reader, proto->tp, attr->tensor);
    default:
        return ree_fail(reader->err, REE_UNSUPPORTED, "contains %s, which is not supported",
                        kind_names[kind]);
    }
}

static int by_name(const void *a, const void *b) {
    const Onnx__AttributeProto *x = *(const Onnx__AttributeProto *const *)a;
    const Onnx__AttributeProto *y = *(const Onnx__AttributeProto *const *)b;
    return strcmp(ree_onnx_text(x->name), ree_onnx_text(y->name));
}

enum ree_status ree_onnx_read_attributes(struct ree_onnx_reader *reader,
                                         const Onnx__NodeProto *proto, struct ree_graph *graph,
                                         const struct ree_scope *scope, struct ree_node *node) {
    if (proto->n_attribute > MAX_ATTRIBUTES)
        return ree_fail(reader->err, REE_UNSUPPORTED, "has %zu attributes; at most %d is supported",
                        proto->n_attribute, MAX_ATTRIBUTES);
    node->attrs = ree_arena_alloc_array(reader->arena, proto->n_attribute, sizeof *node->attrs);
    if (!node->attrs) return ree_onnx_no_memory(reader);
    // In the order of their names, as graph_sha256 has them: subgraphs, and the values that they
    // capture, follow the order of attributes.
    const Onnx__AttributeProto **sorted =
        ree_arena_alloc_array(reader->arena, proto->n_attribute + 1, sizeof *sorted);
    if (!sorted) return ree_onnx_no_memory(reader);
    if (proto->n_attribute) memcpy(sorted, proto->attribute, proto->n_attribute * sizeof *sorted);
    qsort(sorted, proto->n_attribute, sizeof *sorted, by_name);
    for (size_t i = 0; i < proto->n_attribute; i++) {
        const Onnx__AttributeProto *from = sorted[i];
        struct ree_attr *attr = &node->attrs[node->n_attrs];
        const char *name = ree_onnx_text(from->name);
        if (!*name) return ree_fail(reader->err, REE_INVALID, "an attribute has no name");
        if (ree_node_attr(node, name))
            return ree_fail(reader->err, REE_INVALID, "attribute '%s' occurs twice", name);
        attr->name = ree_arena_strdup(reader->arena, name);
        if (!attr->name) return ree_onnx_no_memory(reader);
        bool found = true;
        enum ree_status status =
            scope->call && ree_onnx_text(from->ref_attr_name)[0]
                ? ree_onnx_read_reference(reader, from, scope->call, attr, &found)
                : ree_onnx_read_attribute(reader, from, graph, scope, attr);
        if (status != REE_OK) return ree_fail_prefix(reader->err, "attribute '%s'", name);
        node->n_attrs += found;
    }
    return REE_OK;
}
