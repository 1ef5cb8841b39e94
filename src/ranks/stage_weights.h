// Hashes of a stage's weights: the constants that its nodes read, after the model's passes. If no
// pass has changed a constant of the file, its leaf equals the one in the tree of the model's
// weights (NUMERICS.md, "Hashes").
#ifndef REE_RANKS_STAGE_WEIGHTS_H
#define REE_RANKS_STAGE_WEIGHTS_H

#include "graph/partition/partition.h"
#include "session/identity.h"

struct ree_stage_weights {
    size_t n;
    struct ree_constant *constants; // borrowed from the graph; the array is from malloc
    ree_digest *leaves;             // malloc
    uint64_t nbytes;
};

// Hashes the constants of `n_stages` stages from `first` on, control nodes included, each constant
// once, in the graph's order. Reads all of them.
enum ree_status ree_stage_weights_make(const struct ree_graph *graph,
                                       const struct ree_partition *partition, size_t first,
                                       size_t n_stages, const struct ree_progress *progress,
                                       struct ree_stage_weights *out, struct ree_error *err);
void ree_stage_weights_finish(struct ree_stage_weights *weights);
// SHA-256 of a plan: for each stage its end, by the name of a value, and its costs.
void ree_plan_digest(const struct ree_graph *graph, const struct ree_partition *partition,
                     ree_digest out);

#endif
