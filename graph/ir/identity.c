// Encodes the graph as bytes: the same bytes for the same graph, whatever the layout of the file.
//
// Values are numbered in the order of their definition, and nodes refer to them by number. Only
// inputs, constants and outputs are encoded with their names, and random nodes without a seed with
// the name that is their seed. Other names are left out, because ree generates the names of values
// inside function calls, and a file could contain the same names.
#include "graph/ir/identity.h"

#include <stdlib.h>
#include <string.h>
#include "base/memory.h"

#define NONE UINT32_MAX // an omitted input or output; an undeclared shape

// Numbers from ONNX's AttributeProto.AttributeType.
static const uint32_t kind_numbers[] = {
    [REE_ATTR_FLOAT] = 1,  [REE_ATTR_INT] = 2,     [REE_ATTR_STRING] = 3,
    [REE_ATTR_TENSOR] = 4, [REE_ATTR_GRAPH] = 5,   [REE_ATTR_FLOATS] = 6,
    [REE_ATTR_INTS] = 7,   [REE_ATTR_STRINGS] = 8, [REE_ATTR_TYPE] = 13,
};

struct encoder {
    struct ree_identity *out;
    struct ree_strbuf bytes;
    uint32_t n_values;
    size_t holes_capacity, weights_capacity;
    size_t n_defaults, defaults_capacity;
    uint32_t *defaults; // (n_defaults) numbers of the inputs that have default values
    bool failed;        // memory was exhausted
};

static void put(struct encoder *e, const void *bytes, size_t n) {
    if (n) ree_strbuf_append(&e->bytes, bytes, n);
}

static void put_u32(struct encoder *e, size_t value) {
    uint32_t v = (uint32_t)value;
    put(e, &v, sizeof v);
}

static void put_i64(struct encoder *e, int64_t value) {
    put(e, &value, sizeof value);
}

static void put_bytes(struct encoder *e, const char *s, size_t n) {
    put_u32(e, n);
    put(e, s, n);
}

static void put_string(struct encoder *e, const char *s) {
    put_bytes(e, s, strlen(s));
}

static void put_type(struct encoder *e, const struct ree_value *v) {
    put_u32(e, v->kind);
    put_u32(e, v->nullable);
    put_u32(e, v->dtype);
    put_u32(e, v->has_shape ? v->rank : NONE);
    for (uint32_t i = 0; v->has_shape && i < v->rank; i++) {
        put_i64(e, v->dims[i]);
        put_string(e, v->symbols[i] ? v->symbols[i] : "");
    }
}

static struct ree_constant constant_of(const struct ree_value *v) {
    struct ree_constant c = {v->name, v->dtype, v->rank, {0}, v->data, v->nbytes};
    memcpy(c.dims, v->dims, v->rank * sizeof *c.dims);
    return c;
}

// Returns `array`, which has *capacity elements of `size` bytes, or a larger reallocation of it
// with capacity for element n. NULL when memory is exhausted; the array is then unchanged.
static void *grow(struct encoder *e, void *array, size_t n, size_t *capacity, size_t size) {
    if (n < *capacity) return array;
    size_t wanted = *capacity ? 2 * *capacity : 64;
    void *grown = ree_realloc(array, wanted * size);
    if (grown)
        *capacity = wanted;
    else
        e->failed = true;
    return grown;
}

static void note_default(struct encoder *e, const struct ree_value *input) {
    void *defaults =
        grow(e, e->defaults, e->n_defaults, &e->defaults_capacity, sizeof *e->defaults);
    if (!defaults) return;
    e->defaults = defaults;
    e->defaults[e->n_defaults++] = input->number;
}

// Before IR version 4, an initializer that is also an input is a constant. Since then, it is the
// default value of an input. The encoding of the graph is the same, so the inputs with default
// values are listed after it.
static void put_defaults(struct encoder *e) {
    e->out->n_bytes_version_1 = e->bytes.size;
    if (!e->n_defaults) return;
    put_u32(e, e->n_defaults);
    for (size_t i = 0; i < e->n_defaults; i++)
        put_u32(e, e->defaults[i]);
}

static void put_tensor(struct encoder *e, const struct ree_value *tensor) {
    static const unsigned char missing[32];
    struct ree_identity *out = e->out;
    size_t capacity = e->holes_capacity;
    void *attributes = grow(e, out->attributes, out->n_holes, &capacity, sizeof *out->attributes);
    if (!attributes) return;
    out->attributes = attributes;
    void *holes = grow(e, out->holes, out->n_holes, &e->holes_capacity, sizeof *out->holes);
    if (!holes) return;
    out->holes = holes;
    out->attributes[out->n_holes] = constant_of(tensor);
    out->holes[out->n_holes++] = e->bytes.size;
    put(e, missing, sizeof missing);
}

static void put_graph(struct encoder *e, struct ree_graph *graph);

static void put_attribute(struct encoder *e, const struct ree_attr *a) {
    put_string(e, a->name);
    put_u32(e, kind_numbers[a->kind]);
    switch (a->kind) {
    case REE_ATTR_FLOAT: put(e, &a->f, sizeof a->f); break;
    case REE_ATTR_INT: put_i64(e, a->i); break;
    case REE_ATTR_STRING: put_bytes(e, a->s, a->s_size); break;
    case REE_ATTR_TENSOR: put_tensor(e, a->tensor); break;
    case REE_ATTR_GRAPH: put_graph(e, a->graph); break;
    case REE_ATTR_FLOATS:
        put_u32(e, a->n);
        put(e, a->floats, a->n * sizeof *a->floats);
        break;
    case REE_ATTR_INTS:
        put_u32(e, a->n);
        put(e, a->ints, a->n * sizeof *a->ints);
        break;
    case REE_ATTR_STRINGS:
        put_u32(e, a->n);
        for (size_t i = 0; i < a->n; i++)
            put_string(e, a->strings[i]);
        break;
    case REE_ATTR_TYPE: put_type(e, a->tensor); break;
    }
}

static int by_attribute_name(const void *a, const void *b) {
    const struct ree_attr *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

// Encodes the attributes sorted by name, because a file may list them in any order.
static void put_attributes(struct encoder *e, const struct ree_node *node) {
    const struct ree_attr **sorted = ree_alloc_zeroed(node->n_attrs + 1, sizeof(struct ree_attr *));
    if (!sorted) {
        e->failed = true;
        return;
    }
    for (size_t i = 0; i < node->n_attrs; i++)
        sorted[i] = &node->attrs[i];
    if (node->n_attrs) qsort(sorted, node->n_attrs, sizeof *sorted, by_attribute_name);
    put_u32(e, node->n_attrs);
    for (size_t i = 0; i < node->n_attrs; i++)
        put_attribute(e, sorted[i]);
    ree_free(sorted);
}

static void put_node(struct encoder *e, const struct ree_node *node) {
    put_string(e, node->domain);
    put_string(e, node->op_type);
    put_i64(e, node->opset);
    put_attributes(e, node);
    put_u32(e, node->n_inputs);
    for (size_t i = 0; i < node->n_inputs; i++)
        put_u32(e, node->inputs[i] ? node->inputs[i]->number : NONE);
    put_u32(e, node->n_outputs);
    for (size_t i = 0; i < node->n_outputs; i++) {
        if (node->outputs[i]) node->outputs[i]->number = e->n_values++;
        put_u32(e, node->outputs[i] ? node->outputs[i]->number : NONE);
    }
    const char *name = ree_node_random_name(node);
    if (name) put_string(e, name); // results depend on it
}

static int by_value_name(const void *a, const void *b) {
    const struct ree_value *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

// Encodes the initializers sorted by name, because a file may list them in any order. Initializers
// that are also inputs have their number already.
static void put_initializers(struct encoder *e, struct ree_graph *graph) {
    struct ree_value **found = ree_alloc_zeroed(graph->n_values + 1, sizeof(struct ree_value *));
    size_t n = 0;
    if (!found) {
        e->failed = true;
        return;
    }
    for (size_t i = 0; i < graph->n_values; i++) {
        struct ree_value *v = graph->values[i];
        if (!v->producer && (v->data || !v->is_input)) found[n++] = v;
    }
    if (n) qsort(found, n, sizeof *found, by_value_name);
    put_u32(e, n);
    for (size_t i = 0; i < n; i++) {
        struct ree_value *v = found[i];
        if (!v->is_input) v->number = e->n_values++;
        put_string(e, v->name);
        put_u32(e, v->number);
        put_u32(e, v->dtype);
        put_u32(e, v->rank);
        put(e, v->dims, v->rank * sizeof *v->dims);
        void *weights = grow(e, e->out->weights, e->out->n_weights, &e->weights_capacity,
                             sizeof *e->out->weights);
        if (!weights) break;
        e->out->weights = weights;
        e->out->weights[e->out->n_weights++] = constant_of(v);
    }
    ree_free(found);
}

// Recursion is as deep as subgraphs are nested; the reader limits the nesting.
static void put_graph(struct encoder *e, struct ree_graph *graph) {
    put_u32(e, graph->n_inputs);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        graph->inputs[i]->number = e->n_values++;
        put_string(e, graph->inputs[i]->name);
        put_type(e, graph->inputs[i]);
        if (graph->inputs[i]->data && graph->ir_version >= 4) note_default(e, graph->inputs[i]);
    }
    put_initializers(e, graph);
    put_u32(e, graph->n_nodes);
    for (size_t i = 0; i < graph->n_nodes; i++)
        put_node(e, graph->nodes[i]);
    put_u32(e, graph->n_outputs);
    for (size_t i = 0; i < graph->n_outputs; i++) {
        put_string(e, graph->outputs[i]->name);
        put_u32(e, graph->outputs[i]->number);
        put_type(e, graph->outputs[i]);
    }
}

static int by_domain(const void *a, const void *b) {
    const struct ree_opset_import *x = a, *y = b;
    return strcmp(x->domain, y->domain);
}

static void put_opsets(struct encoder *e, const struct ree_graph *graph) {
    size_t n = graph->n_opsets;
    struct ree_opset_import *sorted = ree_alloc_zeroed(n + 1, sizeof *sorted);
    if (!sorted) {
        e->failed = true;
        return;
    }
    if (n) {
        memcpy(sorted, graph->opsets, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, by_domain);
    }
    put_u32(e, n);
    for (size_t i = 0; i < n; i++) {
        put_string(e, sorted[i].domain);
        put_i64(e, sorted[i].version);
    }
    ree_free(sorted);
}

struct place {
    struct ree_constant constant;
    size_t order;
};

static int by_name_and_order(const void *a, const void *b) {
    const struct place *x = a, *y = b;
    int order = strcmp(x->constant.name, y->constant.name);
    return order ? order : x->order < y->order ? -1 : 1;
}

// Several subgraphs may use the same name; equal names keep the order in which the graph has them.
static void sort_weights(struct encoder *e) {
    struct ree_identity *out = e->out;
    struct place *places = ree_alloc_zeroed(out->n_weights + 1, sizeof *places);
    if (!places) {
        e->failed = true;
        return;
    }
    for (size_t i = 0; i < out->n_weights; i++)
        places[i] = (struct place){out->weights[i], i};
    if (out->n_weights) qsort(places, out->n_weights, sizeof *places, by_name_and_order);
    for (size_t i = 0; i < out->n_weights; i++)
        out->weights[i] = places[i].constant;
    ree_free(places);
}

enum ree_status ree_identity_init(struct ree_identity *identity, struct ree_graph *graph,
                                  struct ree_error *err) {
    *identity = (struct ree_identity){0};
    struct encoder e = {.out = identity};
    ree_strbuf_init(&e.bytes);
    // A hand-made graph may use a value that nothing defines. Its number stays NONE.
    for (size_t i = 0; i < graph->n_values; i++)
        graph->values[i]->number = NONE;
    put_opsets(&e, graph);
    put_graph(&e, graph);
    put_defaults(&e);
    sort_weights(&e);
    ree_free(e.defaults);
    if (e.failed || e.bytes.failed) {
        ree_strbuf_finish(&e.bytes);
        ree_identity_finish(identity);
        return ree_no_memory(err);
    }
    identity->n_bytes = e.bytes.size;
    identity->bytes = (unsigned char *)ree_strbuf_take(&e.bytes);
    return REE_OK;
}

void ree_identity_finish(struct ree_identity *identity) {
    ree_free(identity->bytes);
    ree_free(identity->holes);
    ree_free(identity->attributes);
    ree_free(identity->weights);
    *identity = (struct ree_identity){0};
}
