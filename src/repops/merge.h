// Index spaces made simpler before a backend walks them; what they say stays the same.
#ifndef REE_REPOPS_MERGE_H
#define REE_REPOPS_MERGE_H

#include "repops/repop.h"

// Drops dimensions of size 1 and merges neighbours that every stride set walks without a gap.
// strides[s][d] for n_sets sets. At least one dimension is left. Returns the new rank.
uint32_t ree_merge_dims(uint32_t rank, uint32_t *dims, uint32_t n_sets, int32_t *const *strides);
// The same for an expression; leaves its value unchanged.
void ree_merge_expr(struct ree_expr *expr);

#endif
