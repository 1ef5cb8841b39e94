// Comparing two sessions of one model, step by step, while they run: every value of every node.
//
//     ree_compare_create(model, specs, n_specs, &compare, err);
//     observers of both sessions: ree_compare_observer(compare, 0) and (compare, 1)
//     for each step: run the first session; run the second
//     ree_compare_result(compare)
//
// The values of the first are kept on the host until the second has run. The inputs of both have to
// be the same.
#ifndef REE_AUDIT_COMPARE_H
#define REE_AUDIT_COMPARE_H

#include "audit/ulp.h"
#include "session/model.h"
#include "session/observe.h"
#include "session/state.h"

struct ree_compare;

// What a node gave, over all steps.
struct ree_drift {
    uint64_t n_runs, n_differ, n_new; // runs; of which differ; ... that read what agrees
    bool other_shape;                 // not to be compared in some run
    struct ree_ulp ulp;               // of all outputs
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
    const struct ree_drift *drift; // per node
    struct ree_compare_first first;
    uint64_t n_differ, n_new; // runs of nodes, of all
    // Per step and node: the largest relative error and distance of its outputs; those of NaNs and
    // of other shapes are infinite.
    const float *rel, *ulp; // (n_steps, n_nodes)
};

// The model, or another like it, is that of both sessions, and outlives this.
enum ree_status ree_compare_create(const struct ree_model *model,
                                   const struct ree_state_spec *specs, size_t n_specs,
                                   struct ree_compare **out, struct ree_error *err);
struct ree_observer ree_compare_observer(struct ree_compare *compare, unsigned side);
// Valid until the next run.
struct ree_compare_result ree_compare_result(const struct ree_compare *compare);
void ree_compare_destroy(struct ree_compare *compare); // accepts NULL

#endif
