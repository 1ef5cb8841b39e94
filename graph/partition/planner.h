// Shared by the files of the planner. Every result follows from the structure of the graph: ids and
// names of nodes and values have no influence.
#ifndef REE_GRAPH_PARTITION_PLANNER_H
#define REE_GRAPH_PARTITION_PLANNER_H

#include "graph/partition/partition.h"

// Type for sums and products of numbers from a model file, which do not overflow in 128 bits. A
// final result above UINT64_MAX becomes UINT64_MAX.
typedef unsigned __int128 ree_sum;

// Limits of a control node: maximum bytes of each constant that it reads, and of its attributes.
#define REE_CONTROL_BYTES 16384
#define REE_NO_POSITION UINT32_MAX // position of control nodes, and of nodes that no output needs

// A read of a value of the whole graph, by a node or by a node in its subgraphs.
struct ree_use {
    const struct ree_value *value; // belongs to the whole graph, never to a subgraph
    uint32_t input;                // index of the node's input; UINT32_MAX: captured by a subgraph
};

struct ree_node_cost {
    uint64_t own_bytes; // bytes of the node's attributes and of the constants in its subgraphs
    uint64_t kv_cache_bytes;
    uint64_t flops;
};

struct ree_planner {
    const struct ree_graph *graph;
    const struct ree_partition_options *options;
    uint64_t context;
    struct ree_arena arena; // memory of all fields below

    // The uses of the node with the given id are uses[use_starts[id]] up to, not including,
    // uses[use_starts[id + 1]].
    size_t *use_starts;
    struct ree_use *uses;
    bool *is_kv_cache; // by value id: it is the input of a kv cache
    bool *is_control;  // by node id: it is a control node

    size_t n_order;
    uint32_t *order;    // node ids in canonical order
    uint32_t *position; // by node id: its index in order; REE_NO_POSITION: not in order

    // By value id: position of the last node in `order` that reads it; 0: none. (No node at
    // position 0 reads a value that a node in `order` makes.)
    uint32_t *last_read;
    // Place t, 0 < t < n_order, is between order[t - 1] and order[t].
    uint32_t *n_live;     // by place: number of live values, without results of Shape and Size
    uint32_t *n_sizes;    // by place: number of live results of Shape and Size
    uint64_t *live_bytes; // by place: bytes of all live values per token
    bool *is_cut_point;   // by place: a cut is allowed there

    struct ree_node_cost *node_costs; // by position
};

// The kind of work that an operator does (classes.c).
enum ree_node_class {
    REE_NODE_LIGHT,
    REE_NODE_PRODUCT, // multiplies by its constants of rank 2 or more
    REE_NODE_CONV,    // multiplies by constants at each output position
    REE_NODE_CONV_TRANSPOSE,
    // multiplies each row by all rows so far, and may multiply by constants
    REE_NODE_ATTENTION,
    REE_NODE_HEAVY, // other work that no stage should repeat
};
enum ree_node_class ree_node_classify(const struct ree_node *node);
// Returns whether the node multiplies by a constant of rank 2 or more.
bool ree_node_has_factor(const struct ree_node *node);
// Returns whether the node computes the size of a value (Shape, Size): its result is small,
// whatever the size of its input.
bool ree_node_is_size(const struct ree_node *node);
bool ree_node_has_subgraph(const struct ree_node *node);
// Returns whether the node reads only some rows of its input number `input`: a table of embeddings
// or of angles.
bool ree_node_reads_rows(const struct ree_node *node, uint32_t input);
// Returns the bytes of the node's tensor, integer-list and float-list attributes.
uint64_t ree_node_attr_bytes(const struct ree_node *node);

// control.c
enum ree_status ree_planner_find_uses(struct ree_planner *p, struct ree_error *err);
enum ree_status ree_planner_find_control(struct ree_planner *p, struct ree_error *err);
// order.c
enum ree_status ree_planner_find_order(struct ree_planner *p, struct ree_error *err);
// cut_points.c
enum ree_status ree_planner_find_cut_points(struct ree_planner *p, struct ree_error *err);
// Returns whether a node before `place` makes the value and a node after it reads the value.
bool ree_planner_is_live(const struct ree_planner *p, const struct ree_value *value, size_t place);
// Returns the bytes of the value per token: unknown dimensions count as 1, an unknown type as
// float32. At most 2^40.
uint64_t ree_value_row_bytes(const struct ree_value *value);
// cost.c
enum ree_status ree_planner_find_costs(struct ree_planner *p, struct ree_error *err);

// Costs of a range of positions, which are updated while the range grows at its end and shrinks at
// its beginning.
struct ree_window {
    const struct ree_planner *planner;
    // For each constant, by value id: n_reads counts all reads in the range; n_whole counts the
    // reads of the whole constant, not of single rows.
    uint32_t *n_reads, *n_whole;
    size_t n_nodes;
    ree_sum weight_bytes, work_bytes, kv_cache_bytes, flops;
};
enum ree_status ree_window_init(struct ree_window *window, const struct ree_planner *p,
                                struct ree_error *err);
void ree_window_finish(struct ree_window *window);
// Adds the nodes at positions [begin, end) to the range; ree_window_remove removes them.
void ree_window_add(struct ree_window *window, size_t begin, size_t end);
void ree_window_remove(struct ree_window *window, size_t begin, size_t end);
struct ree_stage_cost ree_window_cost(const struct ree_window *window);

// The best choice of n_stages - 1 cut points, and the cut points to choose from (search.c).
struct ree_search {
    const struct ree_planner *planner;
    size_t n_cut_points;
    uint32_t *cut_points; // [n_cut_points], places in ascending order
    bool found;           // false: no choice keeps within the weight limits
    uint64_t largest;     // work of the stage that has the most
    size_t *ends;         // [n_stages]: position after each stage's last node
};
// Fills *search for options->n_stages stages. Cut points with more than `most_live` live values are
// not used. Memory comes from the planner's arena. Fails with REE_UNSUPPORTED if n_stages exceeds
// ree_search_most_stages.
enum ree_status ree_search_run(struct ree_search *search, struct ree_planner *p, uint32_t most_live,
                               struct ree_error *err);
// Returns the maximum number of stages for which a search among n_cut_points cut points is allowed.
size_t ree_search_most_stages(size_t n_cut_points);

// Does what ree_partition_plan does, with a planner that is already initialised (plan.c).
// options->n_stages and options->weight_limits may have changed since.
enum ree_status ree_planner_plan(struct ree_planner *p, struct ree_partition *out,
                                 struct ree_error *err);

// Checks the options and fills all fields of *p (planner.c).
enum ree_status ree_planner_init(struct ree_planner *p, const struct ree_graph *graph,
                                 const struct ree_partition_options *options,
                                 struct ree_error *err);
void ree_planner_finish(struct ree_planner *p);

// Makes the partition whose stages end at the positions ends[n_stages] (result.c). `reason` is
// prepended and `remark` appended to the reason of each cut; both may be "".
enum ree_status ree_planner_result(const struct ree_planner *p, const size_t *ends,
                                   const char *reason, const char *remark,
                                   struct ree_partition *out, struct ree_error *err);

#endif
