// Finds the roles of a model's nodes from the graph's structure, not from names: which values are
// kv caches and what reads them, which tables integer inputs index, where the results of a single
// node are all that is live, and what follows the last layer.
//
// For people and for files (ree-run plan). Nothing that runs depends on it.
#ifndef REE_GRAPH_PARTITION_ANNOTATE_H
#define REE_GRAPH_PARTITION_ANNOTATE_H

#include "graph/partition/partition.h"

enum ree_node_role {
    REE_NODE_ROLE_OTHER,
    REE_NODE_ROLE_EMBEDDING, // from token ids to the first layer
    // in a layer: nodes that read a cache or mix rows, with their projections
    REE_NODE_ROLE_ATTENTION,
    REE_NODE_ROLE_FEED_FORWARD, // in a layer
    REE_NODE_ROLE_NORM,         // a norm operator, or its steps
    REE_NODE_ROLE_HEAD,         // after the last layer and the last norm
    REE_NODE_ROLE_CONTROL,      // a control node (partition.h)
};

enum ree_value_role {
    REE_VALUE_ACTIVATION, // depends on the model's inputs
    REE_VALUE_WEIGHT,     // a constant, or computed from constants
    REE_VALUE_CONSTANT,   // an int32, int64, bool or string constant, or one of a single element
    REE_VALUE_KV_CACHE,   // a kv cache, its successor, or either after data movement
};

#define REE_PHASE_PREFILL 1u
#define REE_PHASE_DECODE 2u

#define REE_NO_LAYER (-1)

struct ree_annotation {
    enum ree_node_role role;
    int32_t layer;   // in canonical order, from 0; REE_NO_LAYER: in none
    uint32_t phases; // bits REE_PHASE_
};

struct ree_annotations {
    struct ree_arena arena;
    struct ree_annotation *nodes; // by id
    enum ree_value_role *values;  // by id
    int32_t n_layers;
};

// `partition` may be any plan of the graph that was made with the kv caches in `options`.
enum ree_status ree_annotate(const struct ree_graph *graph,
                             const struct ree_partition_options *options,
                             const struct ree_partition *partition, struct ree_annotations *out,
                             struct ree_error *err);
void ree_annotations_finish(struct ree_annotations *annotations);

// Returns the phases of a branch of an If node. If the condition is a bool input of the graph (it
// tells whether there is a past), the then branch is the decode phase and the else branch the
// prefill phase. Otherwise returns both.
uint32_t ree_branch_phases(const struct ree_graph *graph, const struct ree_node *node,
                           const struct ree_attr *branch);

const char *ree_node_role_name(enum ree_node_role role);   // "feed_forward"
const char *ree_value_role_name(enum ree_value_role role); // "kv_cache"
const char *ree_phases_name(uint32_t phases);              // "prefill,decode"

// Appends a description of a stage: "embedding, layers 0-2, attention of layer 3". For a graph
// without layers it lists the most frequent operators: "Conv 2, Relu 2, MaxPool 1".
void ree_stage_contents(const struct ree_graph *graph, const struct ree_annotations *annotations,
                        const struct ree_partition *partition, size_t stage,
                        struct ree_strbuf *out);

#endif
