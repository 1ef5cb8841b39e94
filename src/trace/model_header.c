#include "trace/model_header.h"

#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/float_env.h"
#include "base/progress.h"
#include "base/status.h"
#include "session/model.h"
#include "trace/value_index.h"

// Bytes of constants hashed between two progress reports; at least two constants per report.
#define REPORT_BYTES ((uint64_t)256 << 20)

// Digests

static void dense_digest(const struct ree_tensor *t, ree_digest out) {
    if (t->dtype == REE_STRING || !ree_dtype_is_float(t->dtype)) {
        ree_tensor_digest(t, out);
        return;
    }
    const uint32_t type[2] = {(uint32_t)t->dtype, t->rank};
    struct ree_hasher *h = ree_hasher_create("ree-tensor/1");
    ree_hasher_update(h, type, sizeof type);
    ree_hasher_update(h, t->dims, t->rank * sizeof *t->dims);
    uint64_t piece[2048];
    for (size_t at = 0; at < t->nbytes; at += sizeof piece) {
        size_t n = t->nbytes - at < sizeof piece ? t->nbytes - at : sizeof piece;
        memcpy(piece, (const char *)t->data + at, n);
        ree_canonicalise_nans(t->dtype, n / ree_dtype_size(t->dtype), piece);
        ree_hasher_update(h, piece, n);
    }
    ree_hasher_digest(h, out);
}

void ree_trace_tensor_digest(const struct ree_tensor *t, ree_digest out) {
    if (t->kind == REE_TENSOR) {
        dense_digest(t, out);
    } else if (t->kind == REE_SEQUENCE) {
        const uint32_t dtype = (uint32_t)t->dtype;
        const uint64_t n = t->n_items;
        struct ree_hasher *h = ree_hasher_create("ree-sequence/1");
        ree_hasher_update(h, &dtype, sizeof dtype);
        ree_hasher_update(h, &n, sizeof n);
        for (size_t i = 0; i < t->n_items; i++) {
            ree_digest item;
            dense_digest(&t->items[i], item);
            ree_hasher_update(h, item, sizeof item);
        }
        ree_hasher_digest(h, out);
    } else {
        ree_tensor_digest(t, out);
    }
}

// What nodes read

struct collector {
    const struct ree_node *node;
    const struct ree_graph *graph; // the graph that contains the node
    struct ree_value **list;       // what subgraphs read, use by use; NULL: only count the uses
    size_t n;
};

static void collect(void *user, struct ree_value **use) {
    struct collector *c = user;
    struct ree_value *const *own = c->node->inputs;
    uintptr_t at = (uintptr_t)use, first = (uintptr_t)own;
    if (at >= first && at < first + c->node->n_inputs * sizeof *own) return;
    if (!*use || (*use)->graph != c->graph) return;
    if (c->list) c->list[c->n] = *use;
    c->n++;
}

// Removes the repetitions of values from a list. *n is their number.
static enum ree_status keep_first(struct ree_value **list, size_t *n, struct ree_error *err) {
    struct ree_value_index places;
    size_t kept = 0;
    if (!ree_value_index_init(&places, list, *n)) return ree_no_memory(err);
    for (size_t i = 0; i < *n; i++)
        if (ree_value_index_find(&places, list[i]) == i) list[kept++] = list[i];
    ree_value_index_finish(&places);
    *n = kept;
    return REE_OK;
}

enum ree_status ree_trace_node_inputs(const struct ree_node *node, struct ree_arena *arena,
                                      struct ree_value *const **out, uint32_t *out_n,
                                      struct ree_error *err) {
    const struct ree_graph *graph = NULL;
    for (size_t i = 0; i < node->n_attrs; i++)
        if (node->attrs[i].kind == REE_ATTR_GRAPH) graph = node->attrs[i].graph->parent;
    *out = node->inputs;
    *out_n = (uint32_t)node->n_inputs;
    if (!graph) return REE_OK; // the node has no subgraphs
    struct collector c = {.node = node, .graph = graph};
    struct ree_node *walked = (struct ree_node *)(uintptr_t)node; // not modified
    ree_node_visit_uses(walked, collect, &c);
    struct ree_value **list =
        ree_arena_alloc_array(arena, node->n_inputs + c.n + 1, sizeof(struct ree_value *));
    if (!list) return ree_no_memory(err);
    if (node->n_inputs) memcpy(list, node->inputs, node->n_inputs * sizeof(struct ree_value *));
    c.list = list + node->n_inputs;
    c.n = 0;
    ree_node_visit_uses(walked, collect, &c);
    REE_TRY(keep_first(c.list, &c.n, err));
    *out = list;
    *out_n = (uint32_t)(node->n_inputs + c.n);
    return REE_OK;
}

// The header

struct builder {
    const struct ree_model *model;
    const struct ree_trace_header_options *options;
    struct ree_arena *arena;
    struct ree_error *err;
    struct ree_trace_header *h;
    // Indexed by value id: 1 + value number; 0: none yet; -1: a constant without a number yet.
    int32_t *numbers;
    const struct ree_value **constants; // the values of h->constants
};

static enum ree_status add_inputs(struct builder *b) {
    const struct ree_model *m = b->model;
    b->h->n_inputs = (uint32_t)m->n_inputs;
    b->h->inputs = ree_arena_alloc_array(b->arena, m->n_inputs + 1, sizeof *b->h->inputs);
    if (!b->h->inputs) return ree_no_memory(b->err);
    for (size_t i = 0; i < m->n_inputs; i++) {
        b->h->inputs[i] = (struct ree_trace_input){m->inputs[i].name, -1};
        b->numbers[m->input_values[i]->id] = (int32_t)i + 1;
    }
    for (size_t i = 0; i < b->options->n_kv_caches; i++)
        b->h->inputs[b->options->kv_caches[i].input].cache_axis =
            (int32_t)b->options->kv_caches[i].axis;
    return REE_OK;
}

// Adds the constants that nodes read, in the order in which they are first read.
static enum ree_status add_constants(struct builder *b, struct ree_value *const *const *inputs) {
    const struct ree_graph *graph = b->model->graph;
    struct ree_trace_header *h = b->h;
    for (int pass = 0; pass < 2; pass++) {
        uint32_t n = 0;
        for (size_t i = 0; i < graph->n_nodes; i++)
            for (uint32_t k = 0; k < h->nodes[i].n_inputs; k++) {
                const struct ree_value *value = inputs[i][k];
                if (!value || value->producer) continue;
                int32_t *number = &b->numbers[value->id];
                if (*number > (int32_t)h->n_inputs || (pass == 0 && *number < 0)) continue;
                if (*number > 0) continue; // it is an input of the model
                if (pass == 0) {
                    *number = -1;
                } else {
                    *number = (int32_t)(h->n_inputs + n) + 1;
                    h->constants[n].name = value->name;
                    b->constants[n] = value;
                }
                n++;
            }
        if (pass) break;
        h->n_constants = n;
        h->constants = ree_arena_alloc_array(b->arena, (size_t)n + 1, sizeof *h->constants);
        b->constants =
            ree_arena_alloc_array(b->arena, (size_t)n + 1, sizeof(const struct ree_value *));
        if (!h->constants || !b->constants) return ree_no_memory(b->err);
    }
    return REE_OK;
}

static enum ree_status add_nodes(struct builder *b) {
    const struct ree_graph *graph = b->model->graph;
    struct ree_trace_header *h = b->h;
    struct ree_value *const **inputs =
        ree_arena_alloc_array(b->arena, graph->n_nodes + 1, sizeof(struct ree_value *const *));
    h->n_nodes = (uint32_t)graph->n_nodes;
    h->nodes = ree_arena_alloc_array(b->arena, graph->n_nodes + 1, sizeof *h->nodes);
    if (!inputs || !h->nodes) return ree_no_memory(b->err);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct ree_node *node = graph->nodes[i];
        struct ree_trace_node *out = &h->nodes[i];
        out->name = node->name ? node->name : "";
        out->domain = node->domain;
        out->op_type = node->op_type;
        out->opset = node->opset;
        REE_TRY(ree_trace_node_inputs(node, b->arena, &inputs[i], &out->n_inputs, b->err));
        REE_TRY(ree_trace_attributes_digest(node, inputs[i], out->n_inputs, h->version,
                                            out->attributes, b->err));
        out->n_outputs = (uint32_t)node->n_outputs;
        out->inputs =
            ree_arena_alloc_array(b->arena, (size_t)out->n_inputs + 1, sizeof *out->inputs);
        out->omitted = ree_arena_alloc_array(b->arena, node->n_outputs + 1, sizeof *out->omitted);
        if (!out->inputs || !out->omitted) return ree_no_memory(b->err);
    }
    REE_TRY(add_constants(b, inputs));
    int64_t n = (int64_t)h->n_inputs + h->n_constants;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct ree_node *node = graph->nodes[i];
        for (uint32_t k = 0; k < h->nodes[i].n_inputs; k++)
            h->nodes[i].inputs[k] =
                inputs[i][k] ? b->numbers[inputs[i][k]->id] - 1 : REE_TRACE_OMITTED;
        for (size_t k = 0; k < node->n_outputs; k++, n++) {
            h->nodes[i].omitted[k] = !node->outputs[k];
            if (n >= INT32_MAX) return ree_no_memory(b->err);
            if (node->outputs[k]) b->numbers[node->outputs[k]->id] = (int32_t)n + 1;
        }
    }
    return REE_OK;
}

struct sized {
    uint32_t index;
    uint64_t nbytes;
};

static int by_size(const void *a, const void *b) {
    const struct sized *x = a, *y = b;
    if (x->nbytes != y->nbytes) return x->nbytes < y->nbytes ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

// Hashes the largest constants first, so that all cores finish at about the same time.
static enum ree_status hash_constants(struct builder *b) {
    uint32_t n = b->h->n_constants;
    uint64_t total = 0, done = 0;
    struct sized *order = ree_arena_alloc_array(b->arena, (size_t)n + 1, sizeof *order);
    if (!order) return ree_no_memory(b->err);
    for (uint32_t i = 0; i < n; i++) {
        order[i] = (struct sized){i, b->constants[i]->nbytes};
        total += order[i].nbytes;
    }
    qsort(order, n, sizeof *order, by_size);
    for (uint32_t from = 0, to; from < n; from = to) {
        uint64_t piece = 0;
        for (to = from; to < n && (piece < REPORT_BYTES || to - from < 2); to++)
            piece += order[to].nbytes;
        REE_TRY(
            ree_progress_report(&b->options->progress, "hashing constants", done, total, b->err));
#pragma omp parallel for if (piece > 65536) schedule(dynamic)
        for (uint32_t i = from; i < to; i++) {
            REE_FLOAT_ENV_WORKER();
            struct ree_tensor t = ree_trace_constant_tensor(b->constants[order[i].index]);
            ree_trace_tensor_digest(&t, b->h->constants[order[i].index].digest);
        }
        done += piece;
    }
    return REE_OK;
}

enum ree_status ree_trace_describe(const struct ree_model *model,
                                   const struct ree_trace_header_options *options,
                                   struct ree_arena *arena, struct ree_trace_header *out,
                                   struct ree_error *err) {
    struct builder b = {.model = model, .options = options, .arena = arena, .err = err, .h = out};
    memset(out, 0, sizeof *out);
    out->version = options->version ? options->version : REE_TRACE_LATEST;
    strncpy(out->graph_sha256, options->graph_sha256, sizeof out->graph_sha256 - 1);
    strncpy(out->weights_sha256, options->weights_sha256, sizeof out->weights_sha256 - 1);
    out->numerics = ree_numerics_version();
    out->operation_set = ree_operation_set_name(options->operation_set);
    out->prefill_chunk = options->prefill_chunk;
    b.numbers = ree_arena_alloc_array(arena, model->graph->n_values + 1, sizeof *b.numbers);
    if (!b.numbers) return ree_no_memory(err);
    REE_TRY(add_inputs(&b));
    REE_TRY(add_nodes(&b));
    REE_TRY(hash_constants(&b));
    return ree_trace_header_complete(out, arena, err);
}
