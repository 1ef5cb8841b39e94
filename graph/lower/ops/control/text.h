// Converts strings to numbers and back, for Cast and CastLike. NUMERICS.md, "Strings", defines the
// results.
#ifndef REE_GRAPH_LOWER_OPS_CONTROL_TEXT_H
#define REE_GRAPH_LOWER_OPS_CONTROL_TEXT_H

#include "graph/lower/ops/rules.h"

enum ree_status ree_lower_cast_strings(struct ree_lower *lower, struct ree_view *t,
                                       enum ree_dtype to, struct ree_view **out);

#endif
