#include "graph/onnx/reader.h"

#include <string.h>

// Maximum nesting of subgraphs. The code below, the passes and lowering recurse into them.
#define MAX_DEPTH 64

const char *ree_onnx_domain(const char *domain) {
    domain = ree_onnx_text(domain);
    return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

static void copy_type(struct ree_value *to, const struct ree_value *from) {
    to->kind = from->kind;
    to->nullable = from->nullable;
    to->dtype = from->dtype;
    to->has_shape = from->has_shape;
    to->rank = from->rank;
    memcpy(to->dims, from->dims, sizeof to->dims);
    memcpy(to->symbols, from->symbols, sizeof to->symbols);
}

static enum ree_status read_inputs(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                                   struct ree_graph *graph) {
    for (size_t i = 0; i < proto->n_input; i++) {
        struct ree_value *value = graph->inputs[i];
        const Onnx__TypeProto *type = proto->input[i]->type;
        if (type && ree_onnx_read_type(reader, type, value) != REE_OK)
            return ree_fail_prefix(reader->err, "input '%s'", value->name);
    }
    return REE_OK;
}

// Returns whether the type of a default value agrees with the type that its input declares.
static bool types_agree(const struct ree_value *input, const struct ree_value *tensor) {
    if (input->kind != REE_TENSOR) return false;
    if (input->dtype && input->dtype != tensor->dtype) return false;
    if (!input->has_shape) return true;
    if (input->rank != tensor->rank) return false;
    for (uint32_t i = 0; i < input->rank; i++)
        if (input->dims[i] >= 0 && input->dims[i] != tensor->dims[i]) return false;
    return true;
}

static enum ree_status read_initializer(struct ree_onnx_reader *reader,
                                        const Onnx__TensorProto *proto, struct ree_value *value) {
    struct ree_value tensor = {0};
    REE_TRY(ree_onnx_read_tensor(reader, proto, &tensor));
    if (value->is_input) {
        if (!types_agree(value, &tensor)) {
            char declared[160], actual[160];
            return ree_fail(reader->err, REE_INVALID,
                            "is the default of an input of type %s, but has type %s",
                            ree_onnx_type_text(value, declared, sizeof declared),
                            ree_onnx_type_text(&tensor, actual, sizeof actual));
        }
        // A shape that the input declares is kept: the caller may pass other sizes than the
        // default's in its variable dimensions.
        if (!value->has_shape) copy_type(value, &tensor);
        value->dtype = tensor.dtype;
    } else {
        copy_type(value, &tensor);
    }
    value->data = tensor.data;
    value->nbytes = tensor.nbytes;
    return REE_OK;
}

static enum ree_status read_initializers(struct ree_onnx_reader *reader,
                                         const Onnx__GraphProto *proto,
                                         const struct ree_scope *scope) {
    for (size_t i = 0; i < proto->n_initializer; i++) {
        struct ree_value *value = scope->initializers[i];
        if (read_initializer(reader, proto->initializer[i], value) != REE_OK)
            return ree_fail_prefix(reader->err, "initializer '%s'", value->name);
    }
    return REE_OK;
}

// Creates the nodes with their names and outputs, so that every node can be referred to before its
// inputs are known.
static enum ree_status make_nodes(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                                  struct ree_graph *graph, const struct ree_scope *scope,
                                  struct ree_node **nodes) {
    size_t slot = 0;
    for (size_t i = 0; i < proto->n_node; i++) {
        const Onnx__NodeProto *from = proto->node[i];
        struct ree_node *node = ree_arena_alloc(graph->arena, sizeof *node);
        if (!node) return ree_onnx_no_memory(reader);
        node->id = (uint32_t)i;
        node->name = ree_arena_strdup(graph->arena, ree_onnx_text(from->name));
        node->op_type = ree_arena_strdup(graph->arena, ree_onnx_text(from->op_type));
        node->domain = ree_arena_strdup(graph->arena, ree_onnx_domain(from->domain));
        node->n_outputs = from->n_output;
        node->outputs = ree_arena_alloc_array(graph->arena, from->n_output, sizeof *node->outputs);
        if (!node->name || !node->op_type || !node->domain || !node->outputs)
            return ree_onnx_no_memory(reader);
        for (size_t j = 0; j < from->n_output; j++) {
            node->outputs[j] = scope->outputs[slot++];
            if (node->outputs[j]) node->outputs[j]->producer = node;
        }
        nodes[i] = node;
    }
    return REE_OK;
}

// Exporters add kilobytes of their own notes to each node, such as stack traces. Only these keys
// are kept.
static bool is_known_note(const Onnx__StringStringEntryProto *entry) {
    const char *key = ree_onnx_text(entry->key);
    return strcmp(key, "pipeline_stage") == 0 || strncmp(key, "ree.", 4) == 0;
}

// Most nodes have no notes; for them this costs only a pointer.
static enum ree_status read_notes(struct ree_onnx_reader *reader, const Onnx__NodeProto *proto,
                                  const struct ree_scope *scope, struct ree_node *node) {
    if (scope->call) node->notes = scope->call->node->notes;
    struct ree_node_notes found = {0};
    for (size_t i = 0; i < proto->n_device_configurations && !found.has_stage; i++) {
        const Onnx__NodeDeviceConfigurationProto *device = proto->device_configurations[i];
        found.has_stage = device->has_pipeline_stage;
        found.stage = device->pipeline_stage;
    }
    for (size_t i = 0; i < proto->n_metadata_props; i++)
        found.n_metadata += is_known_note(proto->metadata_props[i]);
    if (!found.has_stage && !found.n_metadata) return REE_OK;
    struct ree_node_notes *notes = ree_arena_alloc(reader->arena, sizeof *notes);
    Onnx__StringStringEntryProto **known =
        ree_arena_alloc_array(&reader->scratch, found.n_metadata, sizeof *known);
    if (!notes || !known) return ree_onnx_no_memory(reader);
    size_t n = 0;
    for (size_t i = 0; i < proto->n_metadata_props; i++)
        if (is_known_note(proto->metadata_props[i])) known[n++] = proto->metadata_props[i];
    *notes = found;
    node->notes = notes;
    return ree_onnx_read_metadata(reader, n, known, &notes->metadata, &notes->n_metadata);
}

static enum ree_status read_node(struct ree_onnx_reader *reader, const Onnx__NodeProto *proto,
                                 struct ree_graph *graph, const struct ree_scope *scope,
                                 struct ree_node *node) {
    if (!node->op_type[0]) return ree_fail(reader->err, REE_INVALID, "has no operator type");
    const struct ree_function *function = scope->call ? scope->call->function : NULL;
    node->opset = function ? ree_opset_find(function->opsets, function->n_opsets, node->domain)
                           : ree_graph_opset(graph, node->domain);
    if (node->opset == 0)
        return ree_fail(reader->err, REE_INVALID,
                        "belongs to the operator set '%s', which the %s does not import",
                        node->domain[0] ? node->domain : "ai.onnx",
                        function ? "function" : "model");
    REE_TRY(read_notes(reader, proto, scope, node));
    node->n_inputs = proto->n_input;
    node->inputs = ree_arena_alloc_array(graph->arena, proto->n_input, sizeof *node->inputs);
    if (!node->inputs) return ree_onnx_no_memory(reader);
    for (size_t i = 0; i < proto->n_input; i++) {
        if (!*proto->input[i]) continue;
        node->inputs[i] = ree_scope_find(scope, proto->input[i]);
        if (!node->inputs[i])
            return ree_fail(reader->err, REE_INVALID,
                            "input '%s' is neither the output of a node nor an input of the graph "
                            "nor an initializer",
                            proto->input[i]);
        if (node->inputs[i] == &ree_scope_omitted) node->inputs[i] = NULL;
    }
    return ree_onnx_read_attributes(reader, proto, graph, scope, node);
}

enum ree_status ree_onnx_append_node(struct ree_onnx_reader *reader, struct ree_graph *graph,
                                     struct ree_node *node) {
    if (graph->n_nodes == graph->nodes_capacity) {
        size_t capacity = graph->nodes_capacity ? 2 * graph->nodes_capacity : 16;
        struct ree_node **grown = ree_arena_alloc_array(graph->arena, capacity, sizeof *grown);
        if (!grown) return ree_onnx_no_memory(reader);
        if (graph->n_nodes) memcpy(grown, graph->nodes, graph->n_nodes * sizeof *grown);
        graph->nodes = grown;
        graph->nodes_capacity = capacity;
    }
    graph->nodes[graph->n_nodes++] = node;
    return REE_OK;
}

enum ree_status ree_onnx_read_nodes(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                                    struct ree_graph *graph, const struct ree_scope *scope) {
    struct ree_node **nodes = ree_arena_alloc_array(&reader->scratch, proto->n_node, sizeof *nodes);
    if (!nodes) return ree_onnx_no_memory(reader);
    REE_TRY(make_nodes(reader, proto, graph, scope, nodes));
    for (size_t i = 0; i < proto->n_node; i++) {
        const struct ree_function *function = ree_onnx_find_function(reader, proto->node[i]);
        enum ree_status status = read_node(reader, proto->node[i], graph, scope, nodes[i]);
        if (status == REE_OK)
            status = function ? ree_onnx_inline(reader, graph, scope, nodes[i], function)
                              : ree_onnx_append_node(reader, graph, nodes[i]);
        char label[320];
        if (status == REE_OK) continue;
        // If calls are nested deeply, only the innermost calls and the outermost one are named.
        if (scope->call && strlen(reader->err->message) < REE_ERROR_MAX / 2)
            ree_fail_prefix(reader->err, "%s", ree_node_label(nodes[i], label, sizeof label));
        if (!scope->call)
            return ree_fail_prefix(reader->err, "%s",
                                   ree_node_label(nodes[i], label, sizeof label));
        return status;
    }
    return REE_OK;
}

static enum ree_status read_output(struct ree_onnx_reader *reader,
                                   const Onnx__ValueInfoProto *proto, struct ree_graph *graph,
                                   const struct ree_scope *scope) {
    struct ree_value *value = ree_scope_find(scope, proto->name);
    if (!value)
        return ree_fail(reader->err, REE_INVALID,
                        "is neither the output of a node nor an input of the graph nor an "
                        "initializer");
    if (value == &ree_scope_omitted)
        return ree_fail(reader->err, REE_INVALID, "is an input that the call omits");
    graph->outputs[graph->n_outputs++] = value;
    struct ree_value declared = {0};
    if (proto->type) REE_TRY(ree_onnx_read_type(reader, proto->type, &declared));
    // A subgraph may return a value of an enclosing graph. That value is not marked as an output,
    // because it is not an output of its own graph.
    if (value->graph != graph) return REE_OK;
    if (value->is_output) return ree_fail(reader->err, REE_INVALID, "is listed twice");
    value->is_output = true;
    if (value->producer) copy_type(value, &declared);
    if (!value->producer && value->dtype && declared.dtype && value->dtype != declared.dtype)
        return ree_fail(reader->err, REE_INVALID, "is declared as %s, but is %s",
                        ree_onnx_type_name(declared.dtype), ree_onnx_type_name(value->dtype));
    return REE_OK;
}

static enum ree_status read_outputs(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                                    struct ree_graph *graph, const struct ree_scope *scope) {
    graph->outputs = ree_arena_alloc_array(graph->arena, proto->n_output, sizeof *graph->outputs);
    if (!graph->outputs) return ree_onnx_no_memory(reader);
    for (size_t i = 0; i < proto->n_output; i++) {
        const char *name = ree_onnx_text(proto->output[i]->name);
        if (!*name) return ree_fail(reader->err, REE_INVALID, "output #%zu has no name", i);
        if (read_output(reader, proto->output[i], graph, scope) != REE_OK)
            return ree_fail_prefix(reader->err, "output '%s'", name);
    }
    return REE_OK;
}

// Reads the types that the model declares for intermediate values. They are hints: a hint that
// cannot be used (a sequence, rank 9) is ignored, because it matters only if something needs that
// value.
static void read_value_info(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                            struct ree_graph *graph, const struct ree_scope *scope) {
    for (size_t i = 0; i < proto->n_value_info; i++) {
        const Onnx__ValueInfoProto *info = proto->value_info[i];
        struct ree_value *value =
            info->type ? ree_scope_find(scope, ree_onnx_text(info->name)) : NULL;
        if (!value || value->graph != graph || !value->producer || value->dtype) continue;
        struct ree_value declared = {0};
        if (ree_onnx_read_type(reader, info->type, &declared) == REE_OK)
            copy_type(value, &declared);
    }
}

static enum ree_status keep_output_types(struct ree_onnx_reader *reader, struct ree_graph *graph) {
    struct ree_value *types =
        ree_arena_alloc_array(graph->arena, graph->n_outputs + 1, sizeof *types);
    if (!types) return ree_onnx_no_memory(reader);
    for (size_t i = 0; i < graph->n_outputs; i++)
        if (graph->outputs[i]->graph == graph) copy_type(&types[i], graph->outputs[i]);
    graph->output_types = types;
    return REE_OK;
}

enum ree_status ree_onnx_read_graph(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                                    struct ree_graph *graph, const struct ree_scope *outer) {
    if (proto->n_sparse_initializer) {
        const Onnx__TensorProto *values = proto->sparse_initializer[0]->values;
        return ree_fail(reader->err, REE_UNSUPPORTED,
                        "sparse initializer '%s': sparse tensors are not supported",
                        values ? ree_onnx_text(values->name) : "");
    }
    int depth = 0;
    for (const struct ree_graph *g = graph->parent; g; g = g->parent)
        if (++depth > MAX_DEPTH)
            return ree_fail(reader->err, REE_UNSUPPORTED, "subgraphs are nested more than %d deep",
                            MAX_DEPTH);
    graph->name = ree_arena_strdup(graph->arena, ree_onnx_text(proto->name));
    if (!graph->name) return ree_onnx_no_memory(reader);
    struct ree_scope scope;
    REE_TRY(ree_scope_init(reader, proto, graph, outer, &scope));
    REE_TRY(read_inputs(reader, proto, graph));
    REE_TRY(read_initializers(reader, proto, &scope));
    REE_TRY(ree_onnx_read_nodes(reader, proto, graph, &scope));
    REE_TRY(read_outputs(reader, proto, graph, &scope));
    read_value_info(reader, proto, graph, &scope);
    if (graph->parent) REE_TRY(keep_output_types(reader, graph));
    for (size_t i = 0; i < graph->n_nodes; i++)
        graph->nodes[i]->id = (uint32_t)i;
    return ree_onnx_order_nodes(reader, graph);
}
