// Views: reshape, transpose, broadcast and slice without moving data, and copies for the cases in
// which data must move.
#include "graph/lower/core/lower.h"

#include <string.h>

struct ree_view *ree_lower_view(struct ree_lower *lower, const struct ree_view *t) {
    struct ree_view *view = ree_arena_alloc(lower->arena, sizeof *view);
    if (view) *view = *t;
    return view;
}

// Computes the strides of t's elements under new dims; returns false if no strides can describe
// them. Walks both shapes from the innermost dimension. Each group of old dims whose product equals
// that of a group of new dims must be contiguous within the group.
static bool reshape_strides(const struct ree_view *t, uint32_t rank, const int64_t *dims,
                            int64_t *out_strides) {
    int32_t i = (int32_t)t->rank - 1, j = (int32_t)rank - 1;
    while (j >= 0) {
        while (i >= 0 && t->dims[i] == 1)
            i--;
        if (dims[j] == 1) {
            out_strides[j--] = 0;
            continue;
        }
        if (i < 0) return false;
        int64_t old_n = t->dims[i], new_n = dims[j];
        int32_t i_end = i, j_end = j;
        while (old_n != new_n) {
            if (old_n < new_n) {
                if (--i < 0) return false;
                if (t->dims[i] != 1 && t->strides[i] != t->strides[i_end] * old_n) return false;
                old_n *= t->dims[i];
            } else {
                if (--j < 0) return false;
                new_n *= dims[j];
            }
        }
        int64_t stride = t->strides[i_end];
        for (int32_t k = j_end; k >= j; k--) {
            out_strides[k] = stride;
            stride *= dims[k];
        }
        i--;
        j--;
    }
    return true;
}

enum ree_status ree_lower_reshape(struct ree_lower *lower, struct ree_view *t, uint32_t rank,
                                  const int64_t *dims, struct ree_view **out) {
    int64_t count;
    char text[128], wanted[128];
    struct ree_view shape = {.dtype = t->dtype, .rank = rank <= REE_MAX_RANK ? rank : REE_MAX_RANK};
    for (uint32_t i = 0; i < shape.rank; i++)
        shape.dims[i] = dims[i];
    if (rank > REE_MAX_RANK)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "a shape of rank %u; at most %d is supported",
                              rank, REE_MAX_RANK);
    if (!ree_count_elements(rank, dims, &count) || count != ree_view_count(t))
        return ree_lower_fail(lower, REE_INVALID, "cannot reshape %s to %s",
                              ree_view_text(t, text, sizeof text),
                              ree_view_text(&shape, wanted, sizeof wanted));
    struct ree_view *view = ree_lower_view(lower, t);
    if (!view) return ree_lower_no_memory(lower);
    view->rank = rank;
    for (uint32_t i = 0; i < rank; i++)
        view->dims[i] = dims[i];
    if (count == 0) {
        for (uint32_t i = 0; i < rank; i++)
            view->strides[i] = 1;
    } else if (!reshape_strides(t, rank, dims, view->strides)) {
        struct ree_view *dense;
        REE_TRY(ree_lower_dense(lower, t, &dense));
        view->storage = dense->storage;
        view->offset = dense->offset;
        reshape_strides(dense, rank, dims, view->strides);
    }
    *out = view;
    return REE_OK;
}

enum ree_status ree_lower_transpose(struct ree_lower *lower, struct ree_view *t,
                                    const uint32_t *perm, struct ree_view **out) {
    struct ree_view *view = ree_lower_view(lower, t);
    if (!view) return ree_lower_no_memory(lower);
    bool seen[REE_MAX_RANK] = {false};
    for (uint32_t i = 0; i < t->rank; i++) {
        if (perm[i] >= t->rank || seen[perm[i]])
            return ree_lower_fail(lower, REE_INVALID, "perm is not a permutation of 0 to %u",
                                  t->rank - 1);
        seen[perm[i]] = true;
        view->dims[i] = t->dims[perm[i]];
        view->strides[i] = t->strides[perm[i]];
    }
    *out = view;
    return REE_OK;
}

enum ree_status ree_lower_broadcast(struct ree_lower *lower, struct ree_view *t, uint32_t rank,
                                    const int64_t *dims, struct ree_view **out) {
    char text[128], wanted[128];
    struct ree_view shape = {.dtype = t->dtype, .rank = rank};
    if (rank > REE_MAX_RANK)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "a shape of rank %u; at most %d is supported",
                              rank, REE_MAX_RANK);
    for (uint32_t i = 0; i < rank; i++)
        shape.dims[i] = dims[i];
    struct ree_view *view = ree_lower_view(lower, t);
    if (!view) return ree_lower_no_memory(lower);
    bool fits = t->rank <= rank;
    for (uint32_t i = 0; i < rank && fits; i++) {
        uint32_t lead = rank - t->rank;
        int64_t dim = i < lead ? 1 : t->dims[i - lead];
        view->dims[i] = dims[i];
        view->strides[i] = dim == 1 ? 0 : t->strides[i - lead];
        if (dim != 1 && dim != dims[i]) fits = false;
    }
    if (!fits)
        return ree_lower_fail(lower, REE_INVALID, "cannot broadcast %s to %s",
                              ree_view_text(t, text, sizeof text),
                              ree_view_text(&shape, wanted, sizeof wanted));
    view->rank = rank;
    *out = view;
    return REE_OK;
}

enum ree_status ree_lower_broadcast_dims(struct ree_lower *lower, size_t n,
                                         struct ree_view *const *ts, uint32_t *out_rank,
                                         int64_t out_dims[REE_MAX_RANK]) {
    uint32_t rank = 0;
    for (size_t k = 0; k < n; k++)
        if (ts[k]->rank > rank) rank = ts[k]->rank;
    for (uint32_t i = 0; i < rank; i++)
        out_dims[i] = 1;
    for (size_t k = 0; k < n; k++) {
        uint32_t lead = rank - ts[k]->rank;
        for (uint32_t i = 0; i < ts[k]->rank; i++) {
            int64_t dim = ts[k]->dims[i], *common = &out_dims[lead + i];
            if (dim == *common || dim == 1) continue;
            if (*common != 1) {
                char a[128], b[128];
                struct ree_view shape = {.dtype = ts[k]->dtype, .rank = rank};
                memcpy(shape.dims, out_dims, sizeof shape.dims);
                return ree_lower_fail(
                    lower, REE_INVALID, "input %zu, %s, does not broadcast with %s", k,
                    ree_view_text(ts[k], a, sizeof a), ree_view_text(&shape, b, sizeof b));
            }
            *common = dim;
        }
    }
    *out_rank = rank;
    return REE_OK;
}

enum ree_status ree_lower_slice(struct ree_lower *lower, struct ree_view *t, uint32_t axis,
                                int64_t start, int64_t step, int64_t count, struct ree_view **out) {
    struct ree_view *view = ree_lower_view(lower, t);
    if (!view) return ree_lower_no_memory(lower);
    if (axis >= t->rank || count < 0 || (count > 0 && (start < 0 || start >= t->dims[axis])))
        return ree_lower_fail(lower, REE_INTERNAL, "slice out of range");
    if (count > 1) { // with one element the step has no effect, whatever its size
        int64_t span, last;
        if (__builtin_mul_overflow(step, count - 1, &span) ||
            __builtin_add_overflow(start, span, &last) || last < 0 || last >= t->dims[axis])
            return ree_lower_fail(lower, REE_INTERNAL, "slice out of range");
        view->strides[axis] = t->strides[axis] * step;
    }
    view->dims[axis] = count;
    if (count > 0) view->offset += start * t->strides[axis];
    *out = view;
    return REE_OK;
}

enum ree_status ree_lower_axis(struct ree_lower *lower, int64_t axis, uint32_t rank,
                               uint32_t *out) {
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return ree_lower_fail(lower, REE_INVALID, "axis %lld is out of range for rank %u",
                              (long long)axis, rank);
    *out = (uint32_t)(axis < 0 ? axis + rank : axis);
    return REE_OK;
}

// Emits a copy from src to dst, which have the same dims. Merges neighbouring dimensions if the
// strides of both views allow it.
static enum ree_status emit_copy(struct ree_lower *lower, struct ree_view *src,
                                 struct ree_view *dst) {
    union ree_params params;
    struct ree_copy_params *p = &params.copy;
    memset(p, 0, sizeof *p);
    p->elem_size = (uint32_t)ree_dtype_size(src->dtype);
    p->n_elements = (uint32_t)ree_view_count(src);
    p->src_offset = (int32_t)src->offset;
    p->dst_offset = (int32_t)dst->offset;
    if (p->n_elements == 0) return REE_OK;
    for (uint32_t i = 0; i < src->rank; i++) {
        if (src->dims[i] == 1) continue;
        if (p->rank) {
            uint32_t last = p->rank - 1;
            if (p->src_strides[last] == src->strides[i] * src->dims[i] &&
                p->dst_strides[last] == dst->strides[i] * src->dims[i]) {
                p->dims[last] *= (uint32_t)src->dims[i];
                p->src_strides[last] = (int32_t)src->strides[i];
                p->dst_strides[last] = (int32_t)dst->strides[i];
                continue;
            }
        }
        p->dims[p->rank] = (uint32_t)src->dims[i];
        p->src_strides[p->rank] = (int32_t)src->strides[i];
        p->dst_strides[p->rank] = (int32_t)dst->strides[i];
        p->rank++;
    }
    if (p->rank == 0) {
        p->rank = 1;
        p->dims[0] = 1;
        p->src_strides[0] = p->dst_strides[0] = 1;
    }
    struct ree_view *operands[2] = {src, dst};
    return ree_lower_emit(lower, REE_REPOP_COPY, &params, operands, 2, 1);
}

enum ree_status ree_lower_copy_into(struct ree_lower *lower, struct ree_view *src,
                                    struct ree_view *dst) {
    bool same = src->rank == dst->rank && ree_dtype_size(src->dtype) == ree_dtype_size(dst->dtype);
    for (uint32_t i = 0; same && i < src->rank; i++)
        same = src->dims[i] == dst->dims[i];
    if (!same) return ree_lower_fail(lower, REE_INTERNAL, "copy between different shapes");
    return emit_copy(lower, src, dst);
}

enum ree_status ree_lower_dense(struct ree_lower *lower, struct ree_view *t,
                                struct ree_view **out) {
    // Kernels require dense operands at offsets that are multiples of 4 bytes.
    bool aligned = (uint64_t)t->offset * ree_dtype_size(t->dtype) % 4 == 0;
    if (ree_view_is_dense(t) && aligned) {
        *out = t;
        return REE_OK;
    }
    struct ree_view *dense;
    REE_TRY(ree_lower_new(lower, t->dtype, t->rank, t->dims, &dense));
    REE_TRY(emit_copy(lower, t, dense));
    *out = dense;
    return REE_OK;
}
