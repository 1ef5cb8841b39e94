// Chooses lengths, dimensions and strides of twins. They are small and keep the properties by which
// backends choose code. twin.h lists these properties; struct ree_twin_size says which are kept.
#ifndef REE_DEVICE_SELFTEST_TWIN_VIEWS_H
#define REE_DEVICE_SELFTEST_TWIN_VIEWS_H

#include "device/selftest/twin_size.h"
#include "repops/repop.h"

#define REE_TWIN_MAX_VIEW (2 * REE_MAX_RANK) // maximum dimensions of a view

// Returns a length for the twin in place of the dispatch's length `like`. If size->alignment is 0,
// it is `base`. Otherwise let A be the smaller of `alignment` and size->alignment: the result is
// base plus less than A and has the same greatest common divisor with A as `like`. `base` must be a
// multiple of A.
uint32_t ree_twin_length(const struct ree_twin_size *size, uint32_t base, uint32_t like,
                         uint32_t alignment);
// Returns a length for a dimension other than the main one, in place of `like`: 1 stays 1. Other
// lengths become 3 or, if size->alignment is set and `like` is even, 2 or 4.
uint32_t ree_twin_short_length(const struct ree_twin_size *size, uint32_t like);
// Returns a length for a sum of `like` terms, with the same number of chunks of 256 terms, up to 9.
uint32_t ree_twin_sum_length(const struct ree_twin_size *size, uint32_t like);
// Returns a length for a row of `like` elements: like ree_twin_sum_length, but a row of more than
// 65536 elements stays longer than that, because kernels use another loop for it. If size->small is
// set, such a row is also shortened.
uint32_t ree_twin_row_length(const struct ree_twin_size *size, uint32_t like);

// Returns the index of the last of the dimensions from[rank] that is greater than 1, or rank - 1 if
// none is.
uint32_t ree_twin_long_dim(uint32_t rank, const uint32_t *from);
// Chooses dimensions to[rank] of about n elements in total, in place of from[rank]. The dimension
// with the index ree_twin_long_dim is long, even if it was 1; the others are short.
void ree_twin_dims(const struct ree_twin_size *size, uint32_t rank, const uint32_t *from,
                   uint64_t n, uint32_t *to);

// Replaces the strides of a view whose dimensions from[rank] become to[rank]. Strides of 0 stay 0,
// except those of a dimension of size 1 that grows if size->alignment is 0.
// The dimensions keep their order in memory and the signs of their strides. Dimensions that were
// contiguous stay contiguous; between all others there is a gap. Returns the number of elements
// that the view spans in memory, 0 if a dimension is 0. *offset, if not NULL, receives the offset
// of the view's first element.
uint64_t ree_twin_view(const struct ree_twin_size *size, uint32_t rank, const uint32_t *from,
                       const uint32_t *to, int32_t *strides, int32_t *offset);

// Like ree_merge_dims and ree_merge_expr (repops/merge.h), but set the dimensions and strides after
// the remaining ones to 0, so that equal problems have equal twins. All arrays must have
// REE_MAX_RANK elements.
uint32_t ree_twin_merge_dims(uint32_t rank, uint32_t *dims, uint32_t n_sets,
                             int32_t *const *strides);
void ree_twin_merge_expr(struct ree_expr *expr);

#endif
