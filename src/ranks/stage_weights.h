// Hashes of the weights of stages, which ranks compare before a run. The weights of a stage are the
// constants that its nodes read after the graph passes. Each constant has one hash, its leaf. If no
// pass has changed a constant of the file, this leaf is the one in the hash tree of the model's
// weights (NUMERICS.md, "Hashes").
#ifndef REE_RANKS_STAGE_WEIGHTS_H
#define REE_RANKS_STAGE_WEIGHTS_H

#include "graph/partition/partition.h"
#include "session/identity.h"

struct ree_stage_weights {
    size_t n;
    struct ree_constant *constants; // (n): owned array (ree_alloc); names and data are the graph's
    ree_digest *leaves;             // (n): hash of each constant; owned (ree_alloc)
    uint64_t nbytes;                // size of all constants together, in bytes
};

// Hashes the constants that stages `first` to first + n_stages - 1 and the control nodes read: each
// constant once, in the order in which the graph's nodes read them. Reads all their data. Release
// *out with ree_stage_weights_finish.
enum ree_status ree_stage_weights_make(const struct ree_graph *graph,
                                       const struct ree_partition *partition, size_t first,
                                       size_t n_stages, const struct ree_progress *progress,
                                       struct ree_stage_weights *out, struct ree_error *err);
void ree_stage_weights_finish(struct ree_stage_weights *weights);
// Writes the SHA-256 of a plan to `out`. It covers, for each stage, the name of the first output of
// the stage's last node, and the stage's costs.
void ree_plan_digest(const struct ree_graph *graph, const struct ree_partition *partition,
                     ree_digest out);

#endif
