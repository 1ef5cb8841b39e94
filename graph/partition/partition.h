// Cuts a graph into stages that run one after the other, each on its own device.
//
// A stage is a contiguous range of one canonical order of the nodes. The order depends only on the
// graph: not on the order of the nodes in the file, and not on names. Costs are integers counted
// from the graph, never measured. So a plan depends on the model, on the number of stages and, if
// they restrict it, on the memory limits.
//
// A control node computes masks, positions or sizes: it depends only on the model's inputs and on
// small constants, and costs almost nothing. Control nodes belong to no stage: each stage has
// copies of those it needs, so that the data that crosses a cut does not grow with the context. A
// kv cache stays in one stage: no cut may be between the first node that reads it and the
// last node that makes its successor.
#ifndef REE_GRAPH_PARTITION_PARTITION_H
#define REE_GRAPH_PARTITION_PARTITION_H

#include "graph/ir/ir.h"
#include "ree.h"

// A tensor that is kept from run to run: a graph input and the output that is its successor.
struct ree_partition_kv_cache {
    size_t input, output; // indexes into graph->inputs, graph->outputs
};

#define REE_STAGE_CONTROL UINT32_MAX // stage of a control node

struct ree_partition_options {
    size_t n_stages; // 1 to REE_MAX_STAGES
    size_t n_kv_caches;
    const struct ree_partition_kv_cache *kv_caches;
    const uint64_t *weight_limits; // maximum weight bytes per stage; NULL: no limits
    uint64_t context;              // positions assumed for costs; 0: REE_PARTITION_CONTEXT
};

// REE_MAX_STAGES (ree/plan.h) bounds the time and memory that a plan from a file can take.

// Positions of a cache that the costs assume by default.
#define REE_PARTITION_CONTEXT 1024
// The capacity of a cache, in positions, is a multiple of this.
#define REE_PARTITION_POSITIONS 256

struct ree_stage_cost {
    size_t n_nodes; // not counting control nodes
    // bytes of the constants that the stage reads, each counted once; shared weights count in each
    // stage
    uint64_t weight_bytes;
    // part of weight_bytes that a run of one row reads: of a lookup table only one row
    uint64_t work_bytes;
    uint64_t kv_cache_bytes; // of the caches, per position of one sequence
    uint64_t flops;          // per row
    uint64_t work;           // the quantity that is balanced: see README.md
};

// The boundary between stage i and stage i + 1.
struct ree_cut {
    size_t n_values;                 // live values, without control values
    const struct ree_value **values; // in the order of their ids
    uint64_t nbytes;                 // per row of one sequence; unknown dimensions count as 1
    const char *reason;              // why the cut is here: a sentence
};

struct ree_partition {
    struct ree_arena arena;
    uint64_t context; // context length used for the costs
    size_t n_order;
    uint32_t *order;    // ids of the nodes that are not control nodes, in canonical order
    uint32_t *stage_of; // by node id: its stage, or REE_STAGE_CONTROL
    size_t n_stages;
    size_t *ends; // by stage: one past its last node in `order`
    struct ree_stage_cost *costs;
    struct ree_cut *cuts; // n_stages - 1
};

// Finds the best plan. The graph must have gone through its passes and have its shapes inferred as
// far as possible. Fails with REE_INVALID if the graph has fewer than n_stages - 1 cut points
// (the message has their number), or if no plan keeps within the limits (the message names the
// largest part that cannot be cut).
enum ree_status ree_partition_plan(const struct ree_graph *graph,
                                   const struct ree_partition_options *options,
                                   struct ree_partition *out, struct ree_error *err);
// Makes the plan with the given cuts: stage i ends with the node that makes the value ends[i]
// (n_stages - 1 names, in order). Fails, with the reason, if one of them is not a place to cut.
enum ree_status ree_partition_from_cuts(const struct ree_graph *graph,
                                        const struct ree_partition_options *options,
                                        const char *const *ends, struct ree_partition *out,
                                        struct ree_error *err);
void ree_partition_finish(struct ree_partition *partition);

// A stage as a graph of its own, in its own arena. It shares constant data, attributes and strings
// with the whole graph, which must outlive it. Values keep their names, types and shapes.
struct ree_stage_input {
    // a value of an earlier stage; false: an input of the whole graph
    bool is_cut;
    bool shape_only;               // a kv cache that another stage keeps: only its shape is read
    size_t input;                  // index in the whole graph, unless is_cut
    const struct ree_value *value; // the value in the whole graph
};

struct ree_stage_graph {
    struct ree_graph *graph;
    size_t n_inputs; // same order as graph->inputs
    struct ree_stage_input *inputs;
    size_t n_outputs;                 // same order as graph->outputs
    const struct ree_value **outputs; // the values in the whole graph
    size_t n_model_outputs; // the first n_model_outputs outputs are outputs of the whole graph
    // indices of these outputs in it; the other outputs are values of the cut after the stage
    size_t *model_outputs;
    uint32_t *node_of; // by node of the stage's graph: its id in the whole graph
    bool *is_copy; // by node of the stage's graph: a control node that an earlier stage also has
};

// Finds the stages that keep n kv caches, into out[n]. A kv cache is kept by the stage that makes
// its successor; else by the first stage, in the graph's order, that reads it; else by the last
// stage.
enum ree_status ree_partition_stages_of_kv_caches(const struct ree_graph *graph,
                                                  const struct ree_partition *partition,
                                                  const struct ree_partition_kv_cache *kv_caches,
                                                  size_t n, size_t *out, struct ree_error *err);

// Extracts a stage. `always`: inputs of the whole graph that the stage has even if it does not read
// them.
//
// Inputs: the inputs of the whole graph that the stage reads, in their order; then the values of
// the cut before the stage that it reads.
//
// Outputs: the outputs of the whole graph that the stage makes, in their order; then the values of
// the cut after the stage that the stage itself makes, by id. Values that only pass through the
// stage are not outputs.
//
// Outputs and control nodes that no stage needs belong to the last stage. A control node may read
// the shape of a kv cache that another stage keeps. The stage then has that kv cache as an input
// with shape_only set: only its shape is read.
enum ree_status ree_partition_extract(const struct ree_graph *graph,
                                      const struct ree_partition_options *options,
                                      const struct ree_partition *partition, size_t stage,
                                      const size_t *always, size_t n_always,
                                      struct ree_stage_graph *out, struct ree_error *err);
void ree_stage_graph_finish(struct ree_stage_graph *stage); // also destroys the graph

#endif
