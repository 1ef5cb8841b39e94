// Every output of every node, in two ways: told by a session to its observer, and as the outputs of
// a model that has them all as its outputs.
#ifndef REE_TESTS_SESSION_ALL_VALUES_H
#define REE_TESTS_SESSION_ALL_VALUES_H

#include "receipt/merkle.h"
#include "session/model.h"
#include "session/observe.h"

// Makes every output of every node an output of the model, in the order of nodes and outputs, and
// nothing else. Before sessions are made.
void expose_all(struct ree_model *model);

struct all_values {
    const struct ree_graph *graph;
    size_t n; // of the last run
    struct all_value {
        size_t node, output;
        ree_digest digest;
    } * values;
    size_t n_inputs, n_runs, n_ends;
};
void all_values_init(struct all_values *all, const struct ree_model *model);
struct ree_observer all_values_observer(struct all_values *all);
void all_values_finish(struct all_values *all);
// Whether outputs[n], those of an exposed model, are what was told. Prints the first that is not.
bool all_values_match(const struct all_values *all, const struct ree_tensor *outputs, size_t n);

#endif
