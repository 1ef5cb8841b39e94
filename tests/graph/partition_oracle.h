// Finds the best plan for a small graph by trying every plan, to check the planner. Computes
// everything from the definitions in graph/partition/PLANNING.md, naively, and shares no code with
// the planner.
#ifndef REE_TESTS_PARTITION_ORACLE_H
#define REE_TESTS_PARTITION_ORACLE_H

#include "graph/partition/partition.h"

#define ORACLE_MOST 64

struct oracle_score {
    uint64_t largest, smallest;
    size_t n_live;
    uint64_t live_bytes;
    size_t ends[ORACLE_MOST];
};

struct oracle {
    const struct ree_graph *graph;
    const struct ree_partition_options *options;
    uint64_t context;
    size_t n_order;
    const struct ree_node *order[ORACLE_MOST]; // the n_order nodes to divide; no control nodes
    size_t n_cut_points;
    size_t n_one_value_cut_points; // number of cut points with at most one live value
    bool found;
    struct oracle_score best;
};

void oracle_run(struct oracle *o, const struct ree_graph *graph,
                const struct ree_partition_options *options);
bool oracle_is_control(const struct oracle *o, const struct ree_node *node);
// Returns the cost of the stage that consists of the nodes order[begin] to order[end - 1].
struct ree_stage_cost oracle_cost(const struct oracle *o, size_t begin, size_t end);
bool oracle_is_live(const struct oracle *o, const struct ree_value *value, size_t place);

#endif
