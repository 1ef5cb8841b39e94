// Cutting a graph into stages that run one after the other, each on a device of its own.
//
// A stage is a contiguous piece of one canonical order of the nodes, which depends on the graph
// alone: not on the order of the nodes in the file, nor on names. Costs are whole numbers counted
// from the graph, never measured, so a plan depends on the model, the number of stages and (where
// they bind) the limits of memory.
//
// Control nodes (masks, positions, sizes: what follows from the model's inputs and small constants
// alone, and costs next to nothing) belong to no stage: each stage has copies of those it needs, so
// that what crosses a cut does not grow with the context. A state (a cache of keys or values) stays
// with its stage: no cut lies between the first node that reads it and the last one that makes its
// successor.
#ifndef REE_GRAPH_PARTITION_PARTITION_H
#define REE_GRAPH_PARTITION_PARTITION_H

#include "graph/ir.h"

// What is kept from run to run: a graph input and the output that is its successor.
struct ree_partition_state {
    size_t input, output; // indexes into graph->inputs, graph->outputs
};

#define REE_STAGE_CONTROL UINT32_MAX // of a control node

struct ree_partition_options {
    size_t n_stages; // 1 to REE_MAX_STAGES
    size_t n_states;
    const struct ree_partition_state *states;
    const uint64_t *weight_limits; // bytes of weights that each stage may have; NULL: no limits
    uint64_t context;              // 0: REE_PARTITION_CONTEXT
};

// A bound on the time and memory that a plan from a file can take.
#define REE_MAX_STAGES 1024

// Rows of a cache that the costs assume where nothing else is said.
#define REE_PARTITION_CONTEXT 1024
// Caches have room for a multiple of so many rows.
#define REE_PARTITION_ROWS 256

struct ree_stage_cost {
    size_t n_nodes;        // control nodes not counted
    uint64_t weight_bytes; // constants that the stage reads, each once; tied weights count in each
    uint64_t work_bytes;   // of these, what a run of one row reads: of a table its one row
    uint64_t state_bytes;  // per row of the caches, of one sequence
    uint64_t flops;        // per row
    uint64_t work;         // what is balanced: see README.md
};

// Between stage i and stage i + 1.
struct ree_cut {
    size_t n_values;                 // live ones, control values not counted
    const struct ree_value **values; // by their ids
    uint64_t nbytes;                 // per row of one sequence; unknown sizes count as 1
    const char *reason;              // why it is here, a sentence
};

struct ree_partition {
    struct ree_arena arena;
    uint64_t context; // that was counted with
    size_t n_order;
    uint32_t *order;    // ids of the nodes that are no control nodes, in canonical order
    uint32_t *stage_of; // per node id: its stage or REE_STAGE_CONTROL
    size_t n_stages;
    size_t *ends; // per stage: one past its last node in `order`
    struct ree_stage_cost *costs;
    struct ree_cut *cuts; // n_stages - 1
};

// Plans. The graph is one after its passes, with shapes inferred as far as they follow. Fails with
// REE_INVALID where the graph has no n_stages - 1 places to cut, saying how many there are, or
// where no plan keeps within the limits, naming the largest piece that cannot be cut.
enum ree_status ree_partition_plan(const struct ree_graph *graph,
                                   const struct ree_partition_options *options,
                                   struct ree_partition *out, struct ree_error *err);
// The same with cuts that are given: stage i ends with the node that makes the value ends[i]
// (n_stages - 1 names, in order). Fails where one is not a place to cut, saying why.
enum ree_status ree_partition_from_cuts(const struct ree_graph *graph,
                                        const struct ree_partition_options *options,
                                        const char *const *ends, struct ree_partition *out,
                                        struct ree_error *err);
void ree_partition_finish(struct ree_partition *partition);

// A stage as a graph of its own, in an arena of its own. It shares constant data, attributes and
// strings with the whole graph, which has to outlive it. Values keep their names, types and shapes.
struct ree_stage_input {
    bool is_cut;                   // a value of an earlier stage, else an input of the whole graph
    bool shape_only;               // a state that another stage keeps: its shape alone is read
    size_t input;                  // of the whole graph, if so
    const struct ree_value *value; // of the whole graph, in either case
};

struct ree_stage_graph {
    struct ree_graph *graph;
    size_t n_inputs; // in the order of graph->inputs
    struct ree_stage_input *inputs;
    size_t n_outputs;                 // in the order of graph->outputs
    const struct ree_value **outputs; // of the whole graph
    size_t n_whole;                   // the first of them are the whole graph's outputs,
    size_t *whole_outputs;            // of these numbers; the others are values of the cut behind
    uint32_t *node_of;                // per node of the stage's graph: its id in the whole graph
    bool *is_copy; // per node likewise: a control node that an earlier stage has, too
};

// The stages that keep n states, to out[n]: each the one that makes the successor, or else the
// first in the graph's order that reads it; the last where no stage does either.
enum ree_status ree_partition_stages_of_states(const struct ree_graph *graph,
                                               const struct ree_partition *partition,
                                               const struct ree_partition_state *states, size_t n,
                                               size_t *out, struct ree_error *err);

// `always`: inputs of the whole graph that the stage has whether it reads them or not. Its inputs
// are those of the whole graph that it reads, in their order, then those values of the cut before
// it that it reads. Outputs are the whole graph's that the stage makes, in their order, then those
// of the cut behind it that it makes itself (values that only pass through are not among them), by
// their ids. Outputs and control nodes that no stage needs are the last stage's. A control node may
// read the shape of a state that another stage keeps: the stage then has that input, of which only
// the shape matters (shape_only).
enum ree_status ree_partition_extract(const struct ree_graph *graph,
                                      const struct ree_partition_options *options,
                                      const struct ree_partition *partition, size_t stage,
                                      const size_t *always, size_t n_always,
                                      struct ree_stage_graph *out, struct ree_error *err);
void ree_stage_graph_finish(struct ree_stage_graph *stage); // destroys the graph, too

#endif
