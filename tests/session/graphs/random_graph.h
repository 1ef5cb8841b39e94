// Random graphs: each grows from a few inputs and constants by nodes chosen at random among
// operators whose lowering has something to get wrong: views, broadcasts, epilogues,
// concatenations, shape arithmetic.
#ifndef REE_TESTS_SESSION_RANDOM_GRAPH_H
#define REE_TESTS_SESSION_RANDOM_GRAPH_H

#include "graph/ir.h"

#define MAX_VALUES 64 // outputs at most; inputs are two at most

struct ree_graph *random_graph(uint64_t seed);
// For each of the model's inputs.
void random_inputs(const struct ree_model *model, uint64_t seed, struct ree_tensor *out);

#endif
