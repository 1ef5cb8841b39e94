// What passes do to a graph when they have decided.
#ifndef REE_GRAPH_PASSES_REWRITE_H
#define REE_GRAPH_PASSES_REWRITE_H

#include "graph/ir.h"

// Replacements of values by others, and nodes to remove, both by id. A replaced value may be
// replaced by one that is itself replaced later.
struct ree_rewrite {
    struct ree_graph *graph;
    struct ree_value **replacement; // NULL: stays
    bool *removed;
};

// Runs a pass over the graph's subgraphs; whether one of them changed.
bool ree_pass_subgraphs(struct ree_graph *graph, bool (*pass)(struct ree_graph *));

// False: no memory, which the graph then says.
bool ree_rewrite_init(struct ree_rewrite *rewrite, struct ree_graph *graph);
void ree_rewrite_finish(struct ree_rewrite *rewrite);
// What stands for `value` now.
struct ree_value *ree_rewrite_resolve(const struct ree_rewrite *rewrite, struct ree_value *value);
// Redirects what one node reads, in its subgraphs too.
void ree_rewrite_node(struct ree_rewrite *rewrite, struct ree_node *node);
// Redirects every node, drops the removed ones and counts uses again. The graph's outputs are never
// replaced: their names are the model's interface.
void ree_rewrite_apply(struct ree_rewrite *rewrite);

// Whether the node draws random numbers, which follow from the name of its first output when it has
// no seed: two such nodes are not one, and none gets another name.
bool ree_node_is_random(const struct ree_node *node);

#endif
