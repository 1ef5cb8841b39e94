// Digest of a node's attributes, including subgraphs. trace/trace.h defines what is hashed.
#include <stdlib.h>
#include <string.h>

#include "trace/model_header.h"
#include "trace/value_index.h"
#include "base/memory.h"
#include "base/status.h"

// Maximum nesting of subgraphs; the model reader allows fewer levels.
#define MAX_LEVELS 128

struct scope {
    const struct ree_graph *model; // the outermost graph
    struct ree_value_index inputs; // of the node in it; empty if the node has no subgraphs
    uint32_t level;
    uint32_t version; // of the trace
    struct ree_error *err;
};

static enum ree_status hash_attributes(const struct scope *scope, const struct ree_node *node,
                                       ree_digest out);

static void put_u8(struct ree_hasher *h, uint8_t x) {
    ree_hasher_update(h, &x, sizeof x);
}

static void put_u32(struct ree_hasher *h, uint32_t x) {
    ree_hasher_update(h, &x, sizeof x);
}

static void put_u64(struct ree_hasher *h, uint64_t x) {
    ree_hasher_update(h, &x, sizeof x);
}

static void put_string(struct ree_hasher *h, const char *s, size_t n) {
    put_u32(h, (uint32_t)n);
    ree_hasher_update(h, s, n);
}

static void put_text(struct ree_hasher *h, const char *s) {
    put_string(h, s ? s : "", s ? strlen(s) : 0);
}

struct ree_tensor ree_trace_constant_tensor(const struct ree_value *value) {
    struct ree_tensor t = {.name = (char *)(uintptr_t)value->name, // not modified
                           .dtype = value->dtype,
                           .rank = value->rank,
                           .data = (void *)(uintptr_t)value->data,
                           .nbytes = value->nbytes};
    memcpy(t.dims, value->dims, sizeof t.dims);
    return t;
}

// References

static uint32_t index_of(struct ree_value *const *values, size_t n, const struct ree_value *value) {
    for (size_t i = 0; i < n; i++)
        if (values[i] == value) return (uint32_t)i;
    return UINT32_MAX;
}

static enum ree_status put_reference(const struct scope *scope, const struct ree_graph *graph,
                                     struct ree_hasher *h, const struct ree_value *value) {
    if (!value) {
        put_u8(h, 0);
        return REE_OK;
    }
    if (value->graph == scope->model) {
        size_t place = ree_value_index_find(&scope->inputs, value);
        uint32_t k = place == REE_NO_VALUE ? UINT32_MAX : (uint32_t)place;
        // If the value occurs several times among the inputs, the reference is to the first.
        put_u8(h, 4);
        put_u32(h, k);
        return k == UINT32_MAX ? ree_fail(scope->err, REE_INTERNAL, "'%s' is not one of the inputs",
                                          value->name)
                               : REE_OK;
    }
    uint32_t levels = 0;
    for (; graph && graph != value->graph; graph = graph->parent)
        levels++;
    if (!graph)
        return ree_fail(scope->err, REE_INTERNAL, "'%s' belongs to another graph", value->name);
    if (value->producer) {
        const struct ree_node *node = value->producer;
        put_u8(h, 2);
        put_u32(h, levels);
        put_u32(h, node->id);
        put_u32(h, index_of(node->outputs, node->n_outputs, value));
    } else if (value->is_input) {
        put_u8(h, 1);
        put_u32(h, levels);
        put_u32(h, index_of(graph->inputs, graph->n_inputs, value));
    } else {
        struct ree_tensor tensor = ree_trace_constant_tensor(value);
        ree_digest digest;
        ree_trace_tensor_digest(&tensor, digest);
        put_u8(h, 3);
        ree_hasher_update(h, digest, sizeof digest);
    }
    return REE_OK;
}

// Subgraphs

static enum ree_status put_node(const struct scope *scope, const struct ree_graph *graph,
                                struct ree_hasher *h, const struct ree_node *node) {
    struct ree_trace_node described = {.name = node->name ? node->name : "",
                                       .domain = node->domain,
                                       .op_type = node->op_type,
                                       .opset = node->opset};
    ree_digest op;
    REE_TRY(hash_attributes(scope, node, described.attributes));
    ree_trace_op_digest(&described, scope->version, op);
    ree_hasher_update(h, op, sizeof op);
    put_u32(h, (uint32_t)node->n_inputs);
    for (size_t i = 0; i < node->n_inputs; i++)
        REE_TRY(put_reference(scope, graph, h, node->inputs[i]));
    put_u32(h, (uint32_t)node->n_outputs);
    for (size_t i = 0; i < node->n_outputs; i++)
        put_u8(h, node->outputs[i] != NULL);
    return REE_OK;
}

static enum ree_status put_graph(const struct scope *scope, const struct ree_graph *graph,
                                 struct ree_hasher *h) {
    put_u32(h, (uint32_t)graph->n_inputs);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        put_text(h, graph->inputs[i]->name);
        put_u32(h, (uint32_t)graph->inputs[i]->dtype);
    }
    put_u32(h, (uint32_t)graph->n_nodes);
    for (size_t i = 0; i < graph->n_nodes; i++)
        REE_TRY(put_node(scope, graph, h, graph->nodes[i]));
    put_u32(h, (uint32_t)graph->n_outputs);
    for (size_t i = 0; i < graph->n_outputs; i++)
        REE_TRY(put_reference(scope, graph, h, graph->outputs[i]));
    return REE_OK;
}

static enum ree_status hash_graph(const struct scope *scope, const struct ree_graph *graph,
                                  ree_digest out) {
    struct scope inner = *scope;
    if (++inner.level > MAX_LEVELS)
        return ree_fail(scope->err, REE_UNSUPPORTED, "graphs are nested more than %d deep",
                        MAX_LEVELS);
    struct ree_hasher *h = ree_hasher_create("ree-body/1");
    enum ree_status status = put_graph(&inner, graph, h);
    ree_hasher_digest(h, out);
    return status;
}

// Attributes

static void put_type(struct ree_hasher *h, const struct ree_value *type) {
    put_u32(h, (uint32_t)type->dtype);
    put_u8(h, (uint8_t)type->kind);
    put_u8(h, type->nullable);
    put_u8(h, type->has_shape);
    put_u32(h, type->has_shape ? type->rank : 0);
    if (type->has_shape) ree_hasher_update(h, type->dims, type->rank * sizeof *type->dims);
}

// The kind numbers are those of trace.h and do not depend on the enum's values.
static enum ree_status put_attribute(const struct scope *scope, struct ree_hasher *h,
                                     const struct ree_attr *a) {
    ree_digest digest;
    put_text(h, a->name);
    switch (a->kind) {
    case REE_ATTR_INT:
        put_u8(h, 1);
        put_u64(h, (uint64_t)a->i);
        break;
    case REE_ATTR_FLOAT:
        put_u8(h, 2);
        ree_hasher_update(h, &a->f, sizeof a->f);
        break;
    case REE_ATTR_STRING:
        put_u8(h, 3);
        put_string(h, a->s, a->s_size);
        break;
    case REE_ATTR_TENSOR: {
        struct ree_tensor tensor = ree_trace_constant_tensor(a->tensor);
        put_u8(h, 4);
        ree_tensor_digest(&tensor, digest);
        ree_hasher_update(h, digest, sizeof digest);
        break;
    }
    case REE_ATTR_GRAPH:
        put_u8(h, 5);
        REE_TRY(hash_graph(scope, a->graph, digest));
        ree_hasher_update(h, digest, sizeof digest);
        break;
    case REE_ATTR_INTS:
        put_u8(h, 6);
        put_u64(h, a->n);
        ree_hasher_update(h, a->ints, a->n * sizeof *a->ints);
        break;
    case REE_ATTR_FLOATS:
        put_u8(h, 7);
        put_u64(h, a->n);
        ree_hasher_update(h, a->floats, a->n * sizeof *a->floats);
        break;
    case REE_ATTR_STRINGS:
        put_u8(h, 8);
        put_u64(h, a->n);
        for (size_t i = 0; i < a->n; i++)
            put_text(h, a->strings[i]);
        break;
    case REE_ATTR_TYPE:
        put_u8(h, 9);
        put_type(h, a->tensor);
        break;
    }
    return REE_OK;
}

static int by_name(const void *a, const void *b) {
    const struct ree_attr *x = *(const struct ree_attr *const *)a,
                          *y = *(const struct ree_attr *const *)b;
    return strcmp(x->name, y->name);
}

static enum ree_status hash_attributes(const struct scope *scope, const struct ree_node *node,
                                       ree_digest out) {
    const struct ree_attr **sorted =
        ree_alloc((node->n_attrs + 1) * sizeof(const struct ree_attr *));
    if (!sorted) return ree_no_memory(scope->err);
    for (size_t i = 0; i < node->n_attrs; i++)
        sorted[i] = &node->attrs[i];
    qsort(sorted, node->n_attrs, sizeof(const struct ree_attr *), by_name);
    struct ree_hasher *h = ree_hasher_create("ree-attributes/1");
    put_u32(h, (uint32_t)node->n_attrs);
    enum ree_status status = REE_OK;
    for (size_t i = 0; i < node->n_attrs && status == REE_OK; i++)
        status = put_attribute(scope, h, sorted[i]);
    ree_hasher_digest(h, out);
    ree_free(sorted);
    return status;
}

enum ree_status ree_trace_attributes_digest(const struct ree_node *node,
                                            struct ree_value *const *inputs, uint32_t n,
                                            uint32_t version, ree_digest out,
                                            struct ree_error *err) {
    // The graph that contains the node, found as the parent of a subgraph. It is needed only if
    // there are subgraphs.
    const struct ree_graph *model = NULL;
    for (size_t i = 0; i < node->n_attrs; i++)
        if (node->attrs[i].kind == REE_ATTR_GRAPH) model = node->attrs[i].graph->parent;
    struct scope scope = {.model = model, .version = version, .err = err};
    if (model && !ree_value_index_init(&scope.inputs, inputs, n)) return ree_no_memory(err);
    enum ree_status status = hash_attributes(&scope, node, out);
    ree_value_index_finish(&scope.inputs);
    return status;
}
