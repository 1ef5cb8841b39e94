#include "graph/partition_oracle.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned __int128 wide;

static bool is_op(const struct ree_node *node, const char *op) {
    return strcmp(node->op_type, op) == 0;
}

// Lists everything a node reads, in order, including the values that its one subgraph captures.
static size_t list_reads(const struct oracle *o, const struct ree_node *node,
                         const struct ree_value **out) {
    size_t n = 0;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i]) out[n++] = node->inputs[i];
    for (size_t i = 0; i < node->n_attrs; i++) {
        const struct ree_graph *sub = node->attrs[i].graph;
        for (size_t j = 0; sub && j < sub->n_nodes; j++)
            for (size_t k = 0; k < sub->nodes[j]->n_inputs; k++)
                if (sub->nodes[j]->inputs[k]->graph == o->graph)
                    out[n++] = sub->nodes[j]->inputs[k];
    }
    return n;
}

static bool reads(const struct oracle *o, const struct ree_node *node,
                  const struct ree_value *value) {
    const struct ree_value *list[16];
    size_t n = list_reads(o, node, list);
    for (size_t i = 0; i < n; i++)
        if (list[i] == value) return true;
    return false;
}

static bool has_subgraph(const struct ree_node *node) {
    for (size_t i = 0; i < node->n_attrs; i++)
        if (node->attrs[i].graph) return true;
    return false;
}

static bool is_kv_cache_input(const struct oracle *o, const struct ree_value *value) {
    for (size_t i = 0; i < o->options->n_kv_caches; i++)
        if (o->graph->inputs[o->options->kv_caches[i].input] == value) return true;
    return false;
}

bool oracle_is_control(const struct oracle *o, const struct ree_node *node) {
    if (is_op(node, "MatMul") || is_op(node, "Conv") || is_op(node, "Attention")) return false;
    if (has_subgraph(node)) return false;
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct ree_value *value = node->inputs[i];
        if (value->data && value->nbytes > 16384) return false;
        if (is_kv_cache_input(o, value) && !is_op(node, "Shape")) return false;
        if (value->producer && !oracle_is_control(o, value->producer)) return false;
    }
    return true;
}

// Order

static bool is_listed(const struct ree_node *const *list, size_t n, const struct ree_node *node) {
    for (size_t i = 0; i < n; i++)
        if (list[i] == node) return true;
    return false;
}

static void visit(const struct oracle *o, const struct ree_value *value,
                  const struct ree_node **list, size_t *n) {
    const struct ree_node *node = value->producer;
    if (!node || oracle_is_control(o, node) || is_listed(list, *n, node)) return;
    const struct ree_value *read[16];
    size_t n_read = list_reads(o, node, read);
    for (size_t i = 0; i < n_read; i++)
        visit(o, read[i], list, n);
    list[(*n)++] = node;
}

// Returns the 1-based position of the last of the first n_main nodes that `node` depends on.
static size_t last_main(const struct oracle *o, const struct ree_node *const *list, size_t n_main,
                        const struct ree_node *node) {
    for (size_t i = 0; i < n_main; i++)
        if (list[i] == node) return i + 1;
    const struct ree_value *read[16];
    size_t n = list_reads(o, node, read), last = 0;
    for (size_t i = 0; i < n; i++) {
        if (!read[i]->producer || oracle_is_control(o, read[i]->producer)) continue;
        size_t one = last_main(o, list, n_main, read[i]->producer);
        if (one > last) last = one;
    }
    return last;
}

static bool is_size(const struct ree_node *node) {
    return is_op(node, "Shape") || is_op(node, "Size");
}

// Moves each size node (Shape, Size) directly after the last other node that computes or reads its
// operand, if that is earlier.
static void move_sizes(struct oracle *o) {
    const struct ree_node *list[ORACLE_MOST];
    size_t behind[ORACLE_MOST], n = o->n_order, n_others = 0;
    memcpy(list, o->order, sizeof list);
    for (size_t i = 0; i < n; i++)
        behind[i] = is_size(list[i]) ? n_others : ++n_others;
    for (size_t i = 0; i < n; i++) {
        if (!is_size(list[i])) continue;
        size_t last = 0;
        for (size_t j = 0; j < n; j++) {
            bool makes = list[i]->inputs[0]->producer == list[j];
            if (!makes && (is_size(list[j]) || !reads(o, list[j], list[i]->inputs[0]))) continue;
            if (behind[j] > last) last = behind[j];
        }
        if (last < behind[i]) behind[i] = last;
    }
    o->n_order = 0;
    for (size_t at = 0; at <= n_others; at++)
        for (size_t i = 0; i < n; i++)
            if (behind[i] == at) o->order[o->n_order++] = list[i];
}

static void find_order(struct oracle *o) {
    const struct ree_node *list[ORACLE_MOST];
    size_t n = 0, root = 0;
    for (size_t i = o->graph->n_outputs; i-- > 0;) {
        bool successor = false;
        for (size_t s = 0; s < o->options->n_kv_caches; s++)
            if (o->options->kv_caches[s].output == i) successor = true;
        if (!successor) root = i;
    }
    visit(o, o->graph->outputs[root], list, &n);
    size_t n_main = n;
    for (size_t i = 0; i < o->graph->n_outputs; i++)
        visit(o, o->graph->outputs[i], list, &n);
    for (size_t at = 0; at <= n_main; at++) {
        if (at > 0) o->order[o->n_order++] = list[at - 1];
        for (size_t i = n_main; i < n; i++)
            if (last_main(o, list, n_main, list[i]) == at) o->order[o->n_order++] = list[i];
    }
    move_sizes(o);
}

// Places to cut

static size_t position(const struct oracle *o, const struct ree_node *node) {
    for (size_t i = 0; i < o->n_order; i++)
        if (o->order[i] == node) return i;
    return SIZE_MAX;
}

bool oracle_is_live(const struct oracle *o, const struct ree_value *value, size_t place) {
    if (!value->producer || position(o, value->producer) >= place) return false;
    for (size_t i = place; i < o->n_order; i++)
        if (reads(o, o->order[i], value)) return true;
    return false;
}

static bool grows(const struct oracle *o, const struct ree_value *value) {
    if (is_kv_cache_input(o, value)) return true;
    const struct ree_node *node = value->producer;
    if (!node || oracle_is_control(o, node) || is_size(node)) return false;
    if (value == node->outputs[0]) {
        if (is_op(node, "Attention")) return false;
        bool product = is_op(node, "MatMul") || is_op(node, "Conv");
        for (size_t i = 0; product && i < node->n_inputs; i++)
            if (node->inputs[i]->data) return false; // all constants here have rank 2
    }
    const struct ree_value *read[16];
    size_t n = list_reads(o, node, read);
    for (size_t i = 0; i < n; i++)
        if (grows(o, read[i])) return true;
    return false;
}

static bool is_cut_point(const struct oracle *o, size_t place) {
    for (size_t i = 0; i < o->graph->n_values; i++)
        if (oracle_is_live(o, o->graph->values[i], place) && grows(o, o->graph->values[i]))
            return false;
    for (size_t s = 0; s < o->options->n_kv_caches; s++) {
        const struct ree_value *in = o->graph->inputs[o->options->kv_caches[s].input];
        const struct ree_value *out = o->graph->outputs[o->options->kv_caches[s].output];
        bool before = false, after = false;
        for (size_t i = 0; i < o->n_order; i++)
            if (reads(o, o->order[i], in) || reads(o, o->order[i], out) ||
                out->producer == o->order[i])
                *(i < place ? &before : &after) = true;
        if (before && after) return false;
    }
    return true;
}

static size_t count_live(const struct oracle *o, size_t place) {
    size_t n = 0;
    for (size_t i = 0; i < o->graph->n_values; i++)
        n += oracle_is_live(o, o->graph->values[i], place) &&
             !is_size(o->graph->values[i]->producer);
    return n;
}

// Costs

static uint64_t narrow(wide n) {
    return n > UINT64_MAX ? UINT64_MAX : (uint64_t)n;
}

static uint64_t row_bytes(const struct ree_value *value) {
    wide n = 4;
    for (uint32_t i = 0; i < value->rank; i++) {
        n *= value->dims[i] < 0 ? 1 : (wide)value->dims[i];
        if (n > (wide)1 << 40) return (uint64_t)1 << 40; // no later dimension can be 0
    }
    return (uint64_t)n;
}

static uint64_t kv_cache_bytes(const struct oracle *o, const struct ree_value *value) {
    bool open = false;
    for (uint32_t i = 1; i < value->rank; i++)
        open = open || value->dims[i] < 0;
    uint64_t n = row_bytes(value);
    return open ? n : (n + o->context - 1) / o->context;
}

static uint64_t node_flops(const struct ree_node *node) {
    wide n = 0;
    if (!is_op(node, "MatMul") && !is_op(node, "Conv") && !is_op(node, "Attention")) return 0;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i]->data) n += node->inputs[i]->nbytes / 4;
    if (is_op(node, "Conv") && node->outputs[0]->dims[2] > 0) {
        n *= (wide)node->outputs[0]->dims[2];
        n = narrow(n);
    }
    return narrow(2 * n);
}

struct ree_stage_cost oracle_cost(const struct oracle *o, size_t begin, size_t end) {
    wide weights = 0, work = 0, kv_caches = 0, flops = 0;
    struct ree_stage_cost cost = {.n_nodes = end - begin};
    for (size_t v = 0; v < o->graph->n_values; v++) {
        const struct ree_value *value = o->graph->values[v];
        if (!value->data) continue;
        bool any = false, whole = false;
        for (size_t i = begin; i < end; i++) {
            const struct ree_node *node = o->order[i];
            if (!reads(o, node, value)) continue;
            any = true;
            bool row = is_op(node, "Gather") && ree_node_int(node, "axis", 0) == 0 &&
                       node->inputs[0] == value && !node->inputs[1]->data;
            if (!row) whole = true;
        }
        if (any) weights += value->nbytes;
        if (whole)
            work += value->nbytes;
        else if (any)
            work += value->nbytes / (uint64_t)value->dims[0];
    }
    for (size_t i = begin; i < end; i++) {
        const struct ree_node *node = o->order[i];
        flops += node_flops(node);
        for (size_t a = 0; a < node->n_attrs; a++) {
            if (!node->attrs[a].graph) continue;
            flops += node_flops(node->attrs[a].graph->nodes[0]);
            weights += node->attrs[a].graph->values[0]->nbytes;
            work += node->attrs[a].graph->values[0]->nbytes;
        }
    }
    for (size_t s = 0; s < o->options->n_kv_caches; s++) {
        const struct ree_value *in = o->graph->inputs[o->options->kv_caches[s].input];
        const struct ree_value *out = o->graph->outputs[o->options->kv_caches[s].output];
        size_t at = SIZE_MAX;
        for (size_t i = o->n_order; i-- > 0;)
            if (reads(o, o->order[i], in)) at = i;
        if (at == SIZE_MAX && out->producer) at = position(o, out->producer);
        if (at >= begin && at < end) kv_caches += kv_cache_bytes(o, in);
    }
    cost.weight_bytes = narrow(weights);
    cost.work_bytes = narrow(work);
    cost.kv_cache_bytes = narrow(kv_caches);
    cost.flops = narrow(flops);
    cost.work = narrow(work + kv_caches * o->context + cost.flops / 16);
    return cost;
}

// Search

static bool score(const struct oracle *o, const size_t *ends, struct oracle_score *out) {
    *out = (struct oracle_score){.smallest = UINT64_MAX};
    size_t n = o->options->n_stages, begin = 0;
    for (size_t k = 0; k < n; k++) {
        struct ree_stage_cost cost = oracle_cost(o, begin, ends[k]);
        if (o->options->weight_limits && cost.weight_bytes > o->options->weight_limits[k])
            return false;
        if (cost.work > out->largest) out->largest = cost.work;
        if (cost.work < out->smallest) out->smallest = cost.work;
        begin = out->ends[k] = ends[k];
        for (size_t i = 0; k + 1 < n && i < o->graph->n_values; i++)
            if (oracle_is_live(o, o->graph->values[i], ends[k])) {
                out->n_live += !is_size(o->graph->values[i]->producer);
                out->live_bytes += row_bytes(o->graph->values[i]);
            }
    }
    return true;
}

static bool is_better(const struct oracle_score *a, const struct oracle_score *b, size_t n) {
    if (a->largest != b->largest) return a->largest < b->largest;
    if (a->n_live != b->n_live) return a->n_live < b->n_live;
    if (a->smallest != b->smallest) return a->smallest > b->smallest;
    if (a->live_bytes != b->live_bytes) return a->live_bytes < b->live_bytes;
    for (size_t i = 0; i < n; i++)
        if (a->ends[i] != b->ends[i]) return a->ends[i] < b->ends[i];
    return false;
}

// Tries every choice from cut_points[from...] for the cuts from k on.
static void try_all(const struct oracle *o, const size_t *cut_points, size_t n, size_t from,
                    size_t k, size_t *ends, bool *found, struct oracle_score *best) {
    if (k + 1 == o->options->n_stages) {
        struct oracle_score this;
        ends[k] = o->n_order;
        if (!score(o, ends, &this)) return;
        if (!*found || is_better(&this, best, k + 1)) *best = this;
        *found = true;
        return;
    }
    for (size_t i = from; i < n; i++) {
        ends[k] = cut_points[i];
        try_all(o, cut_points, n, i + 1, k + 1, ends, found, best);
    }
}

void oracle_run(struct oracle *o, const struct ree_graph *graph,
                const struct ree_partition_options *options) {
    *o = (struct oracle){.graph = graph, .options = options};
    o->context = options->context ? options->context : 1024;
    find_order(o);
    size_t all[ORACLE_MOST], one[ORACLE_MOST], ends[ORACLE_MOST];
    for (size_t t = 1; t < o->n_order; t++) {
        if (!is_cut_point(o, t)) continue;
        all[o->n_cut_points++] = t;
        if (count_live(o, t) <= 1) one[o->n_one_value_cut_points++] = t;
    }
    struct oracle_score best, best_one;
    bool found_one = false;
    try_all(o, all, o->n_cut_points, 0, 0, ends, &o->found, &best);
    try_all(o, one, o->n_one_value_cut_points, 0, 0, ends, &found_one, &best_one);
    if (!o->found) return;
    bool take_one = found_one && (wide)4 * best_one.largest <= (wide)5 * best.largest;
    o->best = take_one ? best_one : best;
}
