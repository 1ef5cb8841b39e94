// Shared by the files annotate*.c. A position is an index into partition->order.
#ifndef REE_GRAPH_PARTITION_ANNOTATE_INTERNAL_H
#define REE_GRAPH_PARTITION_ANNOTATE_INTERNAL_H

#include "graph/partition/annotate.h"

#define REE_NO_POSITION UINT32_MAX

struct ree_annotator {
    const struct ree_graph *graph;
    const struct ree_partition_options *options;
    const struct ree_partition *partition;
    struct ree_annotations *out;
    struct ree_arena scratch;
    uint32_t *position_of; // position of each node, by node id; REE_NO_POSITION: a control node
    // The readers of value `id` are readers[reader_starts[id]] up to, not including,
    // readers[reader_starts[id + 1]]: positions of nodes, ascending.
    size_t *reader_starts;
    uint32_t *readers;
    bool *is_norm; // by position: the node is a norm or a step of one
};

const struct ree_node *ree_annotator_node(const struct ree_annotator *a, uint32_t position);
// Returns whether the node's operator is one of `ops`, a list of names that ends with NULL.
bool ree_op_among(const struct ree_node *node, const char *const *ops);
// Returns whether the value is the same in every run: a constant, or computed from constants.
bool ree_annotator_constant(const struct ree_annotator *a, const struct ree_value *value);
// Returns whether the node multiplies by weights: by a constant of rank 2 or more.
bool ree_annotator_product(const struct ree_annotator *a, const struct ree_node *node);

// Fills position_of, reader_starts and readers, and allocates is_norm. Returns false if memory is
// exhausted.
bool ree_annotate_positions(struct ree_annotator *a);
void ree_annotate_values(struct ree_annotator *a); // fills out->values
void ree_annotate_norms(struct ree_annotator *a);  // fills is_norm
// Fills out->nodes and out->n_layers. Returns false if memory is exhausted.
bool ree_annotate_layers(struct ree_annotator *a);

#endif
