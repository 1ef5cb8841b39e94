// Transpose, Split, Slice: views. Concat, Tile, DepthToSpace, SpaceToDepth: one copy at most,
// except that Tile of a high rank copies once per repeated axis.
#include "graph/lower/ops/data.h"

#include <string.h>

enum ree_status ree_lower_op_transpose(struct ree_lower *lower, struct ree_view *const *in,
                                       struct ree_view **out) {
    struct ree_view *t = in[0];
    const int64_t *given_perm;
    size_t n;
    bool given;
    REE_TRY(ree_data_ints(lower, in, REE_DATA_ATTR_ONLY, "perm", &given_perm, &n, &given));
    uint32_t perm[REE_MAX_RANK];
    if (given && n != t->rank)
        return ree_lower_fail(lower, REE_INVALID, "perm has %zu entries, but the input has rank %u",
                              n, t->rank);
    for (uint32_t i = 0; i < t->rank; i++) {
        if (given)
            REE_TRY(ree_lower_axis(lower, given_perm[i], t->rank, &perm[i]));
        else
            perm[i] = t->rank - 1 - i;
    }
    return ree_lower_transpose(lower, t, perm, &out[0]);
}

// Computes the dims of the result. All inputs must agree in type, rank and all sizes except along
// the axis, where their sizes are added.
static enum ree_status concat_dims(struct ree_lower *lower, struct ree_view *const *in, size_t n,
                                   uint32_t axis, int64_t *dims) {
    char text[128], first[128];
    memcpy(dims, in[0]->dims, sizeof in[0]->dims);
    for (size_t k = 1; k < n; k++) {
        bool fits = in[k]->dtype == in[0]->dtype && in[k]->rank == in[0]->rank;
        for (uint32_t i = 0; fits && i < in[0]->rank; i++)
            fits = i == axis || in[k]->dims[i] == in[0]->dims[i];
        if (!fits)
            return ree_lower_fail(lower, REE_INVALID,
                                  "cannot concatenate input %zu, %s, to %s along axis %u", k,
                                  ree_view_text(in[k], text, sizeof text),
                                  ree_view_text(in[0], first, sizeof first), axis);
        if (__builtin_add_overflow(dims[axis], in[k]->dims[axis], &dims[axis]))
            return ree_lower_fail(lower, REE_UNSUPPORTED, "axis %u becomes too long", axis);
    }
    return REE_OK;
}

enum ree_status ree_lower_op_concat(struct ree_lower *lower, struct ree_view *const *in,
                                    struct ree_view **out) {
    const struct ree_node *node = lower->node;
    size_t n = node->n_inputs;
    for (size_t k = 0; k < n; k++)
        if (!in[k]) return ree_lower_fail(lower, REE_INVALID, "input %zu is omitted", k);
    if (node->opset >= 4 && !ree_node_attr(node, "axis"))
        return ree_lower_fail(lower, REE_INVALID, "attribute 'axis' is missing");
    uint32_t axis;
    REE_TRY(ree_lower_axis(lower, ree_rule_int(lower, "axis", 1), in[0]->rank, &axis));
    int64_t dims[REE_MAX_RANK];
    REE_TRY(concat_dims(lower, in, n, axis, dims));
    if (n == 1) {
        out[0] = in[0];
        return REE_OK;
    }
    if (n == 2 && ree_lower_grows_in_place(lower, in[0], axis, in[1]->dims[axis]))
        return ree_lower_append(lower, in[0], axis, in[1], &out[0]);
    struct ree_view *joined;
    REE_TRY(ree_lower_new(lower, in[0]->dtype, in[0]->rank, dims, &joined));
    int64_t at = 0;
    for (size_t k = 0; k < n; k++) {
        int64_t size = in[k]->dims[axis];
        if (size == 0) continue;
        struct ree_view *part;
        REE_TRY(ree_lower_slice(lower, joined, axis, at, 1, size, &part));
        REE_TRY(ree_lower_copy_into(lower, in[k], part));
        at += size;
    }
    out[0] = joined;
    return REE_OK;
}

// Computes the size of each part of a split axis: as listed, or equal, with smaller last parts from
// opset 18 on.
static enum ree_status split_sizes(struct ree_lower *lower, struct ree_view *const *in, int64_t dim,
                                   int64_t *sizes) {
    const struct ree_node *node = lower->node;
    size_t n_out = node->n_outputs, n;
    const int64_t *listed;
    bool given;
    REE_TRY(ree_data_ints(lower, in, 1, "split", &listed, &n, &given));
    int64_t num = ree_rule_int(lower, "num_outputs", (int64_t)n_out);
    if (num < 0 || (uint64_t)num != n_out)
        return ree_lower_fail(lower, REE_INVALID, "num_outputs is %lld, but there are %zu outputs",
                              (long long)num, n_out);
    if (given) {
        int64_t total = 0;
        bool fits = n == n_out;
        for (size_t i = 0; fits && i < n; i++) {
            fits = listed[i] >= 0 && !__builtin_add_overflow(total, listed[i], &total);
            sizes[i] = listed[i];
        }
        if (fits && total == dim) return REE_OK;
        char text[192];
        return ree_lower_fail(
            lower, REE_INVALID, "split is %s, expected %zu sizes that add up to %lld",
            ree_data_list_text(n, listed, text, sizeof text), n_out, (long long)dim);
    }
    int64_t parts = (int64_t)n_out, part = dim / parts + (dim % parts != 0);
    if (dim % parts && node->opset < 18)
        return ree_lower_fail(lower, REE_INVALID, "cannot split %lld into %zu equal parts",
                              (long long)dim, n_out);
    for (int64_t i = 0, left = dim; i < parts; i++) {
        sizes[i] = left < part ? left : part;
        left -= sizes[i];
    }
    return REE_OK;
}

enum ree_status ree_lower_op_split(struct ree_lower *lower, struct ree_view *const *in,
                                   struct ree_view **out) {
    const struct ree_node *node = lower->node;
    if (node->n_outputs == 0) return ree_lower_fail(lower, REE_INVALID, "the node has no output");
    uint32_t axis;
    REE_TRY(ree_lower_axis(lower, ree_rule_int(lower, "axis", 0), in[0]->rank, &axis));
    int64_t *sizes = ree_arena_alloc_array(lower->arena, node->n_outputs, sizeof *sizes);
    if (!sizes) return ree_lower_no_memory(lower);
    REE_TRY(split_sizes(lower, in, in[0]->dims[axis], sizes));
    int64_t at = 0;
    for (size_t i = 0; i < node->n_outputs; i++) {
        REE_TRY(ree_lower_slice(lower, in[0], axis, at, 1, sizes[i], &out[i]));
        at += sizes[i];
    }
    return REE_OK;
}

// Slices one axis. Any 64-bit value is valid for ends and steps; values beyond the axis are
// clamped.
static enum ree_status slice_axis(struct ree_lower *lower, struct ree_view *t, uint32_t axis,
                                  int64_t start, int64_t end, int64_t step, struct ree_view **out) {
    if (step == 0) return ree_lower_fail(lower, REE_INVALID, "steps has a 0");
    int64_t dim = t->dims[axis];
    // A negative step may start at the last element and end before the first.
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
    if (start < 0) start += dim;
    if (end < 0) end += dim;
    start = start < low ? low : start > high ? high : start;
    end = end < low ? low : end > high ? high : end;
    // The distance fits in 63 bits; a larger step selects one element.
    int64_t distance = step > 0 ? end - start : start - end;
    if (step < -INT64_MAX) step = -INT64_MAX;
    int64_t stride = step > 0 ? step : -step;
    int64_t count = distance <= 0 ? 0 : 1 + (distance - 1) / stride;
    return ree_lower_slice(lower, t, axis, count ? start : 0, step, count, out);
}

enum ree_status ree_lower_op_slice(struct ree_lower *lower, struct ree_view *const *in,
                                   struct ree_view **out) {
    struct ree_view *t = in[0];
    const int64_t *starts, *ends, *axes, *steps;
    size_t n, n_ends, n_axes, n_steps;
    bool has_starts, has_ends, has_axes, has_steps;
    REE_TRY(ree_data_ints(lower, in, 1, "starts", &starts, &n, &has_starts));
    REE_TRY(ree_data_ints(lower, in, 2, "ends", &ends, &n_ends, &has_ends));
    REE_TRY(ree_data_ints(lower, in, 3, "axes", &axes, &n_axes, &has_axes));
    REE_TRY(ree_data_input_ints(lower, in, 4, "steps", &steps, &n_steps, &has_steps));
    if (!has_starts || !has_ends)
        return ree_lower_fail(lower, REE_INVALID, "%s is missing", has_starts ? "ends" : "starts");
    if (n_ends != n || (has_axes && n_axes != n) || (has_steps && n_steps != n))
        return ree_lower_fail(lower, REE_INVALID,
                              "starts has %zu elements, ends has %zu, axes has %zu, steps has %zu; "
                              "expected equal numbers",
                              n, n_ends, has_axes ? n_axes : n, has_steps ? n_steps : n);
    if (n > t->rank)
        return ree_lower_fail(lower, REE_INVALID,
                              "starts has %zu elements, but the input has rank %u", n, t->rank);
    if (has_axes) {
        uint32_t mask;
        REE_TRY(ree_data_axes_mask(lower, n, axes, t->rank, &mask));
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t axis = (uint32_t)i;
        if (has_axes) REE_TRY(ree_lower_axis(lower, axes[i], in[0]->rank, &axis));
        REE_TRY(slice_axis(lower, t, axis, starts[i], ends[i], has_steps ? steps[i] : 1, &t));
    }
    out[0] = t;
    return REE_OK;
}

// Repeats t along one axis: (before, size, after) is viewed as (before, repeat, size, after).
static enum ree_status tile_axis(struct ree_lower *lower, struct ree_view *t, uint32_t axis,
                                 int64_t repeat, struct ree_view **out) {
    int64_t dims[REE_MAX_RANK], flat[3] = {1, t->dims[axis], 1};
    for (uint32_t i = 0; i < t->rank; i++) {
        dims[i] = t->dims[i];
        if (i != axis) flat[i < axis ? 0 : 2] *= t->dims[i];
    }
    dims[axis] *= repeat;
    struct ree_view *view;
    REE_TRY(ree_lower_reshape(lower, t, 3, flat, &view));
    view->rank = 4;
    for (uint32_t i = 3; i >= 2; i--) {
        view->dims[i] = view->dims[i - 1];
        view->strides[i] = view->strides[i - 1];
    }
    view->dims[1] = repeat;
    view->strides[1] = 0;
    return ree_lower_reshape(lower, view, t->rank, dims, out);
}

// Repeats t along all axes at once: a dimension of stride 0 is inserted before each repeated axis,
// and one copy makes the result dense. If this exceeds the maximum rank, axes are repeated one by
// one.
static enum ree_status tile(struct ree_lower *lower, struct ree_view *t, const int64_t *repeats,
                            struct ree_view **out) {
    struct ree_view *view = ree_lower_view(lower, t);
    if (!view) return ree_lower_no_memory(lower);
    int64_t dims[REE_MAX_RANK], count = 1;
    uint32_t rank = 0, n_tiled = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (repeats[i] < 0 || __builtin_mul_overflow(t->dims[i], repeats[i], &dims[i]))
            return ree_lower_fail(lower, REE_INVALID, "cannot repeat axis %u %lld times", i,
                                  (long long)repeats[i]);
        if (repeats[i] != 1 && t->dims[i] != 1) n_tiled++;
    }
    if (!ree_count_elements(t->rank, dims, &count) || count >= INT64_C(1) << 31)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "the tiled tensor has 2^31 elements or more");
    if (count == 0) return ree_lower_new(lower, t->dtype, t->rank, dims, out);
    bool at_once = t->rank + n_tiled <= REE_MAX_RANK;
    for (uint32_t i = 0; i < t->rank; i++) {
        bool stretch = t->dims[i] == 1; // a size of 1 needs no inserted dimension
        if (at_once && !stretch && repeats[i] != 1) {
            view->dims[rank] = repeats[i];
            view->strides[rank++] = 0;
        }
        view->dims[rank] = stretch ? repeats[i] : t->dims[i];
        view->strides[rank++] = stretch ? 0 : t->strides[i];
    }
    view->rank = rank;
    if (at_once) return ree_lower_reshape(lower, view, t->rank, dims, out);
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->dims[i] == 1 || repeats[i] == 1) continue;
        REE_TRY(tile_axis(lower, view, i, repeats[i], &view));
    }
    *out = view;
    return REE_OK;
}

// Reads an input of Tile before opset 6, which may have the type of the data.
static enum ree_status tile1_number(struct ree_lower *lower, struct ree_view *t, const char *what,
                                    int64_t *out) {
    if (t->dtype != REE_F32) return ree_data_int(lower, t, what, out);
    float value;
    REE_TRY(ree_lower_host_float(lower, t, what, &value));
    if (!(value >= -8.0f && value <= 2147483648.0f))
        return ree_lower_fail(lower, REE_INVALID, "%s is %g", what, (double)value);
    *out = (int64_t)value;
    return REE_OK;
}

enum ree_status ree_lower_op_tile(struct ree_lower *lower, struct ree_view *const *in,
                                  struct ree_view **out) {
    struct ree_view *t = in[0];
    if (lower->node->opset < 6) {
        int64_t times[REE_MAX_RANK], axis_value;
        uint32_t axis;
        for (uint32_t i = 0; i < REE_MAX_RANK; i++)
            times[i] = 1;
        REE_TRY(tile1_number(lower, in[2], "axis", &axis_value));
        REE_TRY(ree_lower_axis(lower, axis_value, t->rank, &axis));
        REE_TRY(tile1_number(lower, in[1], "tiles", &times[axis]));
        return tile(lower, t, times, &out[0]);
    }
    const int64_t *repeats;
    size_t n;
    bool given;
    REE_TRY(ree_data_ints(lower, in, 1, "repeats", &repeats, &n, &given));
    if (n != t->rank)
        return ree_lower_fail(lower, REE_INVALID,
                              "repeats has %zu elements, but the input has rank %u", n, t->rank);
    return tile(lower, t, repeats, &out[0]);
}

// Splits the shape into six dimensions, permutes them and joins them again: used for both
// SpaceToDepth and DepthToSpace.
static enum ree_status shuffle(struct ree_lower *lower, struct ree_view *t, const int64_t *split,
                               const uint32_t *perm, const int64_t *join, struct ree_view **out) {
    REE_TRY(ree_lower_reshape(lower, t, 6, split, &t));
    REE_TRY(ree_lower_transpose(lower, t, perm, &t));
    return ree_lower_reshape(lower, t, 4, join, out);
}

// Reads blocksize, after checking the input's rank, and whether the mode is CRD.
static enum ree_status block_attributes(struct ree_lower *lower, const struct ree_view *t,
                                        int64_t *out_block, bool *out_crd) {
    char text[128];
    if (t->rank != 4)
        return ree_lower_fail(lower, REE_INVALID, "the input is %s, expected rank 4",
                              ree_view_text(t, text, sizeof text));
    int64_t block = ree_rule_int(lower, "blocksize", 0);
    if (block < 1 || block > INT32_MAX)
        return ree_lower_fail(lower, REE_INVALID, "blocksize is %lld", (long long)block);
    const char *mode = ree_rule_string(lower, "mode", "DCR");
    *out_crd = !strcmp(mode, "CRD");
    if (!*out_crd && strcmp(mode, "DCR") != 0)
        return ree_lower_fail(lower, REE_INVALID, "mode is '%s', expected DCR or CRD", mode);
    *out_block = block;
    return REE_OK;
}

enum ree_status ree_lower_op_depthtospace(struct ree_lower *lower, struct ree_view *const *in,
                                          struct ree_view **out) {
    struct ree_view *t = in[0];
    int64_t b;
    bool crd;
    REE_TRY(block_attributes(lower, t, &b, &crd));
    int64_t n = t->dims[0], c = t->dims[1], h = t->dims[2], w = t->dims[3];
    if (c % (b * b))
        return ree_lower_fail(lower, REE_INVALID,
                              "%lld channels are not a multiple of blocksize %lld squared",
                              (long long)c, (long long)b);
    c /= b * b;
    int64_t dcr_split[6] = {n, b, b, c, h, w}, crd_split[6] = {n, c, b, b, h, w};
    static const uint32_t dcr_perm[6] = {0, 3, 4, 1, 5, 2}, crd_perm[6] = {0, 1, 4, 2, 5, 3};
    int64_t join[4] = {n, c, h * b, w * b};
    return shuffle(lower, t, crd ? crd_split : dcr_split, crd ? crd_perm : dcr_perm, join, &out[0]);
}

enum ree_status ree_lower_op_spacetodepth(struct ree_lower *lower, struct ree_view *const *in,
                                          struct ree_view **out) {
    struct ree_view *t = in[0];
    int64_t b;
    bool crd;
    REE_TRY(block_attributes(lower, t, &b, &crd));
    int64_t n = t->dims[0], c = t->dims[1], h = t->dims[2], w = t->dims[3];
    if (h % b || w % b)
        return ree_lower_fail(lower, REE_INVALID,
                              "height %lld and width %lld are not multiples of blocksize %lld",
                              (long long)h, (long long)w, (long long)b);
    h /= b;
    w /= b;
    int64_t split[6] = {n, c, h, b, w, b}, join[4] = {n, c * b * b, h, w};
    static const uint32_t dcr_perm[6] = {0, 3, 5, 1, 2, 4}, crd_perm[6] = {0, 1, 3, 5, 2, 4};
    return shuffle(lower, t, split, crd ? crd_perm : dcr_perm, join, &out[0]);
}
