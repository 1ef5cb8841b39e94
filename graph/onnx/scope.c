// The names of a graph's values. A lookup is a binary search: it takes log n steps, whatever names
// an untrusted file chooses.
#include "graph/onnx/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ree_value ree_scope_omitted;

static int compare_names(const void *a, const void *b) {
    const struct ree_name *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    if (order != 0) return order;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void add(struct ree_scope *scope, const char *name, enum ree_name_kind kind, size_t index) {
    scope->names[scope->n] = (struct ree_name){
        .name = name, .kind = kind, .index = (uint32_t)index, .order = (uint32_t)scope->n};
    scope->n++;
}

// Describes a definition for messages: "an output of node 'a' (Relu)".
static const char *describe(const struct ree_name *name, const Onnx__GraphProto *proto, char *out,
                            size_t size) {
    if (name->kind == REE_NAME_INPUT) return "an input of the graph";
    if (name->kind == REE_NAME_INITIALIZER) return "an initializer";
    const Onnx__NodeProto *node = proto->node[name->index];
    struct ree_node stand_in = {.name = ree_onnx_text(node->name),
                                .op_type = ree_onnx_text(node->op_type),
                                .id = name->index};
    char label[320];
    snprintf(out, size, "an output of %s", ree_node_label(&stand_in, label, sizeof label));
    return out;
}

static enum ree_status collect(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                               struct ree_scope *scope) {
    for (size_t i = 0; i < proto->n_input; i++) {
        const char *name = ree_onnx_text(proto->input[i]->name);
        if (!*name) return ree_fail(reader->err, REE_INVALID, "input #%zu has no name", i);
        add(scope, name, REE_NAME_INPUT, i);
    }
    for (size_t i = 0; i < proto->n_initializer; i++) {
        const char *name = ree_onnx_text(proto->initializer[i]->name);
        if (!*name) return ree_fail(reader->err, REE_INVALID, "initializer #%zu has no name", i);
        add(scope, name, REE_NAME_INITIALIZER, i);
    }
    for (size_t i = 0; i < proto->n_node; i++)
        for (size_t j = 0; j < proto->node[i]->n_output; j++)
            if (*proto->node[i]->output[j])
                add(scope, proto->node[i]->output[j], REE_NAME_OUTPUT, i);
    return REE_OK;
}

// Every name must be defined once, except that an initializer may be the default value of an input.
static enum ree_status check_unique(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                                    const struct ree_scope *scope) {
    for (size_t i = 1; i < scope->n; i++) {
        const struct ree_name *a = &scope->names[i - 1], *b = &scope->names[i];
        if (strcmp(a->name, b->name) != 0) continue;
        if (a->kind == REE_NAME_INPUT && b->kind == REE_NAME_INITIALIZER) continue;
        char first[400], second[400];
        return ree_fail(reader->err, REE_INVALID, "'%s' is defined twice: as %s and as %s", a->name,
                        describe(a, proto, first, sizeof first),
                        describe(b, proto, second, sizeof second));
    }
    return REE_OK;
}

// Adds a value of a function with a unique name: the name, '@' and the number of the call.
static struct ree_value *add_inner_value(struct ree_onnx_reader *reader, struct ree_graph *graph,
                                         const struct ree_call *call, const char *name) {
    size_t size = strlen(name) + 16;
    char *unique = ree_arena_alloc(&reader->scratch, size);
    if (!unique) return NULL;
    snprintf(unique, size, "%s@%u", name, call->number);
    return ree_graph_add_value(graph, unique);
}

// Returns the value for a name inside a called function: the call's input or output, or a new
// value.
static struct ree_value *value_in_call(struct ree_onnx_reader *reader, struct ree_graph *graph,
                                       const struct ree_call *call, const struct ree_name *name) {
    const Onnx__FunctionProto *function = call->function->proto;
    const struct ree_node *node = call->node;
    if (name->kind == REE_NAME_INPUT) {
        bool given = name->index < node->n_inputs && node->inputs[name->index];
        return given ? node->inputs[name->index] : &ree_scope_omitted;
    }
    for (size_t i = 0; i < node->n_outputs; i++)
        if (node->outputs[i] && strcmp(function->output[i], name->name) == 0)
            return node->outputs[i];
    return add_inner_value(reader, graph, call, name->name);
}

// Makes the values in the order of their definition, so that the graph does not depend on how names
// sort.
static enum ree_status make_values(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                                   struct ree_graph *graph, const struct ree_call *call,
                                   struct ree_scope *scope) {
    struct ree_name **ordered = ree_arena_alloc_array(&reader->scratch, scope->n, sizeof *ordered);
    if (!ordered) return ree_onnx_no_memory(reader);
    for (size_t i = 0; i < scope->n; i++)
        ordered[scope->names[i].order] = &scope->names[i];
    size_t at = 0;
    for (size_t i = 0; i < scope->n; i++) {
        struct ree_name *name = ordered[i];
        // If an initializer has an input of the same name, the sorted array has the input directly
        // before it.
        bool is_default = name->kind == REE_NAME_INITIALIZER && name > scope->names &&
                          strcmp(name[-1].name, name->name) == 0;
        if (call)
            name->value = value_in_call(reader, graph, call, name);
        else
            name->value = is_default ? name[-1].value : ree_graph_add_value(graph, name->name);
        if (!name->value) return ree_onnx_no_memory(reader);
        if (name->kind == REE_NAME_INITIALIZER) scope->initializers[name->index] = name->value;
        if (name->kind == REE_NAME_INPUT && !call) {
            name->value->is_input = true;
            graph->inputs[graph->n_inputs++] = name->value;
        }
    }
    size_t first_output = proto->n_input + proto->n_initializer;
    for (size_t i = 0, slot = 0; i < proto->n_node; i++)
        for (size_t j = 0; j < proto->node[i]->n_output; j++, slot++)
            if (*proto->node[i]->output[j])
                scope->outputs[slot] = ordered[first_output + at++]->value;
    return REE_OK;
}

static enum ree_status init(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                            struct ree_graph *graph, const struct ree_call *call,
                            struct ree_scope *scope) {
    size_t n_outputs = 0;
    for (size_t i = 0; i < proto->n_node; i++)
        n_outputs += proto->node[i]->n_output;
    size_t n = proto->n_input + proto->n_initializer + n_outputs;
    scope->names = ree_arena_alloc_array(&reader->scratch, n, sizeof *scope->names);
    scope->initializers =
        ree_arena_alloc_array(&reader->scratch, proto->n_initializer, sizeof *scope->initializers);
    scope->outputs = ree_arena_alloc_array(&reader->scratch, n_outputs, sizeof *scope->outputs);
    if (!scope->names || !scope->initializers || !scope->outputs) return ree_onnx_no_memory(reader);
    REE_TRY(collect(reader, proto, scope));
    qsort(scope->names, scope->n, sizeof *scope->names, compare_names);
    REE_TRY(check_unique(reader, proto, scope));
    return make_values(reader, proto, graph, call, scope);
}

enum ree_status ree_scope_init(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                               struct ree_graph *graph, const struct ree_scope *outer,
                               struct ree_scope *scope) {
    *scope = (struct ree_scope){.outer = outer, .call = outer ? outer->call : NULL};
    graph->inputs = ree_arena_alloc_array(graph->arena, proto->n_input, sizeof *graph->inputs);
    if (!graph->inputs) return ree_onnx_no_memory(reader);
    return init(reader, proto, graph, NULL, scope);
}

enum ree_status ree_scope_init_call(struct ree_onnx_reader *reader, const Onnx__GraphProto *proto,
                                    struct ree_graph *graph, const struct ree_call *call,
                                    struct ree_scope *scope) {
    *scope = (struct ree_scope){.call = call};
    return init(reader, proto, graph, call, scope);
}

struct ree_value *ree_scope_find(const struct ree_scope *scope, const char *name) {
    for (; scope; scope = scope->outer) {
        size_t low = 0, high = scope->n;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            int order = strcmp(scope->names[middle].name, name);
            if (order == 0) return scope->names[middle].value;
            if (order < 0)
                low = middle + 1;
            else
                high = middle;
        }
    }
    return NULL;
}
