// Tensors of zeros, and tensors with a border of zeros.
#include "graph/lower/ops/spatial/spatial.h"

enum ree_status ree_spatial_zeros(struct ree_lower *lower, enum ree_dtype dtype, uint32_t rank,
                                  const int64_t *dims, struct ree_view **out) {
    const uint64_t zero = 0; // zero in every type
    struct ree_view *scalar, *filling;
    REE_TRY(ree_lower_literal(lower, dtype, 0, NULL, &zero, &scalar));
    REE_TRY(ree_lower_new(lower, dtype, rank, dims, out));
    REE_TRY(ree_lower_broadcast(lower, scalar, rank, dims, &filling));
    return ree_lower_copy_into(lower, filling, *out);
}

enum ree_status ree_spatial_border(struct ree_lower *lower, struct ree_view *t,
                                   const int64_t *before, const int64_t *after,
                                   struct ree_view **out) {
    int64_t dims[REE_MAX_RANK];
    bool any = false;
    for (uint32_t i = 0; i < t->rank; i++) {
        dims[i] = t->dims[i] + before[i] + after[i];
        any = any || before[i] || after[i];
    }
    *out = t;
    if (!any) return REE_OK;
    struct ree_view *middle;
    REE_TRY(ree_spatial_zeros(lower, t->dtype, t->rank, dims, out));
    if (ree_view_count(t) == 0) return REE_OK;
    middle = *out;
    for (uint32_t i = 0; i < t->rank; i++)
        REE_TRY(ree_lower_slice(lower, middle, i, before[i], 1, t->dims[i], &middle));
    return ree_lower_copy_into(lower, t, middle);
}
