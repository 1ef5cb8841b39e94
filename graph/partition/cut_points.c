// Finds where the order may be cut, and what is live there.
#include "graph/partition/planner.h"

#include <string.h>

// Limits on the bytes that one value, and all live values of one cut, count as, so that sums over
// all cuts of a plan fit in 64 bits.
#define MOST_ROW_BYTES (UINT64_C(1) << 40)
#define MOST_LIVE_BYTES (UINT64_C(1) << 48)

uint64_t ree_value_row_bytes(const struct ree_value *value) {
    uint64_t n = ree_dtype_size(value->dtype);
    if (n == 0) n = 4; // type not inferred: nearly always float32
    for (uint32_t i = 0; value->has_shape && i < value->rank; i++)
        if (value->dims[i] >= 0 && !ree_mul_size(n, (uint64_t)value->dims[i], &n))
            return MOST_ROW_BYTES;
    return n < MOST_ROW_BYTES ? n : MOST_ROW_BYTES;
}

bool ree_planner_is_live(const struct ree_planner *p, const struct ree_value *value, size_t place) {
    if (!value->producer) return false;
    uint32_t at = p->position[value->producer->id];
    return at != REE_NO_POSITION && at < place && p->last_read[value->id] >= place;
}

// Stages exchange only tensors of numbers.
static bool can_cross(const struct ree_value *value) {
    static const char *const others[] = {
        "SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase",
        "SplitToSequence",   "SequenceMap",   "Optional",
    };
    if (value->kind != REE_TENSOR || value->nullable || value->dtype == REE_STRING) return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(value->producer->op_type, others[i]) == 0) return false;
    return true;
}

struct span {
    uint32_t first, last; // positions
};

static void span_add(struct span *span, uint32_t position) {
    if (position == REE_NO_POSITION) return;
    if (position < span->first) span->first = position;
    if (position > span->last) span->last = position;
}

// Returns whether this output of a node does not grow with a kv cache, although the node reads a
// value that does. A cut through values as long as a cache would cost more as the text grows.
// Values computed from a kv cache grow, up to the node that attends to them or that multiplies them
// by a constant, whose inner dimension is fixed. Sizes do not grow.
static bool stops_growth(const struct ree_node *node, size_t output) {
    if (ree_node_is_size(node)) return true;
    if (output != 0) return false; // other outputs of attention are caches and scores
    return ree_node_classify(node) == REE_NODE_ATTENTION || ree_node_has_factor(node);
}

static void find_growing(const struct ree_planner *p, bool *grows) {
    for (size_t i = 0; i < p->graph->n_nodes; i++) { // producers come first
        const struct ree_node *node = p->graph->nodes[i];
        bool any = false;
        for (size_t k = p->use_starts[i]; k < p->use_starts[i + 1] && !p->is_control[i]; k++)
            any = any || p->is_kv_cache[p->uses[k].value->id] || grows[p->uses[k].value->id];
        for (size_t k = 0; any && k < node->n_outputs; k++)
            if (node->outputs[k]) grows[node->outputs[k]->id] = !stops_growth(node, k);
    }
}

static void span_add_readers(struct span *span, const struct ree_planner *p,
                             const struct ree_value *value, const uint32_t *first_read) {
    span_add(span, first_read[value->id]);
    if (first_read[value->id] != REE_NO_POSITION) span_add(span, p->last_read[value->id]);
}

// Forbids cuts between the nodes of a kv cache, which must be in one stage: the nodes that read it,
// the node that makes its successor, and the nodes that read the successor.
static void block_kv_caches(const struct ree_planner *p, const uint32_t *first_read,
                            int32_t *blocked) {
    for (size_t i = 0; i < p->options->n_kv_caches; i++) {
        const struct ree_value *in = p->graph->inputs[p->options->kv_caches[i].input];
        const struct ree_value *out = p->graph->outputs[p->options->kv_caches[i].output];
        struct span span = {UINT32_MAX, 0};
        span_add_readers(&span, p, in, first_read);
        if (out->producer && p->position[out->producer->id] != REE_NO_POSITION) {
            span_add(&span, p->position[out->producer->id]);
            span_add_readers(&span, p, out, first_read);
        }
        if (span.first >= span.last) continue;
        blocked[span.first + 1]++;
        blocked[span.last + 1]--;
    }
}

enum ree_status ree_planner_find_cut_points(struct ree_planner *p, struct ree_error *err) {
    const struct ree_graph *graph = p->graph;
    size_t n = p->n_order;
    p->last_read = ree_arena_alloc_array(&p->arena, graph->n_values + 1, sizeof *p->last_read);
    p->n_live = ree_arena_alloc_array(&p->arena, n + 2, sizeof *p->n_live);
    p->n_sizes = ree_arena_alloc_array(&p->arena, n + 2, sizeof *p->n_sizes);
    p->live_bytes = ree_arena_alloc_array(&p->arena, n + 2, sizeof *p->live_bytes);
    p->is_cut_point = ree_arena_alloc_array(&p->arena, n + 2, sizeof *p->is_cut_point);
    uint32_t *first_read =
        ree_arena_alloc_array(&p->arena, graph->n_values + 1, sizeof *first_read);
    bool *grows = ree_arena_alloc_array(&p->arena, graph->n_values + 1, sizeof *grows);
    int32_t *blocked = ree_arena_alloc_array(&p->arena, n + 2, sizeof *blocked);
    if (!first_read || !grows || !p->last_read || !p->n_live || !p->n_sizes || !p->live_bytes ||
        !p->is_cut_point || !blocked)
        return ree_no_memory(err);
    memset(first_read, 0xff, (graph->n_values + 1) * sizeof *first_read);
    for (size_t i = 0; i < n; i++)
        for (size_t k = p->use_starts[p->order[i]]; k < p->use_starts[p->order[i] + 1]; k++) {
            uint32_t id = p->uses[k].value->id;
            if (first_read[id] == REE_NO_POSITION) first_read[id] = (uint32_t)i;
            p->last_read[id] = (uint32_t)i;
        }
    find_growing(p, grows);
    // The arrays first hold differences, which wrap around. Their sums, below, do not.
    for (size_t i = 0; i < graph->n_values; i++) {
        const struct ree_value *value = graph->values[i];
        if (!value->producer) continue;
        uint32_t from = p->position[value->producer->id], to = p->last_read[i];
        if (from == REE_NO_POSITION || to <= from) continue;
        uint32_t *counts = ree_node_is_size(value->producer) ? p->n_sizes : p->n_live;
        counts[from + 1]++;
        counts[to + 1]--;
        p->live_bytes[from + 1] += ree_value_row_bytes(value);
        p->live_bytes[to + 1] -= ree_value_row_bytes(value);
        if (can_cross(value) && !grows[i]) continue;
        blocked[from + 1]++;
        blocked[to + 1]--;
    }
    block_kv_caches(p, first_read, blocked);
    for (size_t t = 1; t <= n; t++) {
        p->n_live[t] += p->n_live[t - 1];
        p->n_sizes[t] += p->n_sizes[t - 1];
        p->live_bytes[t] += p->live_bytes[t - 1];
        blocked[t] += blocked[t - 1];
        p->is_cut_point[t] = t < n && blocked[t] == 0;
    }
    for (size_t t = 1; t <= n; t++)
        if (p->live_bytes[t] > MOST_LIVE_BYTES) p->live_bytes[t] = MOST_LIVE_BYTES;
    return REE_OK;
}
