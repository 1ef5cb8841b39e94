// Shared by the parts of the planner. Every result follows from the structure of the graph: ids and
// names of nodes and values have no influence.
#ifndef REE_GRAPH_PARTITION_PLANNER_H
#define REE_GRAPH_PARTITION_PLANNER_H

#include "graph/partition/partition.h"

// For sums of numbers from the file: does not overflow. Results saturate at 64 bits.
typedef unsigned __int128 ree_sum;

// Maximum size in bytes of a constant that a control node reads, and of a control node's
// attributes.
#define REE_CONTROL_BYTES 16384
#define REE_NO_POSITION UINT32_MAX // position of control nodes, and of nodes that no output needs

// A read of a value by a node, or by a node in its subgraphs.
struct ree_use {
    const struct ree_value *value; // of the whole graph, never of a subgraph
    uint32_t input;                // index of the node's input; UINT32_MAX: captured by a subgraph
};

struct ree_node_cost {
    uint64_t own_bytes; // attributes, and constants of subgraphs
    uint64_t kv_cache_bytes;
    uint64_t flops;
};

struct ree_planner {
    const struct ree_graph *graph;
    const struct ree_partition_options *options;
    uint64_t context;
    struct ree_arena arena; // for all fields below

    size_t *use_starts; // by node id: its uses are uses[use_starts[id]...use_starts[id + 1])
    struct ree_use *uses;
    bool *is_kv_cache; // by value id: it is the input of a kv cache
    bool *is_control;  // by node id

    size_t n_order;
    uint32_t *order;    // node ids
    uint32_t *position; // by node id: index into order

    // Place t is between order[t - 1] and order[t], 0 < t < n_order.
    // By value id: position of the last node that reads it, if a node in `order` makes it; 0: none.
    uint32_t *last_read;
    uint32_t *n_live;     // by place: live values that are not sizes
    uint32_t *n_sizes;    // by place: live values that are sizes
    uint64_t *live_bytes; // by place: bytes of all live values
    bool *is_cut_point;   // by place: a cut is allowed there

    struct ree_node_cost *node_costs; // by position
};

// classes.c: the kind of work that an operator does.
enum ree_node_class {
    REE_NODE_LIGHT,
    REE_NODE_PRODUCT, // with its constants of rank 2 and more
    REE_NODE_CONV,    // a product at each output position
    REE_NODE_CONV_TRANSPOSE,
    // of each row with all rows so far, plus a product as above
    REE_NODE_ATTENTION,
    REE_NODE_HEAVY, // other work that no stage should repeat
};
enum ree_node_class ree_node_classify(const struct ree_node *node);
// Returns whether the node multiplies by a constant of rank 2 or more.
bool ree_node_has_factor(const struct ree_node *node);
// Returns whether the node computes the size of a value: a small result, whatever the value's size.
bool ree_node_is_size(const struct ree_node *node);
bool ree_node_has_subgraph(const struct ree_node *node);
// Returns whether the node reads single rows of that input: an embedding, a table of angles.
bool ree_node_reads_rows(const struct ree_node *node, uint32_t input);
// Bytes of the node's tensor, integer-list and float-list attributes.
uint64_t ree_node_attr_bytes(const struct ree_node *node);

// control.c
enum ree_status ree_planner_find_uses(struct ree_planner *p, struct ree_error *err);
enum ree_status ree_planner_find_control(struct ree_planner *p, struct ree_error *err);
// order.c
enum ree_status ree_planner_find_order(struct ree_planner *p, struct ree_error *err);
// cut_points.c
enum ree_status ree_planner_find_cut_points(struct ree_planner *p, struct ree_error *err);
// Returns whether the value is made before the place and read at or after it.
bool ree_planner_is_live(const struct ree_planner *p, const struct ree_value *value, size_t place);
// Bytes per row of one sequence. Unknown dimensions count as 1.
uint64_t ree_value_row_bytes(const struct ree_value *value);
// cost.c
enum ree_status ree_planner_find_costs(struct ree_planner *p, struct ree_error *err);

// Incremental costs of a range of positions. The range grows at its end and shrinks at its
// beginning.
struct ree_window {
    const struct ree_planner *planner;
    // By value id, for constants: the number of reads, and the number of reads of the whole
    // constant (the others read single rows).
    uint32_t *n_reads, *n_whole;
    size_t n_nodes;
    ree_sum weight_bytes, work_bytes, kv_cache_bytes, flops;
};
enum ree_status ree_window_init(struct ree_window *window, const struct ree_planner *p,
                                struct ree_error *err);
void ree_window_finish(struct ree_window *window);
void ree_window_add(struct ree_window *window, size_t begin, size_t end); // positions
void ree_window_remove(struct ree_window *window, size_t begin, size_t end);
struct ree_stage_cost ree_window_cost(const struct ree_window *window);

// search.c: the best choice of n_stages - 1 of the given cut points.
struct ree_search {
    const struct ree_planner *planner;
    size_t n_cut_points;
    uint32_t *cut_points; // ascending
    bool found;           // false: no choice keeps within the limits
    uint64_t largest;     // largest work of a stage
    size_t *ends;         // by stage: position after its last node
};
// Places with more than `most_live` live values are not used. Memory comes from the planner's
// arena.
enum ree_status ree_search_run(struct ree_search *search, struct ree_planner *p, uint32_t most_live,
                               struct ree_error *err);
// Maximum number of stages for which a search is allowed.
size_t ree_search_most_stages(size_t n_cut_points);

// plan.c: ree_partition_plan with a planner that is already initialised. options->n_stages and
// options->weight_limits may have changed since.
enum ree_status ree_planner_plan(struct ree_planner *p, struct ree_partition *out,
                                 struct ree_error *err);

// planner.c: checks the options and fills all fields.
enum ree_status ree_planner_init(struct ree_planner *p, const struct ree_graph *graph,
                                 const struct ree_partition_options *options,
                                 struct ree_error *err);
void ree_planner_finish(struct ree_planner *p);

// result.c: makes the partition whose stages end at these positions. `reason` is prepended and
// `remark` appended to the reason of each cut; both may be "".
enum ree_status ree_planner_result(const struct ree_planner *p, const size_t *ends,
                                   const char *reason, const char *remark,
                                   struct ree_partition *out, struct ree_error *err);

#endif
