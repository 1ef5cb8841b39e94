// Lengths, dimensions and strides of twins. They are small and keep the properties by which
// backends choose code. twin.h lists the properties, struct ree_twin_size says which are kept.
#ifndef REE_DEVICE_SELFTEST_TWIN_VIEWS_H
#define REE_DEVICE_SELFTEST_TWIN_VIEWS_H

#include "device/selftest/twin_size.h"
#include "repops/repop.h"

#define REE_TWIN_MAX_VIEW (2 * REE_MAX_RANK) // maximum dimensions of a view

// Returns a length that replaces `like`. Without an alignment in `size` it is `base`. With one it
// is base plus less than `alignment`, so that it has the same greatest common divisor with the
// alignment as `like`; base must be a multiple of `alignment`. `alignment` is limited to
// size->alignment.
uint32_t ree_twin_length(const struct ree_twin_size *size, uint32_t base, uint32_t like,
                         uint32_t alignment);
// Returns a length for a dimension that is not the main one: 1 stays 1, others become 3, or 2 or 4
// with an alignment.
uint32_t ree_twin_short_length(const struct ree_twin_size *size, uint32_t like);
// Returns a length for a sum of `like` terms, with the same number of chunks of 256 terms, up to 9.
uint32_t ree_twin_sum_length(const struct ree_twin_size *size, uint32_t like);
// Returns a length for a row: as for sums, but a row of more than 65536 elements stays longer than
// that, because kernels use another loop for it. With size->small it is shortened too.
uint32_t ree_twin_row_length(const struct ree_twin_size *size, uint32_t like);

// Returns the last dimension above 1, or the last dimension if none is.
uint32_t ree_twin_long_dim(uint32_t rank, const uint32_t *from);
// Chooses dimensions to[rank] for an index space of about n elements. Dimension ree_twin_long_dim
// is long, even if it was 1; the others are short.
void ree_twin_dims(const struct ree_twin_size *size, uint32_t rank, const uint32_t *from,
                   uint64_t n, uint32_t *to);

// Replaces the strides of a view whose dimensions `from` become `to`. Strides of 0 stay 0. In
// memory the dimensions keep their order and direction. Two neighbouring dimensions without a gap
// stay so; others get a gap. Returns the number of elements that the view spans in memory. *offset,
// if not NULL, becomes the offset of the first element.
uint64_t ree_twin_view(const struct ree_twin_size *size, uint32_t rank, const uint32_t *from,
                       const uint32_t *to, int32_t *strides, int32_t *offset);

// As ree_merge_dims and ree_merge_expr, but dimensions after the merged ones are set to 0, so that
// equal problems have equal twins. Arrays have REE_MAX_RANK elements.
uint32_t ree_twin_merge_dims(uint32_t rank, uint32_t *dims, uint32_t n_sets,
                             int32_t *const *strides);
void ree_twin_merge_expr(struct ree_expr *expr);

#endif
