// Extracting a stage: what its files share.
#ifndef REE_GRAPH_PARTITION_EXTRACT_H
#define REE_GRAPH_PARTITION_EXTRACT_H

#include "graph/partition/partition.h"

struct ree_extract_reads {
    const struct ree_graph *graph;
    bool *values; // per value of the graph
};

struct ree_extract {
    const struct ree_graph *graph;
    const struct ree_partition_options *options;
    const struct ree_partition *partition;
    size_t stage;
    struct ree_stage_graph *out;
    struct ree_arena scratch;
    struct ree_extract_reads reads; // of this stage
    bool *has;                      // per node: this stage has it
    bool *is_elsewhere;             // per value: a state that another stage keeps
    size_t *state_stage;            // per state: the stage that keeps it
    size_t *state_at;               // per input: 1 + the state that it is; 0: none
    size_t *output_stage;           // per output: the stage that hands it out
    uint32_t *first;                // per node: the first stage that has it; UINT32_MAX: none
    struct ree_value **map;         // per value: its copy, or NULL
    struct ree_error *err;
};

// A graph and its copy, within those around it.
struct ree_extract_frame {
    const struct ree_graph *from;
    struct ree_graph *to;
    struct ree_value **map;
    const struct ree_extract_frame *outer;
};

// extract_owners.c: the four above.
enum ree_status ree_extract_find_owners(struct ree_extract *x);
// Before IR version 4 weights had to be listed as inputs.
bool ree_extract_is_input(const struct ree_graph *graph, const struct ree_value *value);
// A copy of the value alone, in `to`.
enum ree_status ree_extract_copy_value(struct ree_extract *x, struct ree_graph *to,
                                       const struct ree_value *value, struct ree_value **out);
// The copy of a value that is read; that of a constant is made when it is first asked for.
enum ree_status ree_extract_find_value(struct ree_extract *x, const struct ree_extract_frame *frame,
                                       const struct ree_value *value, struct ree_value **out);
// Appends a copy of the node, with its subgraphs, to frame->to, which has room for it.
enum ree_status ree_extract_copy_node(struct ree_extract *x, const struct ree_extract_frame *frame,
                                      const struct ree_node *node);

#endif
