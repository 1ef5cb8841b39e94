// Puts the nodes of a graph in topological order. Files must list nodes in this order, and their
// order is then kept. Other orders are accepted and sorted. The sort is a depth-first walk over
// producers with an explicit stack, so that a long chain of nodes in reverse order does not
// recurse.
#include "graph/onnx/reader.h"

struct edges {
    const struct ree_graph *graph;
    size_t n;
    uint32_t *producers; // NULL while the edges are counted
};

static void add_edge(void *user, struct ree_value **use) {
    struct edges *edges = user;
    const struct ree_value *value = *use;
    if (value->graph != edges->graph || !value->producer) return;
    if (edges->producers) edges->producers[edges->n] = value->producer->id;
    edges->n++;
}

enum state { UNSEEN, OPEN, DONE };

struct frame {
    uint32_t node;
    size_t next; // index of the next edge
};

static enum ree_status cycle(struct ree_onnx_reader *reader, const struct ree_graph *graph,
                             uint32_t from, uint32_t to) {
    char label[320], other[320];
    ree_node_label(graph->nodes[from], label, sizeof label);
    if (from == to)
        return ree_fail(reader->err, REE_INVALID, "%s reads its own output: the graph has a cycle",
                        label);
    return ree_fail(reader->err, REE_INVALID,
                    "%s reads the output of %s, which depends on it: the graph has a cycle", label,
                    ree_node_label(graph->nodes[to], other, sizeof other));
}

enum ree_status ree_onnx_order_nodes(struct ree_onnx_reader *reader, struct ree_graph *graph) {
    size_t n = graph->n_nodes;
    struct ree_arena *scratch = &reader->scratch;
    // Node i has the edges starts[i] up to, not including, starts[i + 1].
    size_t *starts = ree_arena_alloc_array(scratch, n + 1, sizeof *starts);
    unsigned char *states = ree_arena_alloc(scratch, n);
    struct frame *stack = ree_arena_alloc_array(scratch, n, sizeof *stack);
    struct ree_node **ordered = ree_arena_alloc_array(graph->arena, n, sizeof *ordered);
    if (!starts || !states || !stack || !ordered) return ree_onnx_no_memory(reader);
    struct edges edges = {.graph = graph};
    for (size_t i = 0; i < n; i++) {
        ree_node_visit_uses(graph->nodes[i], add_edge, &edges);
        starts[i + 1] = edges.n;
    }
    edges.producers = ree_arena_alloc_array(scratch, edges.n, sizeof *edges.producers);
    if (!edges.producers) return ree_onnx_no_memory(reader);
    edges.n = 0;
    for (size_t i = 0; i < n; i++)
        ree_node_visit_uses(graph->nodes[i], add_edge, &edges);

    size_t n_ordered = 0;
    for (uint32_t root = 0; root < n; root++) {
        if (states[root] != UNSEEN) continue;
        size_t depth = 0;
        stack[depth++] = (struct frame){root, starts[root]};
        states[root] = OPEN;
        while (depth > 0) {
            struct frame *top = &stack[depth - 1];
            if (top->next == starts[top->node + 1]) {
                states[top->node] = DONE;
                ordered[n_ordered++] = graph->nodes[top->node];
                depth--;
                continue;
            }
            uint32_t producer = edges.producers[top->next++];
            if (states[producer] == OPEN) return cycle(reader, graph, top->node, producer);
            if (states[producer] == DONE) continue;
            states[producer] = OPEN;
            stack[depth++] = (struct frame){producer, starts[producer]};
        }
    }
    graph->nodes = ordered;
    for (size_t i = 0; i < n; i++)
        graph->nodes[i]->id = (uint32_t)i;
    return REE_OK;
}
