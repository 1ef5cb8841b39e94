// Finds the roles of a model's nodes from the graph's structure, not from names: from its kv caches
// and the nodes that read them, from tables that integer inputs index, and from the places where
// only the results of a single node are live.
//
// `ree-run plan` prints the roles and writes them to files. No run depends on them.
#ifndef REE_GRAPH_PARTITION_ANNOTATE_H
#define REE_GRAPH_PARTITION_ANNOTATE_H

#include "graph/partition/partition.h"

enum ree_node_role {
    REE_NODE_ROLE_OTHER,
    REE_NODE_ROLE_EMBEDDING, // from the token ids to the first layer
    // in a layer: nodes that read a kv cache or multiply two activations, with their projections
    REE_NODE_ROLE_ATTENTION,
    REE_NODE_ROLE_FEED_FORWARD, // in a layer: after attention, or parallel to it
    REE_NODE_ROLE_NORM,         // a norm operator, or a step of a norm
    REE_NODE_ROLE_HEAD,         // after the last layer, except the last norm
    REE_NODE_ROLE_CONTROL,      // a control node (partition.h)
};

enum ree_value_role {
    REE_VALUE_ACTIVATION, // depends on the model's inputs
    REE_VALUE_WEIGHT,     // any other constant, including those computed from constants
    REE_VALUE_CONSTANT,   // an int32, int64, bool or string constant, or one of a single element
    REE_VALUE_KV_CACHE,   // a kv cache, its successor, or either after data movement
};

#define REE_PHASE_PREFILL 1u
#define REE_PHASE_DECODE 2u

#define REE_NO_LAYER (-1)

struct ree_annotation {
    enum ree_node_role role;
    int32_t layer;   // number of the node's layer, from 0; REE_NO_LAYER: in no layer
    uint32_t phases; // set of REE_PHASE_ bits: the phases that run the node
};

struct ree_annotations {
    struct ree_arena arena;
    struct ree_annotation *nodes; // by node id
    enum ree_value_role *values;  // by value id
    int32_t n_layers;
};

// Annotates all nodes and values of `graph`. `partition` may be any plan of the graph that was made
// with the kv caches in `options`. Release *out with ree_annotations_finish.
enum ree_status ree_annotate(const struct ree_graph *graph,
                             const struct ree_partition_options *options,
                             const struct ree_partition *partition, struct ree_annotations *out,
                             struct ree_error *err);
void ree_annotations_finish(struct ree_annotations *annotations);

// Returns the phases (REE_PHASE_ bits) that run a branch of an If node. If the condition is a bool
// input of the graph, it is assumed to tell whether there are past tokens: the then branch is for
// decoding, the else branch for prefill. Otherwise returns both phases.
uint32_t ree_branch_phases(const struct ree_graph *graph, const struct ree_node *node,
                           const struct ree_attr *branch);

const char *ree_node_role_name(enum ree_node_role role);   // such as "feed_forward"
const char *ree_value_role_name(enum ree_value_role role); // such as "kv_cache"
const char *ree_phases_name(uint32_t phases);              // such as "prefill,decode"

// Appends a description of a stage, such as "embedding, layers 0-2, attention of layer 3". For a
// graph without layers, lists its most frequent operators: "Conv 2, Relu 2, MaxPool 1".
void ree_stage_contents(const struct ree_graph *graph, const struct ree_annotations *annotations,
                        const struct ree_partition *partition, size_t stage,
                        struct ree_strbuf *out);

#endif
