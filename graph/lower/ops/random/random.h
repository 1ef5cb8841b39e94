// Random numbers as values of expressions. NUMERICS.md, "Random numbers", defines them.
#ifndef REE_GRAPH_LOWER_RANDOM_H
#define REE_GRAPH_LOWER_RANDOM_H

#include "graph/lower/ops/rules.h"

// Adds a value that is a uniform random float32 in [0, 1), another one for each element of the
// result.
int ree_random_uniform(struct ree_expr_builder *b);
// Adds a value that is a normally distributed random float32 of mean 0 and standard deviation 1,
// another one for each element of the result.
int ree_random_normal(struct ree_expr_builder *b);

#endif
