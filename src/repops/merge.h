// Simplifies index spaces before a backend iterates over them. The result addresses the same
// elements in the same order.
#ifndef REE_REPOPS_MERGE_H
#define REE_REPOPS_MERGE_H

#include "repops/repop.h"

// Drops dimensions of size 1 and merges neighbouring dimensions if every stride set can iterate
// over both with one stride. Changes dims and strides[s][d] (n_sets sets) in place; at least one
// dimension remains. Returns the new rank.
uint32_t ree_merge_dims(uint32_t rank, uint32_t *dims, uint32_t n_sets, int32_t *const *strides);
// Does the same for an expression; its value does not change.
void ree_merge_expr(struct ree_expr *expr);

#endif
