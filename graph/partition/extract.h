// Shared by the files extract*.c, which extract a stage from a graph.
#ifndef REE_GRAPH_PARTITION_EXTRACT_H
#define REE_GRAPH_PARTITION_EXTRACT_H

#include "graph/partition/partition.h"

struct ree_extract_reads {
    const struct ree_graph *graph;
    bool *values; // by value id of `graph`: whether a node or output reads it
};

struct ree_extract {
    const struct ree_graph *graph;
    const struct ree_partition_options *options;
    const struct ree_partition *partition;
    size_t stage;
    struct ree_stage_graph *out;
    struct ree_arena scratch;
    struct ree_extract_reads reads; // the values that this stage reads
    bool *has;                      // by node id: this stage contains it
    bool *is_elsewhere;             // by value id: a kv cache that another stage keeps
    size_t *kv_cache_stage;         // by index of the kv cache: the stage that keeps it
    size_t *kv_cache_at;  // by index of the graph's input: 1 + index of its kv cache; 0: none
    size_t *output_stage; // by index of the graph's output: the stage that returns it
    // by node id: the first stage that contains it; UINT32_MAX: none
    uint32_t *first;
    struct ree_value **map; // by value id: its copy in the stage's graph; NULL: not copied yet
    struct ree_error *err;
};

// A graph that is being copied, its copy, and the frame of the enclosing graph (NULL: none).
struct ree_extract_frame {
    const struct ree_graph *from;
    struct ree_graph *to;
    struct ree_value **map;
    const struct ree_extract_frame *outer;
};

// Fills kv_cache_stage, kv_cache_at, output_stage and first of *x (extract_owners.c).
enum ree_status ree_extract_find_owners(struct ree_extract *x);
// Returns whether the value is an input of the model. Before IR version 4, weights also had to be
// listed as inputs; they are not inputs here.
bool ree_extract_is_input(const struct ree_graph *graph, const struct ree_value *value);
// Adds a copy of the value to the graph `to`, without a producer.
enum ree_status ree_extract_copy_value(struct ree_extract *x, struct ree_graph *to,
                                       const struct ree_value *value, struct ree_value **out);
// Sets *out to the copy of a value that a copied node reads. A constant is copied at its first use.
// Fails with REE_INTERNAL if another value has no copy.
enum ree_status ree_extract_find_value(struct ree_extract *x, const struct ree_extract_frame *frame,
                                       const struct ree_value *value, struct ree_value **out);
// Appends a copy of the node, with its subgraphs, to frame->to, which must have capacity for it.
enum ree_status ree_extract_copy_node(struct ree_extract *x, const struct ree_extract_frame *frame,
                                      const struct ree_node *node);

#endif
