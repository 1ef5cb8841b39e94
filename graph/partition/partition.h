// Cuts a graph into stages that run one after the other, each on its own device.
//
// A stage is a contiguous range of one canonical order of the nodes. The order depends only on the
// graph: not on the order of the nodes in the file, and not on names. Costs are integers counted
// from the graph, never measured. So a plan depends only on the model with its kv caches, on the
// number of stages, on the context length that the costs assume and, if they restrict it, on the
// memory limits.
//
// A control node computes masks, positions or sizes: it depends only on the model's inputs and on
// small constants, and costs almost nothing. Control nodes belong to no stage: each stage has
// copies of those it needs, so that the data that crosses a cut does not grow with the context. A
// kv cache stays in one stage: no cut may have nodes of the same kv cache on both sides. These are
// the nodes that read it, the node that makes its successor, and the nodes that read the successor.
#ifndef REE_GRAPH_PARTITION_PARTITION_H
#define REE_GRAPH_PARTITION_PARTITION_H

#include "graph/ir/ir.h"
#include "ree.h"

// A tensor that is kept from run to run: a graph input and the output that is its successor.
struct ree_partition_kv_cache {
    size_t input, output; // indexes into graph->inputs and graph->outputs
};

#define REE_STAGE_CONTROL UINT32_MAX // stage of a control node

struct ree_partition_options {
    size_t n_stages; // 1 to REE_MAX_STAGES
    size_t n_kv_caches;
    const struct ree_partition_kv_cache *kv_caches;
    const uint64_t *weight_limits; // maximum weight bytes per stage; NULL: no limits
    // positions of a sequence that the costs assume; 0 means REE_PARTITION_CONTEXT
    uint64_t context;
};

// REE_MAX_STAGES (ree/plan.h) bounds the time and memory that a plan from a file can take.

// Positions of a sequence that the costs assume by default.
#define REE_PARTITION_CONTEXT 1024
// The capacity of a kv cache, in positions, is a multiple of this.
#define REE_PARTITION_POSITIONS 256

struct ree_stage_cost {
    size_t n_nodes; // nodes, not counting control nodes
    // bytes of the constants that the stage reads, each counted once; a constant that several
    // stages read counts in each of them
    uint64_t weight_bytes;
    // the part of weight_bytes that a run over one token reads: of a lookup table, only one row
    uint64_t work_bytes;
    // bytes of the stage's kv caches per position of one sequence
    uint64_t kv_cache_bytes;
    uint64_t flops; // floating-point operations per token
    // the cost that the planner balances: work_bytes + kv_cache_bytes * context + flops / 16
    uint64_t work;
};

// The boundary between stage i and stage i + 1.
struct ree_cut {
    size_t n_values; // number of values that cross the cut, without control nodes' results
    const struct ree_value **values; // [n_values], in the order of their ids
    // bytes per token of the values that cross the cut; unknown dimensions count as 1
    uint64_t nbytes;
    const char *reason; // one sentence: why the cut is here
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
    struct ree_cut *cuts; // [n_stages - 1]
};

// Makes the best plan. The graph must have gone through its passes and have its shapes inferred as
// far as possible. Fails with REE_INVALID if the graph has fewer than n_stages - 1 cut points (the
// message has their number), or if no plan keeps within the weight limits (the message names the
// largest range of nodes that cannot be cut).
enum ree_status ree_partition_plan(const struct ree_graph *graph,
                                   const struct ree_partition_options *options,
                                   struct ree_partition *out, struct ree_error *err);
// Makes the plan with the given cuts: stage i ends with the node that makes the value named ends[i]
// (n_stages - 1 names, in canonical order). Fails with REE_INVALID, with the reason, if the graph
// cannot be cut after one of these nodes.
enum ree_status ree_partition_from_cuts(const struct ree_graph *graph,
                                        const struct ree_partition_options *options,
                                        const char *const *ends, struct ree_partition *out,
                                        struct ree_error *err);
void ree_partition_finish(struct ree_partition *partition);

// An input of a stage's graph.
struct ree_stage_input {
    bool is_cut;                   // made by an earlier stage; false: an input of the whole graph
    bool shape_only;               // a kv cache that another stage keeps: only its shape is read
    size_t input;                  // index into the whole graph's inputs; unused if is_cut
    const struct ree_value *value; // the value in the whole graph
};

// A stage as a graph of its own, in its own arena. It shares constant data, attributes and strings
// with the whole graph, which must outlive it. Values keep their names, types and shapes.
struct ree_stage_graph {
    struct ree_graph *graph;
    size_t n_inputs; // number of `inputs`, which are in the order of graph->inputs
    struct ree_stage_input *inputs;
    size_t n_outputs; // number of `outputs`, which are in the order of graph->outputs
    const struct ree_value **outputs; // the outputs as values of the whole graph
    // the first n_model_outputs outputs are outputs of the whole graph; the others are values of
    // the cut after the stage
    size_t n_model_outputs;
    // [n_model_outputs]: output i of the stage is output model_outputs[i] of the whole graph
    size_t *model_outputs;
    uint32_t *node_of; // by node id of the stage's graph: the node's id in the whole graph
    // by node id of the stage's graph: whether it is a control node that an earlier stage also has
    bool *is_copy;
};

// Sets out[i] to the stage that keeps kv cache i, for i < n. A kv cache is kept by the stage that
// makes its successor; else by the stage of the first node, in the graph's order, that reads it;
// else by the last stage.
enum ree_status ree_partition_stages_of_kv_caches(const struct ree_graph *graph,
                                                  const struct ree_partition *partition,
                                                  const struct ree_partition_kv_cache *kv_caches,
                                                  size_t n, size_t *out, struct ree_error *err);

// Extracts stage number `stage` as a graph of its own. always[n_always]: indexes of inputs of the
// whole graph that the stage gets even if it does not read them. Release *out with
// ree_stage_graph_finish.
//
// Inputs of the stage: first the inputs of the whole graph that the stage reads, in their order;
// then the values of the cut before the stage that it reads.
//
// Outputs of the stage: first the outputs of the whole graph that the stage makes, in their order;
// then the values of the cut after the stage that the stage itself makes, by id. Values that only
// pass through the stage are not outputs.
//
// Outputs and control nodes that no stage needs belong to the last stage. A control node may read
// the shape of a kv cache that another stage keeps. The stage then has that kv cache as an input
// with shape_only set.
enum ree_status ree_partition_extract(const struct ree_graph *graph,
                                      const struct ree_partition_options *options,
                                      const struct ree_partition *partition, size_t stage,
                                      const size_t *always, size_t n_always,
                                      struct ree_stage_graph *out, struct ree_error *err);
void ree_stage_graph_finish(struct ree_stage_graph *stage); // also destroys stage->graph

#endif
