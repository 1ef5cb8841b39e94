// Random numbers in expressions: NUMERICS.md, "Random numbers".
#ifndef REE_GRAPH_LOWER_RANDOM_H
#define REE_GRAPH_LOWER_RANDOM_H

#include "graph/lower/ops/rules.h"

// Adds the uniform random number in [0, 1) of each element of the expression.
int ree_random_uniform(struct ree_expr_builder *b);
// Adds a normal random number of mean 0 and standard deviation 1.
int ree_random_normal(struct ree_expr_builder *b);

#endif
