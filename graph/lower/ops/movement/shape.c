// Reshape, Flatten, Squeeze, Unsqueeze, Expand: views. Shape, Size: literals.
#include "graph/lower/ops/data.h"

#include <string.h>

static enum ree_status no_memory(struct ree_lower *lower) {
    return ree_lower_fail(lower, REE_NO_MEMORY, "out of memory");
}

// Computes the size that -1 stands for. Dimensions that a 0 copies cancel out, so that an empty
// tensor (a kv cache before its first step) can be reshaped by [0,0,-1] although any size would fit
// 0 elements.
static enum ree_status infer_dim(const struct ree_view *t, size_t n, const int64_t *dims,
                                 size_t infer, uint32_t copied, int64_t *out) {
    int64_t have = 1, want = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (i < n && (copied >> i & 1)) continue;
        if (__builtin_mul_overflow(have, t->dims[i], &have)) return REE_INVALID;
    }
    for (size_t i = 0; i < n; i++) {
        if (i == infer || (copied >> i & 1)) continue;
        if (__builtin_mul_overflow(want, dims[i], &want)) return REE_INVALID;
    }
    if (want == 0 || have % want) return REE_INVALID;
    *out = have / want;
    return REE_OK;
}

enum ree_status ree_lower_op_reshape(struct ree_lower *lower, struct ree_view *const *in,
                                     struct ree_view **out) {
    struct ree_view *t = in[0];
    const int64_t *shape;
    size_t n;
    bool given;
    REE_TRY(ree_data_ints(lower, in, 1, "shape", &shape, &n, &given));
    if (!given) return ree_lower_fail(lower, REE_INVALID, "shape is missing");
    char text[128], wanted[192];
    if (n > REE_MAX_RANK)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "shape has %zu dimensions; at most %d are supported", n,
                              REE_MAX_RANK);
    ree_data_list_text(n, shape, wanted, sizeof wanted);
    bool allow_zero = ree_node_int(lower->node, "allowzero", 0) != 0;
    int64_t dims[REE_MAX_RANK];
    size_t infer = n;
    uint32_t copied = 0;
    for (size_t i = 0; i < n; i++) {
        dims[i] = shape[i];
        if (shape[i] == 0 && !allow_zero) {
            if (i >= t->rank)
                return ree_lower_fail(lower, REE_INVALID,
                                      "cannot reshape %s to %s: the 0 at position %zu copies a "
                                      "dimension that the input does not have",
                                      ree_view_text(t, text, sizeof text), wanted, i);
            dims[i] = t->dims[i];
            copied |= UINT32_C(1) << i;
        } else if (shape[i] == -1 && infer == n) {
            infer = i;
        } else if (shape[i] < 0) {
            return ree_lower_fail(lower, REE_INVALID, "cannot reshape %s to %s: %s",
                                  ree_view_text(t, text, sizeof text), wanted,
                                  shape[i] == -1 ? "more than one -1" : "a negative size");
        }
    }
    if (infer < n && infer_dim(t, n, dims, infer, copied, &dims[infer]) != REE_OK)
        return ree_lower_fail(lower, REE_INVALID, "cannot reshape %s to %s",
                              ree_view_text(t, text, sizeof text), wanted);
    return ree_lower_reshape(lower, t, (uint32_t)n, dims, &out[0]);
}

enum ree_status ree_lower_op_flatten(struct ree_lower *lower, struct ree_view *const *in,
                                     struct ree_view **out) {
    struct ree_view *t = in[0];
    int64_t axis = ree_node_int(lower->node, "axis", 1), rank = t->rank;
    if (axis < -rank || axis > rank)
        return ree_lower_fail(lower, REE_INVALID, "axis %lld is out of range for rank %u",
                              (long long)axis, t->rank);
    uint32_t split = (uint32_t)(axis < 0 ? axis + rank : axis);
    int64_t dims[2];
    if (!ree_count_elements(split, t->dims, &dims[0]) ||
        !ree_count_elements(t->rank - split, t->dims + split, &dims[1]))
        return ree_lower_fail(lower, REE_UNSUPPORTED, "the flattened sizes are too large");
    return ree_lower_reshape(lower, t, 2, dims, &out[0]);
}

enum ree_status ree_lower_op_squeeze(struct ree_lower *lower, struct ree_view *const *in,
                                     struct ree_view **out) {
    struct ree_view *t = in[0];
    const int64_t *axes;
    size_t n;
    bool given;
    REE_TRY(ree_data_ints(lower, in, 1, "axes", &axes, &n, &given));
    uint32_t mask = 0;
    REE_TRY(ree_data_axes_mask(lower, n, axes, t->rank, &mask));
    struct ree_view *view = ree_lower_view(lower, t);
    if (!view) return no_memory(lower);
    view->rank = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        bool drop = given ? mask >> i & 1 : t->dims[i] == 1;
        if (drop && t->dims[i] != 1) {
            char text[128];
            return ree_lower_fail(lower, REE_INVALID,
                                  "cannot squeeze axis %u of %s: its size is not 1", i,
                                  ree_view_text(t, text, sizeof text));
        }
        if (drop) continue;
        view->dims[view->rank] = t->dims[i];
        view->strides[view->rank++] = t->strides[i];
    }
    out[0] = view;
    return REE_OK;
}

enum ree_status ree_lower_op_unsqueeze(struct ree_lower *lower, struct ree_view *const *in,
                                       struct ree_view **out) {
    struct ree_view *t = in[0];
    const int64_t *axes;
    size_t n;
    bool given;
    REE_TRY(ree_data_ints(lower, in, 1, "axes", &axes, &n, &given));
    if (!given) return ree_lower_fail(lower, REE_INVALID, "axes is missing");
    if (n > REE_MAX_RANK - t->rank)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "%zu new axes and the input's %u; at most %d in total are supported",
                              n, t->rank, REE_MAX_RANK);
    uint32_t mask, rank = t->rank + (uint32_t)n;
    REE_TRY(ree_data_axes_mask(lower, n, axes, rank, &mask));
    struct ree_view *view = ree_lower_view(lower, t);
    if (!view) return no_memory(lower);
    view->rank = rank;
    for (uint32_t i = 0, from = 0; i < rank; i++) {
        bool fresh = mask >> i & 1;
        view->dims[i] = fresh ? 1 : t->dims[from];
        view->strides[i] = fresh ? 0 : t->strides[from];
        if (!fresh) from++;
    }
    out[0] = view;
    return REE_OK;
}

enum ree_status ree_lower_op_expand(struct ree_lower *lower, struct ree_view *const *in,
                                    struct ree_view **out) {
    const int64_t *shape;
    size_t n;
    bool given;
    REE_TRY(ree_data_ints(lower, in, 1, "shape", &shape, &n, &given));
    if (n > REE_MAX_RANK)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "shape has %zu dimensions; at most %d are supported", n,
                              REE_MAX_RANK);
    struct ree_view target = {.dtype = in[0]->dtype, .rank = (uint32_t)n};
    for (size_t i = 0; i < n; i++) {
        if (shape[i] < 0)
            return ree_lower_fail(lower, REE_INVALID, "shape has the negative size %lld",
                                  (long long)shape[i]);
        target.dims[i] = shape[i];
    }
    struct ree_view *both[2] = {in[0], &target};
    uint32_t rank;
    int64_t dims[REE_MAX_RANK], count;
    REE_TRY(ree_lower_broadcast_dims(lower, 2, both, &rank, dims));
    if (!ree_count_elements(rank, dims, &count) || count >= INT64_C(1) << 31)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "the expanded tensor has 2^31 elements or "
                              "more");
    return ree_lower_broadcast(lower, in[0], rank, dims, &out[0]);
}

static int64_t clamp_position(int64_t at, int64_t rank) {
    if (at < 0) at += rank;
    return at < 0 ? 0 : at > rank ? rank : at;
}

enum ree_status ree_lower_op_shape(struct ree_lower *lower, struct ree_view *const *in,
                                   struct ree_view **out) {
    int64_t rank = in[0]->rank;
    int64_t start = clamp_position(ree_node_int(lower->node, "start", 0), rank);
    int64_t end = clamp_position(ree_node_int(lower->node, "end", rank), rank);
    size_t n = end > start ? (size_t)(end - start) : 0;
    return ree_lower_ints(lower, n, in[0]->dims + (n ? start : 0), &out[0]);
}

enum ree_status ree_lower_op_size(struct ree_lower *lower, struct ree_view *const *in,
                                  struct ree_view **out) {
    int64_t count = ree_view_count(in[0]);
    return ree_lower_literal(lower, REE_I64, 0, NULL, &count, &out[0]);
}
