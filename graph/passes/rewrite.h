// Helpers with which passes replace values and remove nodes of a graph.
#ifndef REE_GRAPH_PASSES_REWRITE_H
#define REE_GRAPH_PASSES_REWRITE_H

#include "graph/ir/ir.h"

// Replacements of values, and nodes to remove; both arrays are indexed by id. A replacement may
// itself have a replacement.
struct ree_rewrite {
    struct ree_graph *graph;
    struct ree_value **replacement; // by value id; NULL: the value stays
    bool *removed;
};

// Runs a pass over the subgraphs of all nodes. Returns whether one of them changed.
bool ree_pass_subgraphs(struct ree_graph *graph, bool (*pass)(struct ree_graph *));

// Starts a rewrite without replacements and removals. Returns false if memory is exhausted, and
// then sets graph->lacked_memory.
bool ree_rewrite_init(struct ree_rewrite *rewrite, struct ree_graph *graph);
void ree_rewrite_finish(struct ree_rewrite *rewrite);
// Returns the value that finally replaces `value`: `value` itself if it is not replaced.
struct ree_value *ree_rewrite_resolve(const struct ree_rewrite *rewrite, struct ree_value *value);
// Redirects the inputs of one node, including inputs in its subgraphs, to their replacements.
void ree_rewrite_node(struct ree_rewrite *rewrite, struct ree_node *node);
// Redirects the inputs of every node to their replacements, drops the removed nodes and recounts
// uses. The graph's outputs are not replaced: their names are part of the model's interface.
void ree_rewrite_apply(struct ree_rewrite *rewrite);

// Returns whether the node multiplies by a matrix that is quantised in blocks: MatMulNBits of the
// domain com.microsoft, or of ree.
bool ree_node_is_matmul_nbits(const struct ree_node *node);

#endif
