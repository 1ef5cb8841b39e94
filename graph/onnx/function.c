// Functions that the model defines. A call is replaced by the function's nodes, which are read anew
// for each call. Everything after the reader is therefore independent of functions.
// https://onnx.ai/onnx/repo-docs/IR.html#functions
#include "graph/onnx/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Limits on nested calls, and on the nodes and bytes that all calls expand to. Without them a few
// functions that each call the next one twice could exhaust any memory.
#define MAX_DEPTH 64
#define MAX_NODES ((size_t)1 << 18)
#define MAX_BYTES ((size_t)64 << 20) // plus twice the model's size

// Maximum lengths of the parts of an inlined node's name.
#define MAX_PREFIX 64
#define MAX_NAME 192

static int compare(const void *a, const void *b) {
    const struct ree_function *x = a, *y = b;
    int order = strcmp(x->domain, y->domain);
    if (order == 0) order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->overload, y->overload);
}

enum ree_status ree_onnx_read_functions(struct ree_onnx_reader *reader,
                                        const Onnx__ModelProto *model) {
    size_t n = model->n_functions;
    reader->functions = ree_arena_alloc_array(&reader->scratch, n, sizeof *reader->functions);
    if (!reader->functions) return ree_onnx_no_memory(reader);
    reader->n_functions = n;
    for (size_t i = 0; i < n; i++) {
        const Onnx__FunctionProto *proto = model->functions[i];
        struct ree_function *function = &reader->functions[i];
        function->proto = proto;
        function->n_bytes = onnx__function_proto__get_packed_size(proto);
        function->domain = ree_onnx_domain(proto->domain);
        function->name = ree_onnx_text(proto->name);
        function->overload = ree_onnx_text(proto->overload);
        if (!function->name[0])
            return ree_fail(reader->err, REE_INVALID, "function #%zu has no name", i);
        if (ree_onnx_read_opsets(reader, proto->n_opset_import, proto->opset_import,
                                 &function->opsets, &function->n_opsets) != REE_OK)
            return ree_fail_prefix(reader->err, "function '%s'", function->name);
    }
    if (n) qsort(reader->functions, n, sizeof *reader->functions, compare);
    for (size_t i = 1; i < n; i++)
        if (compare(&reader->functions[i - 1], &reader->functions[i]) == 0)
            return ree_fail(reader->err, REE_INVALID, "function '%s' is defined twice",
                            reader->functions[i].name);
    return REE_OK;
}

const struct ree_function *ree_onnx_find_function(const struct ree_onnx_reader *reader,
                                                  const Onnx__NodeProto *node) {
    struct ree_function key = {.domain = ree_onnx_domain(node->domain),
                               .name = ree_onnx_text(node->op_type),
                               .overload = ree_onnx_text(node->overload)};
    if (!reader->n_functions) return NULL;
    return bsearch(&key, reader->functions, reader->n_functions, sizeof key, compare);
}

// Attributes

static const Onnx__AttributeProto *find_default(const Onnx__FunctionProto *proto,
                                                const char *name) {
    for (size_t i = 0; i < proto->n_attribute_proto; i++)
        if (strcmp(ree_onnx_text(proto->attribute_proto[i]->name), name) == 0)
            return proto->attribute_proto[i];
    return NULL;
}

static bool has_attribute(const Onnx__FunctionProto *proto, const char *name) {
    for (size_t i = 0; i < proto->n_attribute; i++)
        if (strcmp(proto->attribute[i], name) == 0) return true;
    return find_default(proto, name) != NULL;
}

static int32_t kind_of(const struct ree_attr *attr) {
    switch (attr->kind) {
    case REE_ATTR_INT: return ONNX__ATTRIBUTE_PROTO__KIND__KIND_INT;
    case REE_ATTR_FLOAT: return ONNX__ATTRIBUTE_PROTO__KIND__KIND_FLOAT;
    case REE_ATTR_STRING: return ONNX__ATTRIBUTE_PROTO__KIND__KIND_STRING;
    case REE_ATTR_TENSOR: return ONNX__ATTRIBUTE_PROTO__KIND__KIND_TENSOR;
    case REE_ATTR_GRAPH: return ONNX__ATTRIBUTE_PROTO__KIND__KIND_GRAPH;
    case REE_ATTR_INTS: return ONNX__ATTRIBUTE_PROTO__KIND__KIND_INTS;
    case REE_ATTR_FLOATS: return ONNX__ATTRIBUTE_PROTO__KIND__KIND_FLOATS;
    case REE_ATTR_STRINGS: return ONNX__ATTRIBUTE_PROTO__KIND__KIND_STRINGS;
    case REE_ATTR_TYPE: return ONNX__ATTRIBUTE_PROTO__KIND__KIND_TYPE;
    }
    return ONNX__ATTRIBUTE_PROTO__KIND__KIND_UNDEFINED;
}

enum ree_status ree_onnx_read_reference(struct ree_onnx_reader *reader,
                                        const Onnx__AttributeProto *proto,
                                        const struct ree_call *call, struct ree_attr *out,
                                        bool *out_found) {
    const char *name = out->name, *ref = proto->ref_attr_name;
    const struct ree_attr *given = ree_node_attr(call->node, ref);
    const Onnx__AttributeProto *fallback = find_default(call->function->proto, ref);
    *out_found = given || fallback;
    if (!has_attribute(call->function->proto, ref))
        return ree_fail(reader->err, REE_INVALID,
                        "refers to '%s', which is not an attribute of the function '%s'", ref,
                        call->function->name);
    if (given) *out = *given;
    // No graph and no scope: a default that is a graph is refused, because no names would be in
    // scope.
    else if (fallback)
        REE_TRY(ree_onnx_read_attribute(reader, fallback, NULL, NULL, out));
    else
        return REE_OK;
    out->name = name;
    // Several nodes may refer to one graph, but each would need its own values of the enclosing
    // scope.
    if (out->kind == REE_ATTR_GRAPH)
        return ree_fail(reader->err, REE_UNSUPPORTED,
                        "refers to '%s', which is a graph; that is not supported", ref);
    if (proto->type && proto->type != kind_of(out))
        return ree_fail(reader->err, REE_INVALID,
                        "refers to '%s', which has another type than this attribute", ref);
    return REE_OK;
}

// Calls

static enum ree_status check_call(struct ree_onnx_reader *reader, const struct ree_call *call) {
    const struct ree_node *node = call->node;
    const Onnx__FunctionProto *proto = call->function->proto;
    const char *name = call->function->name;
    if (node->n_inputs > proto->n_input)
        return ree_fail(reader->err, REE_INVALID, "has %zu inputs, but the function '%s' has %zu",
                        node->n_inputs, name, proto->n_input);
    if (node->n_outputs > proto->n_output)
        return ree_fail(reader->err, REE_INVALID, "has %zu outputs, but the function '%s' has %zu",
                        node->n_outputs, name, proto->n_output);
    for (size_t i = 0; i < node->n_attrs; i++)
        if (!has_attribute(proto, node->attrs[i].name))
            return ree_fail(reader->err, REE_INVALID,
                            "attribute '%s' is not an attribute of the function '%s'",
                            node->attrs[i].name, name);
    for (const struct ree_call *c = call->outer; c; c = c->outer)
        if (c->function == call->function)
            return ree_fail(reader->err, REE_INVALID, "the function '%s' calls itself", name);
    if (call->depth > MAX_DEPTH)
        return ree_fail(reader->err, REE_UNSUPPORTED, "functions call each other more than %d deep",
                        MAX_DEPTH);
    reader->inlined_nodes += proto->n_node;
    reader->inlined_bytes += call->function->n_bytes;
    if (reader->inlined_nodes > MAX_NODES ||
        reader->inlined_bytes > MAX_BYTES + 2 * reader->decoder.total)
        return ree_fail(reader->err, REE_UNSUPPORTED,
                        "expanding function calls exceeds the supported %zu nodes or %zu bytes",
                        MAX_NODES, MAX_BYTES + 2 * reader->decoder.total);
    return REE_OK;
}

// Presents the function's inputs and nodes as a graph.
static enum ree_status as_graph(struct ree_onnx_reader *reader, const struct ree_call *call,
                                Onnx__GraphProto *graph) {
    const Onnx__FunctionProto *proto = call->function->proto;
    struct ree_arena *scratch = &reader->scratch;
    onnx__graph_proto__init(graph);
    graph->n_input = proto->n_input;
    graph->input = ree_arena_alloc_array(scratch, proto->n_input, sizeof *graph->input);
    graph->n_node = proto->n_node;
    graph->node = proto->node;
    if (!graph->input) return ree_onnx_no_memory(reader);
    for (size_t i = 0; i < proto->n_input; i++) {
        graph->input[i] = ree_arena_alloc(scratch, sizeof **graph->input);
        if (!graph->input[i]) return ree_onnx_no_memory(reader);
        onnx__value_info_proto__init(graph->input[i]);
        graph->input[i]->name = proto->input[i];
    }
    return REE_OK;
}

// Appends an Identity for an output of the call that no node of the function can compute directly:
// an input that is passed through, or an output that is listed twice.
static enum ree_status hand_on(struct ree_onnx_reader *reader, struct ree_graph *graph,
                               const struct ree_function *function, struct ree_value *from,
                               struct ree_value *to) {
    struct ree_node *node = ree_arena_alloc(graph->arena, sizeof *node);
    if (!node) return ree_onnx_no_memory(reader);
    int64_t opset = ree_opset_find(function->opsets, function->n_opsets, "");
    *node = (struct ree_node){.name = "", .op_type = "Identity", .domain = ""};
    node->opset = opset ? opset : 1;
    node->n_inputs = node->n_outputs = 1;
    node->inputs = ree_arena_alloc_array(graph->arena, 1, sizeof *node->inputs);
    node->outputs = ree_arena_alloc_array(graph->arena, 1, sizeof *node->outputs);
    if (!node->inputs || !node->outputs) return ree_onnx_no_memory(reader);
    node->inputs[0] = from;
    node->outputs[0] = to;
    to->producer = node;
    return ree_onnx_append_node(reader, graph, node);
}

// Prefixes the names of the inlined nodes with the call's name.
static enum ree_status rename_nodes(struct ree_onnx_reader *reader, struct ree_graph *graph,
                                    size_t first, const struct ree_call *call) {
    const char *prefix = call->node->name[0] ? call->node->name : call->function->name;
    for (size_t i = first; i < graph->n_nodes; i++) {
        struct ree_node *node = graph->nodes[i];
        const char *name = node->name[0] ? node->name : node->op_type;
        char longer[MAX_PREFIX + 1 + MAX_NAME + 1];
        snprintf(longer, sizeof longer, "%.*s/%.*s", MAX_PREFIX, prefix, MAX_NAME, name);
        node->name = ree_arena_strdup(graph->arena, longer);
        if (!node->name) return ree_onnx_no_memory(reader);
    }
    return REE_OK;
}

enum ree_status ree_onnx_inline(struct ree_onnx_reader *reader, struct ree_graph *graph,
                                const struct ree_scope *scope, const struct ree_node *node,
                                const struct ree_function *function) {
    struct ree_call call = {.outer = scope->call,
                            .depth = scope->call ? scope->call->depth + 1 : 1,
                            .number = ++reader->n_calls,
                            .function = function,
                            .node = node};
    REE_TRY(check_call(reader, &call));
    Onnx__GraphProto body;
    REE_TRY(as_graph(reader, &call, &body));
    struct ree_scope inner;
    size_t first = graph->n_nodes;
    REE_TRY(ree_scope_init_call(reader, &body, graph, &call, &inner));
    REE_TRY(ree_onnx_read_nodes(reader, &body, graph, &inner));
    for (size_t i = 0; i < node->n_outputs; i++) {
        struct ree_value *to = node->outputs[i];
        if (!to || to->producer != node) continue; // computed by a node of the function
        const char *name = function->proto->output[i];
        struct ree_value *from = ree_scope_find(&inner, name);
        if (!from)
            return ree_fail(reader->err, REE_INVALID,
                            "output '%s' of the function '%s' is not computed by any of its nodes",
                            name, function->name);
        if (from == &ree_scope_omitted)
            return ree_fail(reader->err, REE_INVALID,
                            "output '%s' of the function '%s' is an input that the call omits",
                            name, function->name);
        REE_TRY(hand_on(reader, graph, function, from, to));
    }
    return rename_nodes(reader, graph, first, &call);
}
