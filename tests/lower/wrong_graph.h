// For the test wrong_nodes: random subgraphs (bodies of If, Loop, Scan and SequenceMap), and valid
// nodes from which wrong ones are made.
#ifndef REE_TESTS_LOWER_WRONG_GRAPH_H
#define REE_TESTS_LOWER_WRONG_GRAPH_H

#include "node.h"
#include "splitmix.h"

uint32_t wrong_below(struct splitmix *rng, uint32_t n);

// Valid nodes as text (the format is described in wrong_templates.c). Wrong nodes are derived from
// them by a few random changes.
struct wrong_template {
    const char *op, *inputs, *attrs;
};
extern const struct wrong_template wrong_templates[];
extern const size_t n_wrong_templates;

// Makes a random subgraph of n->graph for an attribute of n->node. Mostly it has the numbers of
// inputs and outputs that the node requires. The graph owns it.
struct ree_graph *wrong_graph(struct test_node *n, struct splitmix *rng);

#endif
