// Random numbers for wrong_nodes, and random subgraphs: bodies for If, Loop, Scan and SequenceMap
// that fit their node more often than not.
#ifndef REE_TESTS_LOWER_WRONG_GRAPH_H
#define REE_TESTS_LOWER_WRONG_GRAPH_H

#include "node.h"

struct wrong_random {
    uint64_t state;
};
uint32_t wrong_below(struct wrong_random *rng, uint32_t n);

// Nodes that are right, from which wrong ones are made by a change or two.
struct wrong_template {
    const char *op, *inputs, *attrs;
};
extern const struct wrong_template wrong_templates[];
extern const size_t n_wrong_templates;

// For an attribute of n->node; part of n->graph, in its arena.
struct ree_graph *wrong_graph(struct test_node *n, struct wrong_random *rng);

#endif
