// Random numbers for wrong_nodes, and random subgraphs: bodies for If, Loop, Scan and SequenceMap,
// most of which fit their node.
#ifndef REE_TESTS_LOWER_WRONG_GRAPH_H
#define REE_TESTS_LOWER_WRONG_GRAPH_H

#include "node.h"
#include "splitmix.h"

uint32_t wrong_below(struct splitmix *rng, uint32_t n);

// Valid nodes. Wrong nodes are derived from them by a change or two.
struct wrong_template {
    const char *op, *inputs, *attrs;
};
extern const struct wrong_template wrong_templates[];
extern const size_t n_wrong_templates;

// Returns a subgraph of n->graph for an attribute of n->node, allocated in the graph's arena.
struct ree_graph *wrong_graph(struct test_node *n, struct splitmix *rng);

#endif
