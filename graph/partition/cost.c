// Computes the costs of nodes, and of ranges of nodes. In a range, a constant counts once, however
// many nodes read it.
#include "graph/partition/planner.h"

#include <stdlib.h>
#include "base/memory.h"

static uint64_t saturate(ree_sum n) {
    return n > UINT64_MAX ? UINT64_MAX : (uint64_t)n;
}

static uint64_t add(uint64_t a, uint64_t b) {
    return saturate((ree_sum)a + b);
}

static uint64_t multiply(uint64_t a, uint64_t b) {
    return saturate((ree_sum)a * b);
}

static uint64_t n_elements(const struct ree_value *value) {
    size_t size = ree_dtype_size(value->dtype);
    return size ? value->nbytes / size : 0;
}

// The number of positions of an image or signal [n, c, ...], as far as its dimensions are known.
static uint64_t n_positions(const struct ree_value *value) {
    uint64_t n = 1;
    for (uint32_t i = 2; value && value->has_shape && i < value->rank; i++)
        if (value->dims[i] > 0) n = multiply(n, (uint64_t)value->dims[i]);
    return n;
}

// Returns the floating point operations for one row: 2 for each element of a constant operand, at
// each position of a convolution; for a node with subgraphs, also those of their nodes. The work of
// attention on its cache is covered by the cache's bytes; elementwise work is covered by the bytes
// that it reads.
static uint64_t count_flops(const struct ree_node *node) {
    enum ree_node_class class = ree_node_classify(node);
    uint64_t n = 0;
    if (ree_node_has_factor(node))
        for (size_t i = 0; i < node->n_inputs; i++) {
            const struct ree_value *value = node->inputs[i];
            if (value && value->data && value->rank >= 2) n = add(n, n_elements(value));
        }
    if (class == REE_NODE_CONV && node->n_outputs) n = multiply(n, n_positions(node->outputs[0]));
    if (class == REE_NODE_CONV_TRANSPOSE && node->n_inputs)
        n = multiply(n, n_positions(node->inputs[0]));
    n = multiply(n, 2);
    for (size_t i = 0; i < node->n_attrs; i++) {
        const struct ree_graph *sub = node->attrs[i].graph;
        for (size_t j = 0; sub && j < sub->n_nodes; j++)
            n = add(n, count_flops(sub->nodes[j]));
    }
    return n;
}

static uint64_t own_bytes(const struct ree_node *node) {
    uint64_t n = ree_node_attr_bytes(node);
    for (size_t i = 0; i < node->n_attrs; i++) {
        const struct ree_graph *sub = node->attrs[i].graph;
        if (!sub) continue;
        for (size_t j = 0; j < sub->n_values; j++)
            if (!sub->values[j]->producer) n = add(n, sub->values[j]->nbytes);
        for (size_t j = 0; j < sub->n_nodes; j++)
            n = add(n, own_bytes(sub->nodes[j]));
    }
    return n;
}

// Bytes per position of the cache. A kv cache that does not grow (no dimension is unknown except
// the first, the number of sequences) is spread over the positions of the context.
static uint64_t position_bytes(const struct ree_planner *p, const struct ree_value *value) {
    uint64_t n = ree_value_row_bytes(value);
    for (uint32_t i = 1; value->has_shape && i < value->rank; i++)
        if (value->dims[i] < 0) return n;
    if (!value->has_shape) return n;
    return n / p->context + (n % p->context != 0);
}

enum ree_status ree_planner_find_costs(struct ree_planner *p, struct ree_error *err) {
    const struct ree_graph *graph = p->graph;
    p->node_costs = ree_arena_alloc_array(&p->arena, p->n_order + 1, sizeof *p->node_costs);
    // By value: 1 + the position that first reads it; 0: none. A kv cache's cost counts there.
    uint32_t *readers = ree_arena_alloc_array(&p->arena, graph->n_values + 1, sizeof *readers);
    if (!p->node_costs || !readers) return ree_no_memory(err);
    for (size_t i = 0; i < p->n_order; i++) {
        const struct ree_node *node = graph->nodes[p->order[i]];
        p->node_costs[i].flops = count_flops(node);
        p->node_costs[i].own_bytes = own_bytes(node);
        for (size_t k = p->use_starts[node->id]; k < p->use_starts[node->id + 1]; k++) {
            uint32_t *reader = &readers[p->uses[k].value->id];
            if (*reader == 0) *reader = (uint32_t)i + 1;
        }
    }
    for (size_t i = 0; i < p->options->n_kv_caches; i++) {
        const struct ree_value *in = graph->inputs[p->options->kv_caches[i].input];
        const struct ree_value *out = graph->outputs[p->options->kv_caches[i].output];
        uint32_t at = readers[in->id] ? readers[in->id] - 1 : REE_NO_POSITION;
        if (at == REE_NO_POSITION && out->producer) at = p->position[out->producer->id];
        if (at == REE_NO_POSITION) continue; // only control nodes use it: almost no cost
        uint64_t *bytes = &p->node_costs[at].kv_cache_bytes;
        *bytes = add(*bytes, position_bytes(p, in));
    }
    return REE_OK;
}

enum ree_status ree_window_init(struct ree_window *window, const struct ree_planner *p,
                                struct ree_error *err) {
    *window = (struct ree_window){.planner = p};
    window->n_reads = ree_alloc_zeroed(p->graph->n_values + 1, sizeof *window->n_reads);
    window->n_whole = ree_alloc_zeroed(p->graph->n_values + 1, sizeof *window->n_whole);
    if (window->n_reads && window->n_whole) return REE_OK;
    ree_window_finish(window);
    return ree_no_memory(err);
}

void ree_window_finish(struct ree_window *window) {
    ree_free(window->n_reads);
    ree_free(window->n_whole);
}

// Returns the bytes of one row of a constant. In the work, they count for the first node that reads
// any part of the constant; the remaining bytes count for the first node that reads all of it.
static uint64_t row_part(const struct ree_value *value) {
    if (!value->has_shape || value->rank == 0 || value->dims[0] <= 0) return value->nbytes;
    return value->nbytes / (uint64_t)value->dims[0];
}

void ree_window_add(struct ree_window *w, size_t begin, size_t end) {
    const struct ree_planner *p = w->planner;
    for (size_t i = begin; i < end; i++) {
        const struct ree_node *node = p->graph->nodes[p->order[i]];
        const struct ree_node_cost *cost = &p->node_costs[i];
        w->n_nodes++;
        w->weight_bytes += cost->own_bytes;
        w->work_bytes += cost->own_bytes;
        w->kv_cache_bytes += cost->kv_cache_bytes;
        w->flops += cost->flops;
        for (size_t k = p->use_starts[node->id]; k < p->use_starts[node->id + 1]; k++) {
            const struct ree_value *value = p->uses[k].value;
            if (!value->data) continue;
            uint64_t row = row_part(value);
            if (w->n_reads[value->id]++ == 0) {
                w->weight_bytes += value->nbytes;
                w->work_bytes += row;
            }
            if (ree_node_reads_rows(node, p->uses[k].input)) continue;
            if (w->n_whole[value->id]++ == 0) w->work_bytes += value->nbytes - row;
        }
    }
}

void ree_window_remove(struct ree_window *w, size_t begin, size_t end) {
    const struct ree_planner *p = w->planner;
    for (size_t i = begin; i < end; i++) {
        const struct ree_node *node = p->graph->nodes[p->order[i]];
        const struct ree_node_cost *cost = &p->node_costs[i];
        w->n_nodes--;
        w->weight_bytes -= cost->own_bytes;
        w->work_bytes -= cost->own_bytes;
        w->kv_cache_bytes -= cost->kv_cache_bytes;
        w->flops -= cost->flops;
        for (size_t k = p->use_starts[node->id]; k < p->use_starts[node->id + 1]; k++) {
            const struct ree_value *value = p->uses[k].value;
            if (!value->data) continue;
            uint64_t row = row_part(value);
            if (--w->n_reads[value->id] == 0) {
                w->weight_bytes -= value->nbytes;
                w->work_bytes -= row;
            }
            if (ree_node_reads_rows(node, p->uses[k].input)) continue;
            if (--w->n_whole[value->id] == 0) w->work_bytes -= value->nbytes - row;
        }
    }
}

struct ree_stage_cost ree_window_cost(const struct ree_window *w) {
    struct ree_stage_cost cost = {
        .n_nodes = w->n_nodes,
        .weight_bytes = saturate(w->weight_bytes),
        .work_bytes = saturate(w->work_bytes),
        .kv_cache_bytes = saturate(w->kv_cache_bytes),
        .flops = saturate(w->flops),
    };
    cost.work = add(cost.work_bytes, multiply(cost.kv_cache_bytes, w->planner->context));
    cost.work = add(cost.work, cost.flops / 16);
    return cost;
}
