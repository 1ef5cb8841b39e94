// Random graphs. Each grows from a few inputs and constants by random nodes. The operators are
// those whose lowering is error-prone: views, broadcasts, epilogues, concatenations, shape
// arithmetic.
#ifndef REE_TESTS_SESSION_RANDOM_GRAPH_H
#define REE_TESTS_SESSION_RANDOM_GRAPH_H

#include "graph/ir/ir.h"

#define MAX_VALUES 64 // maximum number of values, and of outputs; a graph has at most two inputs

struct ree_graph *random_graph(uint64_t seed);
// Fills out[] with one tensor for each of the model's inputs; the caller must release them.
void random_inputs(const struct ree_model *model, uint64_t seed, struct ree_tensor *out);

#endif
