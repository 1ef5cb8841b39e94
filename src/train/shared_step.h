// A training step that several ranks share: each has some samples of the batch (graph/share), and
// sums over all samples go from rank to rank. NUMERICS.md, "Trainings on several ranks", explains
// why the bits stay.
#ifndef REE_TRAIN_SHARED_STEP_H
#define REE_TRAIN_SHARED_STEP_H

#include "graph/share/share.h"
#include "session/types.h"
#include "train/shared.h"
#include "train/training.h"
#include "transport/transport.h"

// A graph that a rank runs.
struct ree_shared_graph {
    struct ree_model *model;
    struct ree_session *session;
};

struct ree_shared_step {
    struct ree_training *training;
    struct ree_transport *transport;
    uint32_t rank, n_ranks;
    int64_t begin, end; // this rank's samples of the batch
    struct ree_share share;
    struct ree_shared_graph *parts;         // [share.n_parts]
    struct ree_shared_graph **by_index;     // [share.n_parts][n_sums] of sums by indices
    struct ree_shared_graph products, rows; // of share.products and share.rows
    size_t *input_of;            // by index of the graph's input: that among training->inputs
    struct ree_tensor *slots;    // [share.n_slots] owned
    struct ree_tensor *in, *out; // inputs (borrowed) and outputs of a run
    struct ree_message *ends;    // per sum of a part: terms of the rank before
    uint64_t n_products;         // of the last step, those of sums included
    double waited;               // seconds in which this rank waited for others
};

// Divides the step of a training among the ranks of a transport. Both must outlive *out. Release
// with ree_shared_step_destroy.
enum ree_status ree_shared_step_create(struct ree_training *training,
                                       struct ree_transport *transport,
                                       struct ree_shared_step **out, struct ree_error *err);
// shared_step.c: runs one of the graphs on slots and inputs of the step.
enum ree_status ree_shared_graph_run(struct ree_shared_step *shared, struct ree_shared_graph *graph,
                                     const struct ree_share_part *part, struct ree_error *err);
// shared_sums.c
// Computes the sums that follow a part, and fills their slots on every rank.
enum ree_status ree_shared_sums_run(struct ree_shared_step *shared, size_t part,
                                    struct ree_error *err);

#endif
