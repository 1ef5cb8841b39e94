// A rank's share of a training step: the part of the step's graph that works on this rank's
// samples, cut where the step sums over all samples. README.md explains it with an example.
//
// The samples of a batch are numbered 0 to batch - 1; a rank has consecutive ones. A value of the
// step is either common (the same on every rank, such as a parameter) or divided: along one of its
// axes, each sample has the same number of consecutive elements, and a rank has those of its own
// samples.
#ifndef REE_GRAPH_SHARE_SHARE_H
#define REE_GRAPH_SHARE_SHARE_H

#include "graph/ir/ir.h"

// A sum over all samples. Its terms are in the order of the samples, and of the positions in a
// sample.
enum ree_sum_kind {
    // left^T * right, for each group: left is float32 [terms, groups, m], right float32
    // [terms, groups, n], the result [groups, m, n].
    REE_SUM_OF_PRODUCTS,
    REE_SUM_OF_ROWS, // left is float32 [terms, m], the result float32 [m]
    // left is the sum of this rank's terms, an integer tensor; the result has its type and shape.
    REE_SUM_OF_INTEGERS,
    // Terms are added to elements that indices select. The parts have no terms; `graph` reads the
    // result of the rank before, and makes its own.
    REE_SUM_BY_INDICES,
};

struct ree_share_sum {
    enum ree_sum_kind kind;
    const char *name;      // the step's value that it computes, for messages
    size_t left, right;    // slots
    size_t result;         // slot, filled by the caller
    uint64_t n_per_sample; // terms of a sample
    int64_t groups, m, n;  // groups and n are 1 if there is no `right`
    // REE_SUM_BY_INDICES: a graph like those of the parts.
    struct ree_share_part *steps;
    size_t initial; // slot: the tensor to which the first rank adds
};

// Where a part's input comes from and where its output goes.
struct ree_share_port {
    const char *name;
    bool is_input; // of the step: `index` is the index among graph->inputs. Otherwise a slot.
    size_t index;
};

// Nodes that run without another rank, and the sums that follow them.
struct ree_share_part {
    struct ree_graph *graph; // owned by the share until the caller takes it and sets NULL
    size_t n_inputs, n_outputs;
    struct ree_share_port *inputs, *outputs;
    size_t n_sums, sums_capacity;
    struct ree_share_sum *sums;
};

struct ree_share {
    struct ree_arena arena;
    size_t n_parts;
    struct ree_share_part *parts; // in the order in which they run
    size_t n_slots;               // number of tensors that parts and sums pass on
    size_t *last_use;             // [n_slots] the last part that reads the slot, or makes it
    size_t *outputs;              // [outputs of the step] slot of each output
    // Compute chunks of 256 terms of sums (chunks.c). `left` is float32 [chunks, 256, m], `right`
    // [chunks, 256, n]; the result has a matrix [m, n] or a row [m] for each chunk. Their ports are
    // not filled.
    struct ree_share_part products, rows;
    // Products of two numbers in matrix products and convolutions, without those of the sums: of
    // this rank's parts, and of all samples.
    uint64_t n_products, n_products_of_all;
};

struct ree_share_options {
    const struct ree_value *const *data; // [n_data] inputs of the step whose axis 0 has the samples
    size_t n_data;
    int64_t batch;      // samples of the batch
    int64_t begin, end; // this rank's samples: begin <= i < end
};

// Divides a step, whose values have inferred shapes (ree_model_infer_always). `step` must outlive
// the share's graphs, which read its constants. Release with ree_share_finish, also after a
// failure. Fails with REE_UNSUPPORTED, and names the node, if samples cannot be followed through
// it.
enum ree_status ree_share_make(const struct ree_graph *step,
                               const struct ree_share_options *options, struct ree_share *out,
                               struct ree_error *err);
void ree_share_finish(struct ree_share *share);

#endif
