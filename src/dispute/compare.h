// Compares two sessions of one model while they run, step by step: every output of every node.
//
//     ree_compare_create(model, specs, n_specs, &compare, err);
//     observers of both sessions: ree_compare_observer(compare, 0) and (compare, 1)
//     for each step: run the first session; run the second
//     ree_compare_result(compare)
//
// The values of the first session are kept on the host until the second session has run the step.
// Both sessions must have the same inputs.
#ifndef REE_DISPUTE_COMPARE_H
#define REE_DISPUTE_COMPARE_H

#include "dispute/ulp.h"
#include "session/model.h"
#include "session/observe.h"
#include "session/kv_cache.h"

struct ree_compare;

// Differences of one node, over all steps.
struct ree_drift {
    // Runs; runs that differ; runs that differ although all values that the node read agree.
    uint64_t n_runs, n_differ, n_new;
    bool other_shape;   // in some run the type or shape differed, so that run was not measured
    struct ree_ulp ulp; // over all outputs
};

struct ree_compare_first {
    bool found, inputs_agree, other_shape;
    uint64_t step;
    size_t node, output;
    enum ree_dtype dtype;
    uint32_t rank;
    int64_t dims[REE_MAX_RANK];
    struct ree_ulp ulp; // of that output in that step
};

struct ree_compare_result {
    uint64_t n_steps;
    size_t n_nodes;
    const struct ree_drift *drift; // one per node
    struct ree_compare_first first;
    // Runs of nodes that differ, over all nodes; those among them whose inputs agree.
    uint64_t n_differ, n_new;
    // Largest relative error and largest distance in ulps of the node's outputs, per step and node.
    // Infinite if there is a NaN or the shapes differ.
    const float *rel, *ulp; // (n_steps, n_nodes)
};

// `model` must be the model of both sessions, or an identical copy, and must outlive the
// comparison.
enum ree_status ree_compare_create(const struct ree_model *model,
                                   const struct ree_kv_cache_spec *specs, size_t n_specs,
                                   struct ree_compare **out, struct ree_error *err);
struct ree_observer ree_compare_observer(struct ree_compare *compare, unsigned side);
// The result borrows from `compare` and is valid until the next run.
struct ree_compare_result ree_compare_result(const struct ree_compare *compare);
void ree_compare_destroy(struct ree_compare *compare); // accepts NULL

#endif
