// What the nodes of a model are for, found from the graph's structure and not from names: which
// values are caches and what reads them, which table integer inputs look rows up in, where a single
// node's results are all that is alive, what lies behind the last layer.
//
// For people and for files (ree-run plan); nothing that runs depends on it.
#ifndef REE_GRAPH_PARTITION_ANNOTATE_H
#define REE_GRAPH_PARTITION_ANNOTATE_H

#include "graph/partition/partition.h"

enum ree_node_role {
    REE_NODE_ROLE_OTHER,
    REE_NODE_ROLE_EMBEDDING, // from ids to the first layer
    REE_NODE_ROLE_ATTENTION, // of a layer: what reads a cache or mixes rows, with its projections
    REE_NODE_ROLE_FEED_FORWARD, // of a layer
    REE_NODE_ROLE_NORM,         // an operator or the steps of one
    REE_NODE_ROLE_HEAD,         // behind the last layer and the last norm
    REE_NODE_ROLE_CONTROL,      // a control node (partition.h)
};

enum ree_value_role {
    REE_VALUE_ACTIVATION, // depends on the model's inputs
    REE_VALUE_WEIGHT,     // a constant, or made of constants
    REE_VALUE_CONSTANT,   // one of whole numbers, or of a single element: a shape, axes, a factor
    REE_VALUE_KV_CACHE,   // a state, its successor, or either moved about
};

#define REE_PHASE_PREFILL 1u
#define REE_PHASE_DECODE 2u

#define REE_NO_LAYER (-1)

struct ree_annotation {
    enum ree_node_role role;
    int32_t layer;   // from 0, in canonical order; REE_NO_LAYER
    uint32_t phases; // REE_PHASE_
};

struct ree_annotations {
    struct ree_arena arena;
    struct ree_annotation *nodes; // by id
    enum ree_value_role *values;  // by id
    int32_t n_layers;
};

// `partition` is any plan of the graph, made with the states that `options` has.
enum ree_status ree_annotate(const struct ree_graph *graph,
                             const struct ree_partition_options *options,
                             const struct ree_partition *partition, struct ree_annotations *out,
                             struct ree_error *err);
void ree_annotations_finish(struct ree_annotations *annotations);

// Of a branch of an If node: where an input of the graph, a bool, chooses it, whether there is a
// past, the then branch decodes and the else branch is the prefill. Both elsewhere.
uint32_t ree_branch_phases(const struct ree_graph *graph, const struct ree_node *node,
                           const struct ree_attr *branch);

const char *ree_node_role_name(enum ree_node_role role);   // "feed_forward"
const char *ree_value_role_name(enum ree_value_role role); // "kv_cache"
const char *ree_phases_name(uint32_t phases);              // "prefill,decode"

// Appends what a stage has: "embedding, layers 0-2, attention of layer 3"; of a graph without
// layers, its commonest operators: "Conv 2, Relu 2, MaxPool 1".
void ree_stage_contents(const struct ree_graph *graph, const struct ree_annotations *annotations,
                        const struct ree_partition *partition, size_t stage,
                        struct ree_strbuf *out);

#endif
