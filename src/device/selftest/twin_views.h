// Lengths, dimensions and strides of twins: small ones that keep the properties of the dispatch's
// by which backends choose code. twin.h says which; struct ree_twin_size says how far.
#ifndef REE_DEVICE_SELFTEST_TWIN_VIEWS_H
#define REE_DEVICE_SELFTEST_TWIN_VIEWS_H

#include "device/selftest/twin.h"

#define REE_TWIN_MAX_VIEW (2 * REE_MAX_RANK) // dimensions of a view

// A length for one of `like`. With an alignment: base, or less than `alignment` more, so that its
// greatest common divisor with the alignment is that of `like`; base must be a multiple of it. An
// alignment above the size's own counts as that. Without one: base.
uint32_t ree_twin_length(const struct ree_twin_size *size, uint32_t base, uint32_t like,
                         uint32_t alignment);
// For a length that is not the main one: 1 stays, others become 3, or 2 or 4 with an alignment.
uint32_t ree_twin_short_length(const struct ree_twin_size *size, uint32_t like);
// For sums over `like` terms: with as many chunks of 256 terms, up to 9.
uint32_t ree_twin_sum_length(const struct ree_twin_size *size, uint32_t like);
// For rows: as sums, but rows of more than 65536 elements stay so, because kernels walk them in
// another way.
uint32_t ree_twin_row_length(const struct ree_twin_size *size, uint32_t like);

// The last dimension above 1, or the last one.
uint32_t ree_twin_long_dim(uint32_t rank, const uint32_t *from);
// Dimensions to[rank] for an index space of about n elements: ree_twin_long_dim is long, even where
// it was 1; the others are short.
void ree_twin_dims(const struct ree_twin_size *size, uint32_t rank, const uint32_t *from,
                   uint64_t n, uint32_t *to);

// Replaces the strides of a view whose dimensions `from` become `to`. Strides of 0 stay. In memory
// the dimensions keep their order and directions; two neighbours that lay without a gap do so
// again, others get a gap. Returns the elements of the memory under the view. *offset, if not NULL,
// becomes that of the first element.
uint64_t ree_twin_view(const struct ree_twin_size *size, uint32_t rank, const uint32_t *from,
                       const uint32_t *to, int32_t *strides, int32_t *offset);

// ree_merge_dims and ree_merge_expr, which leave the old dimensions behind the new ones; here they
// become 0, so that equal problems have equal twins. Arrays have REE_MAX_RANK elements.
uint32_t ree_twin_merge_dims(uint32_t rank, uint32_t *dims, uint32_t n_sets,
                             int32_t *const *strides);
void ree_twin_merge_expr(struct ree_expr *expr);

#endif
