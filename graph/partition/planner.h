// What the planner's parts hand each other. Everything follows from the structure of the graph:
// ids and names of nodes and values decide nothing.
#ifndef REE_GRAPH_PARTITION_PLANNER_H
#define REE_GRAPH_PARTITION_PLANNER_H

#include "graph/partition/partition.h"

// Sums of numbers that come from the file do not overflow in this; results saturate at 64 bits.
typedef unsigned __int128 ree_sum;

// Constants that a control node may read have at most so many bytes, its attributes likewise.
#define REE_CONTROL_BYTES 16384
#define REE_NO_POSITION UINT32_MAX // of control nodes, and of those that no output needs

// That a node reads a value, itself or in its subgraphs.
struct ree_use {
    const struct ree_value *value; // of the graph, never of a subgraph
    uint32_t input;                // UINT32_MAX: captured by a subgraph
};

struct ree_node_cost {
    uint64_t own_bytes; // attributes and constants of subgraphs
    uint64_t state_bytes;
    uint64_t flops;
};

struct ree_planner {
    const struct ree_graph *graph;
    const struct ree_partition_options *options;
    uint64_t context;
    struct ree_arena arena; // of all that follows

    size_t *use_starts; // per node id: its uses are uses[use_starts[id]...use_starts[id + 1])
    struct ree_use *uses;
    bool *is_state;   // per value id: the input of a state
    bool *is_control; // per node id

    size_t n_order;
    uint32_t *order;    // node ids
    uint32_t *position; // per node id: index into order

    // Place t lies between order[t - 1] and order[t], 0 < t < n_order.
    uint32_t *last_read;  // per value id: position of the last node that reads it, if it is made by
                          // one in `order`; 0: none
    uint32_t *n_live;     // per place, without sizes
    uint32_t *n_sizes;    // live ones, likewise
    uint64_t *live_bytes; // of both
    bool *is_place;       // whether it may be cut

    struct ree_node_cost *node_costs; // per position
};

// classes.c: what kind of work an operator does.
enum ree_node_class {
    REE_NODE_LIGHT,
    REE_NODE_PRODUCT, // with its constants of rank 2 and more
    REE_NODE_CONV,    // a product at each output position
    REE_NODE_CONV_TRANSPOSE,
    REE_NODE_ATTENTION, // of each row over all rows so far; and a product like the above
    REE_NODE_HEAVY,     // other work that no stage should repeat
};
enum ree_node_class ree_node_classify(const struct ree_node *node);
bool ree_node_has_factor(
    const struct ree_node *node); // a constant of rank 2 or more to multiply by
// Whether the node takes the size of a value, which is small whatever that is.
bool ree_node_is_size(const struct ree_node *node);
bool ree_node_has_subgraph(const struct ree_node *node);
// Whether the node reads single rows of that input: an embedding, a table of angles.
bool ree_node_reads_rows(const struct ree_node *node, uint32_t input);
uint64_t ree_node_attr_bytes(const struct ree_node *node);

// control.c
enum ree_status ree_planner_find_uses(struct ree_planner *p, struct ree_error *err);
enum ree_status ree_planner_find_control(struct ree_planner *p, struct ree_error *err);
// order.c
enum ree_status ree_planner_find_order(struct ree_planner *p, struct ree_error *err);
// places.c
enum ree_status ree_planner_find_places(struct ree_planner *p, struct ree_error *err);
bool ree_planner_is_live(const struct ree_planner *p, const struct ree_value *value, size_t place);
// Bytes of a row of one sequence, dimensions that are not known counting as 1.
uint64_t ree_value_row_bytes(const struct ree_value *value);
// cost.c
enum ree_status ree_planner_find_costs(struct ree_planner *p, struct ree_error *err);

// Costs of a run of positions that grows behind and shrinks in front.
struct ree_window {
    const struct ree_planner *planner;
    uint32_t *n_reads, *n_whole; // per value id, of constants: reads of rows or all, and of all
    size_t n_nodes;
    ree_sum weight_bytes, work_bytes, state_bytes, flops;
};
enum ree_status ree_window_init(struct ree_window *window, const struct ree_planner *p,
                                struct ree_error *err);
void ree_window_finish(struct ree_window *window);
void ree_window_add(struct ree_window *window, size_t begin, size_t end); // positions
void ree_window_remove(struct ree_window *window, size_t begin, size_t end);
struct ree_stage_cost ree_window_cost(const struct ree_window *window);

// search.c: the best of all choices of n_stages - 1 of the given places.
struct ree_search {
    const struct ree_planner *planner;
    size_t n_places;
    uint32_t *places; // ascending
    bool found;       // else no choice keeps within the limits
    uint64_t largest; // work of a stage
    size_t *ends;     // per stage, positions
};
// `most_live`: places with more live values are left out. `arena` is of the planner.
enum ree_status ree_search_run(struct ree_search *search, struct ree_planner *p, uint32_t most_live,
                               struct ree_error *err);
// How many stages may be looked for.
size_t ree_search_most_stages(size_t n_places);

// plan.c: ree_partition_plan with everything found already. options->n_stages and weight_limits may
// have changed since.
enum ree_status ree_planner_plan(struct ree_planner *p, struct ree_partition *out,
                                 struct ree_error *err);

// planner.c: checks the options and finds everything above.
enum ree_status ree_planner_init(struct ree_planner *p, const struct ree_graph *graph,
                                 const struct ree_partition_options *options,
                                 struct ree_error *err);
void ree_planner_finish(struct ree_planner *p);

// result.c: the partition whose stages end at these positions. `reason` is put in front of each
// cut's reason, `remark` behind it; both may be "".
enum ree_status ree_planner_result(const struct ree_planner *p, const size_t *ends,
                                   const char *reason, const char *remark,
                                   struct ree_partition *out, struct ree_error *err);

#endif
