// Reduces the number of dimensions of an index space (dims and strides) before a backend iterates
// over it. The result addresses the same elements in the same order.
#ifndef REE_REPOPS_MERGE_H
#define REE_REPOPS_MERGE_H

#include "repops/repop.h"

// Drops dimensions of size 1. Merges two neighbouring dimensions if, in every stride set, one
// stride can iterate over both. strides[s][d] is the stride of set s (n_sets sets) along dimension
// d. Changes dims and strides in place and returns the new rank, which is at least 1.
uint32_t ree_merge_dims(uint32_t rank, uint32_t *dims, uint32_t n_sets, int32_t *const *strides);
// Merges the dimensions of an expression as ree_merge_dims does, with the strides of its operands.
// The expression's values do not change.
void ree_merge_expr(struct ree_expr *expr);

#endif
