// Random numbers in expressions: NUMERICS.md, "Random numbers".
#ifndef REE_GRAPH_LOWER_RANDOM_H
#define REE_GRAPH_LOWER_RANDOM_H

#include "graph/lower/rules.h"

// The uniform number of each element of the expression, in [0, 1).
int ree_random_uniform(struct ree_expr_builder *b);
// A normal number of mean 0 and deviation 1.
int ree_random_normal(struct ree_expr_builder *b);

#endif
