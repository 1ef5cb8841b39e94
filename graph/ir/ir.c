#include "graph/ir/ir.h"

#include "base/memory.h"
#include "graph/ir/mapping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ree_graph *ree_graph_create(void) {
    struct ree_graph *graph = ree_alloc_zeroed(1, sizeof *graph);
    if (!graph) return NULL;
    ree_arena_init(&graph->own_arena);
    graph->arena = &graph->own_arena;
    graph->name = graph->file = "";
    return graph;
}

void ree_graph_destroy(struct ree_graph *graph) {
    if (!graph) return;
    ree_mappings_destroy(&graph->mappings);
    ree_arena_finish(&graph->own_arena);
    ree_free(graph);
}

struct ree_graph *ree_graph_add_subgraph(struct ree_graph *parent) {
    struct ree_graph *graph = ree_arena_alloc(parent->arena, sizeof *graph);
    if (!graph) return NULL;
    graph->arena = parent->arena;
    graph->name = "";
    graph->file = parent->file;
    graph->ir_version = parent->ir_version;
    graph->n_opsets = parent->n_opsets;
    graph->opsets = parent->opsets;
    graph->parent = parent;
    return graph;
}

struct ree_value *ree_graph_add_value(struct ree_graph *graph, const char *name) {
    if (graph->n_values == graph->values_capacity) {
        size_t capacity = graph->values_capacity ? graph->values_capacity * 2 : 64;
        struct ree_value **values =
            ree_arena_alloc_array(graph->arena, capacity, sizeof *graph->values);
        if (!values) return NULL;
        if (graph->n_values) memcpy(values, graph->values, graph->n_values * sizeof *values);
        graph->values = values;
        graph->values_capacity = capacity;
    }
    struct ree_value *value = ree_arena_alloc(graph->arena, sizeof *value);
    if (!value) return NULL;
    value->name = ree_arena_strdup(graph->arena, name);
    if (!value->name) return NULL;
    value->graph = graph;
    value->id = (uint32_t)graph->n_values;
    graph->values[graph->n_values++] = value;
    return value;
}

int64_t ree_opset_find(const struct ree_opset_import *imports, size_t n, const char *domain) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(imports[i].domain, domain) == 0) return imports[i].version;
    return 0;
}

int64_t ree_graph_opset(const struct ree_graph *graph, const char *domain) {
    if (strcmp(domain, "ai.onnx") == 0) domain = "";
    return ree_opset_find(graph->opsets, graph->n_opsets, domain);
}

// Recursion is as deep as subgraphs are nested; the reader limits the nesting.
void ree_node_visit_uses(struct ree_node *node, void (*visit)(void *user, struct ree_value **use),
                         void *user) {
    for (size_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i]) visit(user, &node->inputs[i]);
    for (size_t i = 0; i < node->n_attrs; i++) {
        struct ree_graph *sub = node->attrs[i].graph;
        if (!sub) continue;
        for (size_t j = 0; j < sub->n_nodes; j++)
            ree_node_visit_uses(sub->nodes[j], visit, user);
        for (size_t j = 0; j < sub->n_outputs; j++)
            visit(user, &sub->outputs[j]);
    }
}

static uint32_t number_from(struct ree_graph *graph, uint32_t next) {
    for (size_t i = 0; i < graph->n_values; i++)
        graph->values[i]->number = next++;
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (size_t j = 0; j < graph->nodes[i]->n_attrs; j++)
            if (graph->nodes[i]->attrs[j].graph)
                next = number_from(graph->nodes[i]->attrs[j].graph, next);
    return next;
}

uint32_t ree_graph_number(struct ree_graph *graph) {
    return number_from(graph, 0);
}

static void clear_uses(struct ree_graph *graph) {
    for (size_t i = 0; i < graph->n_values; i++)
        graph->values[i]->n_uses = 0;
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (size_t j = 0; j < graph->nodes[i]->n_attrs; j++)
            if (graph->nodes[i]->attrs[j].graph) clear_uses(graph->nodes[i]->attrs[j].graph);
}

static void count_use(void *user, struct ree_value **use) {
    (void)user;
    (*use)->n_uses++;
}

void ree_graph_count_uses(struct ree_graph *graph) {
    clear_uses(graph);
    for (size_t i = 0; i < graph->n_nodes; i++)
        ree_node_visit_uses(graph->nodes[i], count_use, NULL);
    for (size_t i = 0; i < graph->n_outputs; i++)
        graph->outputs[i]->n_uses++;
}

const struct ree_attr *ree_node_attr(const struct ree_node *node, const char *name) {
    for (size_t i = 0; i < node->n_attrs; i++)
        if (strcmp(node->attrs[i].name, name) == 0) return &node->attrs[i];
    return NULL;
}

bool ree_node_is_random(const struct ree_node *node) {
    static const char *const ops[] = {
        "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
        "Multinomial",  "Bernoulli",        "Dropout",
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(node->op_type, ops[i]) == 0) return true;
    return false;
}

const char *ree_node_random_name(const struct ree_node *node) {
    const bool has_mode = node->n_inputs > 2 && node->inputs[2];
    const bool is_idle = strcmp(node->op_type, "Dropout") == 0 && !has_mode;
    if (!ree_node_is_random(node) || is_idle || node->domain[0] || ree_node_attr(node, "seed"))
        return NULL;
    for (size_t i = 0; i < node->n_outputs; i++)
        if (node->outputs[i]) return node->outputs[i]->name;
    return "";
}

static const struct ree_attr *attr_of_kind(const struct ree_node *node, const char *name,
                                           enum ree_attr_kind kind) {
    const struct ree_attr *attr = ree_node_attr(node, name);
    return attr && attr->kind == kind ? attr : NULL;
}

const char *ree_attr_kind_name(enum ree_attr_kind kind) {
    switch (kind) {
    case REE_ATTR_INT: return "an integer";
    case REE_ATTR_FLOAT: return "a float";
    case REE_ATTR_STRING: return "a string";
    case REE_ATTR_TENSOR: return "a tensor";
    case REE_ATTR_GRAPH: return "a graph";
    case REE_ATTR_INTS: return "a list of integers";
    case REE_ATTR_FLOATS: return "a list of floats";
    case REE_ATTR_STRINGS: return "a list of strings";
    case REE_ATTR_TYPE: return "a type";
    }
    return "unknown";
}

int64_t ree_node_int(const struct ree_node *node, const char *name, int64_t fallback) {
    const struct ree_attr *attr = attr_of_kind(node, name, REE_ATTR_INT);
    return attr ? attr->i : fallback;
}

float ree_node_float(const struct ree_node *node, const char *name, float fallback) {
    const struct ree_attr *attr = attr_of_kind(node, name, REE_ATTR_FLOAT);
    return attr ? attr->f : fallback;
}

const char *ree_node_string(const struct ree_node *node, const char *name, const char *fallback) {
    const struct ree_attr *attr = attr_of_kind(node, name, REE_ATTR_STRING);
    return attr ? attr->s : fallback;
}

const int64_t *ree_node_ints(const struct ree_node *node, const char *name, size_t *out_n) {
    const struct ree_attr *attr = attr_of_kind(node, name, REE_ATTR_INTS);
    *out_n = attr ? attr->n : 0;
    return attr ? attr->ints : NULL;
}

const float *ree_node_floats(const struct ree_node *node, const char *name, size_t *out_n) {
    const struct ree_attr *attr = attr_of_kind(node, name, REE_ATTR_FLOATS);
    *out_n = attr ? attr->n : 0;
    return attr ? attr->floats : NULL;
}

const char *ree_node_label(const struct ree_node *node, char *out, size_t size) {
    if (node->name[0])
        snprintf(out, size, "node '%.*s' (%.64s)", 200, node->name, node->op_type);
    else
        snprintf(out, size, "node #%u (%.64s)", node->id, node->op_type);
    return out;
}

static bool is_known_type(enum ree_dtype dtype) {
    return dtype == REE_DTYPE_NONE || ree_dtype_size(dtype) != 0;
}

struct support_check {
    const struct ree_node *node;
    struct ree_error *err;
    enum ree_status status;
};

static void check_use(void *user, struct ree_value **use) {
    struct support_check *check = user;
    const struct ree_value *value = *use;
    if (check->status != REE_OK || value->producer) return;
    if (is_known_type(value->dtype)) return;
    char label[320];
    check->status =
        ree_fail(check->err, REE_UNSUPPORTED, "%s: '%s' has type %s, which is not supported",
                 ree_node_label(check->node, label, sizeof label), value->name,
                 ree_onnx_type_name(value->dtype));
}

enum ree_status ree_graph_check_supported(const struct ree_graph *graph, struct ree_error *err) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct support_check check = {graph->nodes[i], err, REE_OK};
        ree_node_visit_uses(graph->nodes[i], check_use, &check);
        REE_TRY(check.status);
    }
    for (size_t i = 0; i < graph->n_outputs; i++) {
        const struct ree_value *value = graph->outputs[i];
        if (!is_known_type(value->dtype))
            return ree_fail(err, REE_UNSUPPORTED, "output '%s' has type %s, which is not supported",
                            value->name, ree_onnx_type_name(value->dtype));
    }
    return REE_OK;
}

const char *ree_onnx_type_name(int64_t data_type) {
    switch (data_type) {
    case 1: return "float32";
    case 2: return "uint8";
    case 3: return "int8";
    case 4: return "uint16";
    case 5: return "int16";
    case 6: return "int32";
    case 7: return "int64";
    case 8: return "string";
    case 9: return "bool";
    case 10: return "float16";
    case 11: return "float64";
    case 12: return "uint32";
    case 13: return "uint64";
    case 14: return "complex64";
    case 15: return "complex128";
    case 16: return "bfloat16";
    case 17: return "float8e4m3fn";
    case 18: return "float8e4m3fnuz";
    case 19: return "float8e5m2";
    case 20: return "float8e5m2fnuz";
    case 21: return "uint4";
    case 22: return "int4";
    case 23: return "float4e2m1";
    case 24: return "float8e8m0";
    case 25: return "uint2";
    case 26: return "int2";
    default: return "unknown type";
    }
}
