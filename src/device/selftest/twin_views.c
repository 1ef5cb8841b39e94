#include "device/selftest/twin_views.h"

#include "repops/merge.h"

#define MOST_CHUNKS 9 // of a sum; sums with more chunks get this number

static uint32_t magnitude(int32_t stride) {
    return stride < 0 ? 0u - (uint32_t)stride : (uint32_t)stride;
}

// Returns the greatest common divisor of n and a power of two; for n = 0 the power itself.
static uint32_t divisor_of(uint32_t n, uint32_t power) {
    uint32_t lowest = n & (0u - n);
    return lowest == 0 || lowest > power ? power : lowest;
}

uint32_t ree_twin_length(const struct ree_twin_size *size, uint32_t base, uint32_t like,
                         uint32_t alignment) {
    if (size->alignment == 0) return base;
    if (alignment > size->alignment) alignment = size->alignment;
    return base + divisor_of(like, alignment) % alignment;
}

uint32_t ree_twin_sum_length(const struct ree_twin_size *size, uint32_t like) {
    uint32_t n_chunks = like / REE_CHUNK + (like % REE_CHUNK > 0);
    uint32_t full = n_chunks == 0 ? 0 : n_chunks > MOST_CHUNKS ? MOST_CHUNKS - 1 : n_chunks - 1;
    if (like % REE_CHUNK == 0 && like > 0) return (full + 1) * REE_CHUNK;
    return ree_twin_length(size, full * REE_CHUNK + 192, like, size->alignment);
}

uint32_t ree_twin_row_length(const struct ree_twin_size *size, uint32_t like) {
    return like > 65536 && !size->small ? ree_twin_length(size, 66048, like, size->alignment)
                                        : ree_twin_sum_length(size, like);
}

// Returns a stride above `step`, so that a gap is left: the next one whose greatest common divisor
// with size->alignment is that of `like`, or step + 1 without alignment.
static int64_t next_step(const struct ree_twin_size *size, int64_t step, uint32_t like) {
    if (size->alignment == 0) return step + 1;
    uint32_t divisor = divisor_of(like, size->alignment);
    do
        step = (step / divisor + 1) * divisor;
    while (divisor_of((uint32_t)step, size->alignment) != divisor);
    return step;
}

uint64_t ree_twin_view(const struct ree_twin_size *size, uint32_t rank, const uint32_t *from,
                       const uint32_t *to, int32_t *strides, int32_t *offset) {
    uint32_t order[REE_TWIN_MAX_VIEW], n = 0; // innermost first
    for (uint32_t d = 0; d < rank; d++) {
        if (to[d] == 0) return 0;
        // For a dimension of size 1 a stride of 0 has no meaning.
        if (!size->alignment && from[d] == 1 && to[d] > 1 && strides[d] == 0) strides[d] = 1;
    }
    for (uint32_t d = rank; d-- > 0;) {
        if (strides[d] == 0 || to[d] == 1) continue;
        // A dimension of size 1 that grows becomes the outermost one.
        uint32_t at = n++;
        while (at > 0 && from[d] > 1 &&
               (from[order[at - 1]] <= 1 ||
                magnitude(strides[order[at - 1]]) > magnitude(strides[d]))) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = d;
    }
    uint64_t extent = 1;
    int64_t first = 0, step = 1;
    int32_t new_strides[REE_TWIN_MAX_VIEW] = {0};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t d = order[i], before = i > 0 ? order[i - 1] : d;
        bool adjacent =
            i == 0 ? magnitude(strides[d]) == 1 || from[d] <= 1
                   : magnitude(strides[d]) == (uint64_t)magnitude(strides[before]) * from[before];
        if (!adjacent) step = next_step(size, step, magnitude(strides[d]));
        new_strides[d] = (int32_t)(strides[d] < 0 ? -step : step);
        if (strides[d] < 0) first += (to[d] - 1) * step;
        extent += (uint64_t)(to[d] - 1) * (uint64_t)step;
        step *= to[d];
    }
    for (uint32_t d = 0; d < rank; d++) {
        const uint32_t old = magnitude(strides[d]);
        if (to[d] != 1)
            strides[d] = new_strides[d];
        else if (old > 1 && size->alignment) // a dimension of size 1 keeps a stride other than 1
            strides[d] = old % 2 ? 3 : (int32_t)divisor_of(old, size->alignment);
        else if (!size->alignment)
            strides[d] = old != 0;
    }
    if (offset && size->alignment) {
        uint32_t extra = divisor_of(magnitude(*offset), size->alignment) % size->alignment;
        first += extra;
        extent += extra;
    }
    if (offset) *offset = (int32_t)first;
    return extent;
}

uint32_t ree_twin_long_dim(uint32_t rank, const uint32_t *from) {
    for (uint32_t d = rank; d-- > 0;)
        if (from[d] > 1) return d;
    return rank - 1;
}

uint32_t ree_twin_short_length(const struct ree_twin_size *size, uint32_t like) {
    if (like <= 1) return 1;
    return size->alignment && like % 2 == 0 ? divisor_of(like, 4) : 3;
}

void ree_twin_dims(const struct ree_twin_size *size, uint32_t rank, const uint32_t *from,
                   uint64_t n, uint32_t *to) {
    uint32_t last = ree_twin_long_dim(rank, from);
    for (uint32_t d = 0; d < rank; d++) {
        to[d] = ree_twin_short_length(size, from[d]);
        if (d != last) n /= to[d];
    }
    to[last] = n > 5 ? (uint32_t)n : 5;
    if (size->alignment)
        to[last] = ree_twin_length(size, (to[last] / size->alignment + 1) * size->alignment,
                                   from[last], size->alignment);
}

uint32_t ree_twin_merge_dims(uint32_t rank, uint32_t *dims, uint32_t n_sets,
                             int32_t *const *strides) {
    const uint32_t merged = ree_merge_dims(rank, dims, n_sets, strides);
    for (uint32_t d = merged; d < REE_MAX_RANK; d++) {
        dims[d] = 0;
        for (uint32_t s = 0; s < n_sets; s++)
            strides[s][d] = 0;
    }
    return merged;
}

void ree_twin_merge_expr(struct ree_expr *expr) {
    int32_t *sets[REE_EXPR_MAX_OPERANDS];
    for (uint32_t i = 0; i < expr->n_operands; i++)
        sets[i] = expr->operands[i].strides;
    if (expr->n_elements > 0)
        expr->rank = ree_twin_merge_dims(expr->rank, expr->dims, expr->n_operands, sets);
}
