// Every output of every node, obtained in two ways: from a session's observer, and as outputs of a
// model in which all of them are model outputs.
#ifndef REE_TESTS_SESSION_ALL_VALUES_H
#define REE_TESTS_SESSION_ALL_VALUES_H

#include "base/merkle.h"
#include "session/model.h"
#include "session/observe.h"

// Makes every output of every node, and only these, outputs of the model, in the order of nodes and
// outputs. Must be called before sessions are made.
void expose_all(struct ree_model *model);

struct all_values {
    const struct ree_graph *graph;
    size_t n; // number of values of the latest run
    struct all_value {
        size_t node, output;
        ree_digest digest;
    } * values;
    size_t n_inputs, n_runs, n_ends;
};
void all_values_init(struct all_values *all, const struct ree_model *model);
struct ree_observer all_values_observer(struct all_values *all);
void all_values_finish(struct all_values *all);
// Returns whether outputs[n] of an exposed model equal the observed values. Prints the first
// difference.
bool all_values_match(const struct all_values *all, const struct ree_tensor *outputs, size_t n);

#endif
