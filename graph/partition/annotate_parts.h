// What the files of annotate share. Places are positions in partition->order.
#ifndef REE_GRAPH_PARTITION_ANNOTATE_PARTS_H
#define REE_GRAPH_PARTITION_ANNOTATE_PARTS_H

#include "graph/partition/annotate.h"

#define REE_NO_PLACE UINT32_MAX

struct ree_annotator {
    const struct ree_graph *graph;
    const struct ree_partition_options *options;
    const struct ree_partition *partition;
    struct ree_annotations *out;
    struct ree_arena scratch;
    uint32_t *place_of;    // per node; REE_NO_PLACE: a control node
    size_t *reader_starts; // per value: its readers are readers[starts[id]] to [starts[id + 1]]
    uint32_t *readers;     // places, ascending
    bool *is_norm;         // per place
};

const struct ree_node *ree_annotator_node(const struct ree_annotator *a, uint32_t place);
bool ree_op_among(const struct ree_node *node, const char *const *ops); // NULL ends the list
// A value that is the same in every run.
bool ree_annotator_constant(const struct ree_annotator *a, const struct ree_value *value);
// Whether it is a product with weights.
bool ree_annotator_product(const struct ree_annotator *a, const struct ree_node *node);

bool ree_annotate_places(struct ree_annotator *a); // false: out of memory
void ree_annotate_values(struct ree_annotator *a); // out->values
void ree_annotate_norms(struct ree_annotator *a);  // is_norm
bool ree_annotate_layers(struct ree_annotator *a); // out->nodes; false: out of memory

#endif
