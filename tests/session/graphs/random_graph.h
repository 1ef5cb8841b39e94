// Makes random graphs for tests of sessions. A graph has two inputs, some constants, and at most 27
// nodes of operators whose lowering is error-prone: views, broadcasts, epilogues, concatenations.
#ifndef REE_TESTS_SESSION_RANDOM_GRAPH_H
#define REE_TESTS_SESSION_RANDOM_GRAPH_H

#include "graph/ir/ir.h"

// Maximum number of values from which nodes choose their inputs, and of the graph's outputs.
#define MAX_VALUES 64

struct ree_graph *random_graph(uint64_t seed);
// Fills `out` with one random tensor for each input of the model. The caller must release each with
// ree_tensor_finish.
void random_inputs(const struct ree_model *model, uint64_t seed, struct ree_tensor *out);

#endif
