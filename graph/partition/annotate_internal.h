// Shared by the files of annotate. A position is a position in partition->order.
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
    uint32_t *position_of; // by node id; REE_NO_POSITION: a control node
    // by value id: its readers are readers[starts[id]] up to, not including, readers[starts[id +
    // 1]]
    size_t *reader_starts;
    uint32_t *readers; // positions, ascending
    bool *is_norm;     // by position
};

const struct ree_node *ree_annotator_node(const struct ree_annotator *a, uint32_t position);
bool ree_op_among(const struct ree_node *node, const char *const *ops); // `ops` ends with NULL
// Returns whether the value is the same in every run.
bool ree_annotator_constant(const struct ree_annotator *a, const struct ree_value *value);
// Returns whether the node is a product with weights.
bool ree_annotator_product(const struct ree_annotator *a, const struct ree_node *node);

bool ree_annotate_positions(struct ree_annotator *a); // false when memory is exhausted
void ree_annotate_values(struct ree_annotator *a);    // fills out->values
void ree_annotate_norms(struct ree_annotator *a);     // fills is_norm
// fills out->nodes; false when memory is exhausted
bool ree_annotate_layers(struct ree_annotator *a);

#endif
