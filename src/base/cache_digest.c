#include "base/cache_digest.h"

#include <string.h>

void ree_cache_digest_begin(struct ree_cache_digest *positions, const struct ree_tensor *tensor,
                            uint32_t axis) {
    const uint32_t type[3] = {(uint32_t)tensor->dtype, tensor->rank, axis};
    int64_t dims[REE_MAX_RANK];
    memcpy(dims, tensor->dims, sizeof dims);
    dims[axis] = 0;
    positions->axis = axis;
    positions->n_positions = 0;
    struct ree_hasher *hasher = ree_hasher_create("ree-rows/1");
    ree_hasher_update(hasher, type, sizeof type);
    ree_hasher_update(hasher, dims, tensor->rank * sizeof *dims);
    ree_hasher_digest(hasher, positions->digest);
}

void ree_cache_digest_add(struct ree_cache_digest *positions, const struct ree_tensor *tensor) {
    static const char row_tag[] = "ree-row/1";
    size_t inner = ree_dtype_size(tensor->dtype), outer = 1;
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (i != positions->axis)
            *(i < positions->axis ? &outer : &inner) *= (size_t)tensor->dims[i];
    size_t n = (size_t)tensor->dims[positions->axis];
    ree_digest unused;
    struct ree_hasher *hasher = ree_hasher_create(row_tag);
    for (size_t row = 0; row < n; row++) {
        ree_hasher_update(hasher, positions->digest, sizeof positions->digest);
        for (size_t o = 0; inner && o < outer; o++)
            ree_hasher_update(hasher, (const char *)tensor->data + (o * n + row) * inner, inner);
        ree_hasher_next(hasher, row_tag, positions->digest);
    }
    ree_hasher_digest(hasher, unused);
    positions->n_positions += (int64_t)n;
}
