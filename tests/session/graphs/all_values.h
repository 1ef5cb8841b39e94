// For tests of observation: compares the node outputs that a session's observer reports with the
// same values as model outputs. For the latter, expose_all makes all node outputs model outputs.
#ifndef REE_TESTS_SESSION_ALL_VALUES_H
#define REE_TESTS_SESSION_ALL_VALUES_H

#include "base/merkle.h"
#include "session/model.h"
#include "session/observe.h"

// Replaces the model's outputs by all outputs of all nodes, in the order of the nodes and, within a
// node, of its outputs. Must be called before a session of the model is created.
void expose_all(struct ree_model *model);

struct all_values {
    const struct ree_graph *graph;
    size_t n; // number of values observed in the latest run
    struct all_value {
        size_t node, output;
        ree_digest digest;
    } * values;
    size_t n_inputs, n_runs, n_ends;
};
void all_values_init(struct all_values *all, const struct ree_model *model);
struct ree_observer all_values_observer(struct all_values *all);
void all_values_finish(struct all_values *all);
// Returns whether the n outputs of a run of a model after expose_all equal the values that `all`
// has observed. Prints the first difference.
bool all_values_match(const struct all_values *all, const struct ree_tensor *outputs, size_t n);

#endif
