// The canonical order: the post-order of a depth-first walk over inputs, from the first output that
// is not a kv cache's successor. Nodes that only other outputs need come directly after the last of
// their producers, so that such a branch does not stay live over half of the graph. Sizes are
// computed early.
#include "graph/partition/planner.h"

#include <string.h>

struct frame {
    uint32_t node;
    size_t next; // index of the next use
};

struct walk {
    struct ree_planner *p;
    struct frame *stack;
    unsigned char *seen; // by node id
    uint32_t *nodes;     // in post-order
    size_t n;
};

static bool enter(struct walk *w, const struct ree_value *value, size_t *depth) {
    if (!value->producer || value->graph != w->p->graph) return false;
    uint32_t id = value->producer->id;
    if (w->seen[id] || w->p->is_control[id]) return false;
    w->seen[id] = 1;
    w->stack[(*depth)++] = (struct frame){id, w->p->use_starts[id]};
    return true;
}

// Appends the unseen nodes that `root` depends on. Uses an explicit stack, so that a long chain
// does not recurse.
static void walk_from(struct walk *w, const struct ree_value *root) {
    size_t depth = 0;
    enter(w, root, &depth);
    while (depth > 0) {
        struct frame *top = &w->stack[depth - 1];
        if (top->next == w->p->use_starts[top->node + 1]) {
            w->nodes[w->n++] = top->node;
            depth--;
        } else {
            enter(w, w->p->uses[top->next++].value, &depth);
        }
    }
}

// Returns the index of the first output that is not a kv cache's successor; 0 if all are.
// `is_successor` is scratch, zeroed, one entry per output.
static size_t main_output(const struct ree_planner *p, bool *is_successor) {
    for (size_t i = 0; i < p->options->n_kv_caches; i++)
        is_successor[p->options->kv_caches[i].output] = true;
    for (size_t i = 0; i < p->graph->n_outputs; i++)
        if (!is_successor[i]) return i;
    return 0;
}

// Sets anchors[id] to the number of main nodes (the first n_main) that the node must come after; a
// main node counts itself too.
static void find_anchors(const struct walk *w, size_t n_main, uint32_t *anchors) {
    for (size_t i = 0; i < w->n; i++) {
        uint32_t id = w->nodes[i], anchor = 0;
        for (size_t k = w->p->use_starts[id]; k < w->p->use_starts[id + 1]; k++) {
            const struct ree_node *producer = w->p->uses[k].value->producer;
            if (!producer || w->p->is_control[producer->id]) continue;
            if (anchors[producer->id] > anchor) anchor = anchors[producer->id];
        }
        anchors[id] = i < n_main ? (uint32_t)i + 1 : anchor;
    }
}

// Moves each size (the result of Shape or Size) directly after the last node, other than sizes,
// that makes or reads the value whose size it is, unless it already comes earlier. So a size does
// not keep that value live: the size crosses cuts instead, and no cut is crossed by more values
// than before.
static enum ree_status move_sizes(struct ree_planner *p, struct ree_error *err) {
    size_t n = p->n_order;
    // Both count non-size nodes. `behind`, by position: those up to the node. `last_read`, by
    // value: those up to the last non-size node that reads it.
    uint32_t *behind = ree_arena_alloc_array(&p->arena, n + 1, sizeof *behind);
    uint32_t *last_read = ree_arena_alloc_array(&p->arena, p->graph->n_values + 1, sizeof *behind);
    uint32_t *order = ree_arena_alloc_array(&p->arena, n + 1, sizeof *order);
    size_t *starts = ree_arena_alloc_array(&p->arena, n + 2, sizeof *starts);
    if (!behind || !last_read || !order || !starts) return ree_no_memory(err);
    uint32_t n_others = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t id = p->order[i];
        bool is_size = ree_node_is_size(p->graph->nodes[id]);
        behind[i] = is_size ? n_others : ++n_others;
        for (size_t k = p->use_starts[id]; !is_size && k < p->use_starts[id + 1]; k++)
            last_read[p->uses[k].value->id] = n_others;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t id = p->order[i], earliest = 0;
        if (!ree_node_is_size(p->graph->nodes[id])) continue;
        for (size_t k = p->use_starts[id]; k < p->use_starts[id + 1]; k++) {
            const struct ree_value *value = p->uses[k].value;
            uint32_t maker = value->producer ? p->position[value->producer->id] : REE_NO_POSITION;
            if (maker != REE_NO_POSITION && behind[maker] > earliest) earliest = behind[maker];
            if (last_read[value->id] > earliest) earliest = last_read[value->id];
        }
        if (earliest < behind[i]) behind[i] = earliest;
    }
    // The sort is stable. If two nodes have the same number, the non-size node comes first.
    for (size_t i = 0; i < n; i++)
        starts[behind[i] + 1]++;
    for (size_t i = 0; i <= n_others; i++)
        starts[i + 1] += starts[i];
    for (size_t i = 0; i < n; i++)
        order[starts[behind[i]]++] = p->order[i];
    memcpy(p->order, order, n * sizeof *order);
    for (size_t i = 0; i < n; i++)
        p->position[p->order[i]] = (uint32_t)i;
    return REE_OK;
}

enum ree_status ree_planner_find_order(struct ree_planner *p, struct ree_error *err) {
    const struct ree_graph *graph = p->graph;
    size_t n = graph->n_nodes;
    struct walk w = {.p = p};
    w.stack = ree_arena_alloc_array(&p->arena, n + 1, sizeof *w.stack);
    w.seen = ree_arena_alloc(&p->arena, n + 1);
    w.nodes = ree_arena_alloc_array(&p->arena, n + 1, sizeof *w.nodes);
    uint32_t *anchors = ree_arena_alloc_array(&p->arena, n + 1, sizeof *anchors);
    size_t *starts = ree_arena_alloc_array(&p->arena, n + 2, sizeof *starts);
    p->order = ree_arena_alloc_array(&p->arena, n + 1, sizeof *p->order);
    p->position = ree_arena_alloc_array(&p->arena, n + 1, sizeof *p->position);
    bool *is_successor =
        ree_arena_alloc_array(&p->arena, graph->n_outputs + 1, sizeof *is_successor);
    if (!is_successor || !w.stack || !w.seen || !w.nodes || !anchors || !starts || !p->order ||
        !p->position)
        return ree_no_memory(err);
    if (graph->n_outputs) walk_from(&w, graph->outputs[main_output(p, is_successor)]);
    size_t n_main = w.n;
    for (size_t i = 0; i < graph->n_outputs; i++)
        walk_from(&w, graph->outputs[i]);
    find_anchors(&w, n_main, anchors);
    // A stable counting sort. Of the nodes with the same anchor, the main node was visited first.
    for (size_t i = 0; i < w.n; i++)
        starts[anchors[w.nodes[i]] + 1]++;
    for (size_t i = 0; i <= n_main; i++)
        starts[i + 1] += starts[i];
    memset(p->position, 0xff, (n + 1) * sizeof *p->position);
    for (size_t i = 0; i < w.n; i++) {
        uint32_t at = (uint32_t)starts[anchors[w.nodes[i]]]++;
        p->order[at] = w.nodes[i];
        p->position[w.nodes[i]] = at;
    }
    p->n_order = w.n;
    return move_sizes(p, err);
}
