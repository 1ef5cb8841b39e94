// Pad. "constant" fills a new tensor and copies the input into it; "reflect", "edge" and "wrap"
// select elements of the input along each axis. Negative pads crop the input before anything is
// added.
#include "graph/lower/ops/data.h"

#include <string.h>

struct padding {
    int64_t begin[REE_MAX_RANK], end[REE_MAX_RANK];
};

static enum ree_status read_padding(struct ree_lower *lower, struct ree_view *const *in,
                                    struct padding *out) {
    const struct ree_view *t = in[0];
    const int64_t *pads, *axes;
    size_t n, n_axes;
    bool given, has_axes;
    const char *name = lower->node->opset < 2 ? "paddings" : "pads";
    REE_TRY(ree_data_ints(lower, in, 1, name, &pads, &n, &given));
    REE_TRY(ree_data_ints(lower, in, 3, "axes", &axes, &n_axes, &has_axes));
    if (!given) return ree_lower_fail(lower, REE_INVALID, "pads is missing");
    size_t n_padded = has_axes ? n_axes : t->rank;
    if (n_padded > REE_MAX_RANK || n != 2 * n_padded)
        return ree_lower_fail(lower, REE_INVALID,
                              "pads has %zu elements, expected 2 for each of "
                              "%zu axes",
                              n, n_padded);
    if (has_axes) {
        uint32_t mask;
        REE_TRY(ree_data_axes_mask(lower, n_axes, axes, t->rank, &mask));
    }
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < n_padded; i++) {
        uint32_t axis = (uint32_t)i;
        if (has_axes) REE_TRY(ree_lower_axis(lower, axes[i], t->rank, &axis));
        int64_t begin = pads[i], end = pads[n_padded + i];
        bool sane = begin > -INT32_MAX && begin < INT32_MAX && end > -INT32_MAX && end < INT32_MAX;
        if (!sane || t->dims[axis] + begin + end < 0)
            return ree_lower_fail(lower, REE_INVALID,
                                  "pads %lld and %lld are not possible for axis %u of size %lld",
                                  (long long)begin, (long long)end, axis, (long long)t->dims[axis]);
        out->begin[axis] = begin;
        out->end[axis] = end;
    }
    return REE_OK;
}

// Cuts off the elements that negative pads specify and sets these pads to 0. *out_more tells
// whether positive pads remain.
static enum ree_status crop(struct ree_lower *lower, struct ree_view *t, struct padding *padding,
                            struct ree_view **out, bool *out_more) {
    *out_more = false;
    for (uint32_t i = 0; i < t->rank; i++) {
        int64_t *begin = &padding->begin[i], *end = &padding->end[i], dim = t->dims[i];
        int64_t cut_begin = *begin < 0 ? -*begin : 0, cut_end = *end < 0 ? -*end : 0;
        int64_t left = dim - cut_begin - cut_end;
        if (left < 0) {
            // One side cuts into what the other side adds: nothing of the input remains.
            if (*begin > 0) *begin += left;
            if (*end > 0) *end += left;
            left = 0;
        }
        if (cut_begin || cut_end)
            REE_TRY(ree_lower_slice(lower, t, i, left ? cut_begin : 0, 1, left, &t));
        if (*begin < 0) *begin = 0;
        if (*end < 0) *end = 0;
        if (*begin || *end) *out_more = true;
    }
    *out = t;
    return REE_OK;
}

// Makes the fill value, a scalar of the data's type: from an input or attribute, or zero.
static enum ree_status fill_value(struct ree_lower *lower, struct ree_view *const *in,
                                  struct ree_view **out) {
    enum ree_dtype dtype = in[0]->dtype;
    struct ree_view *given = ree_rule_input(lower, in, 2);
    if (given) {
        char text[128];
        if (given->dtype != dtype || ree_view_count(given) != 1)
            return ree_lower_fail(lower, REE_INVALID, "constant_value is %s, expected one %s",
                                  ree_view_text(given, text, sizeof text), ree_dtype_name(dtype));
        return ree_lower_reshape(lower, given, 0, NULL, out);
    }
    float value = lower->node->opset < 11 ? ree_rule_float(lower, "value", 0) : 0;
    if (value == 0) {
        const uint64_t zero = 0; // zero in every type
        return ree_lower_literal(lower, dtype, 0, NULL, &zero, out);
    }
    if (dtype == REE_F64) {
        double wide = (double)value;
        return ree_lower_literal(lower, REE_F64, 0, NULL, &wide, out);
    }
    REE_TRY(ree_lower_literal(lower, REE_F32, 0, NULL, &value, out));
    return ree_lower_cast(lower, *out, dtype, out);
}

static enum ree_status pad_constant(struct ree_lower *lower, struct ree_view *t,
                                    const struct padding *padding, struct ree_view *value,
                                    struct ree_view **out) {
    int64_t dims[REE_MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++)
        dims[i] = t->dims[i] + padding->begin[i] + padding->end[i];
    struct ree_view *filled, *filling;
    REE_TRY(ree_lower_new(lower, t->dtype, t->rank, dims, &filled));
    REE_TRY(ree_lower_broadcast(lower, value, t->rank, dims, &filling));
    REE_TRY(ree_lower_copy_into(lower, filling, filled));
    *out = filled;
    if (ree_view_count(t) == 0) return REE_OK;
    struct ree_view *middle = filled;
    for (uint32_t i = 0; i < t->rank; i++)
        REE_TRY(ree_lower_slice(lower, middle, i, padding->begin[i], 1, t->dims[i], &middle));
    return ree_lower_copy_into(lower, t, middle);
}

// Maximum length of the table, made on the host, with the source of each position of a padded axis.
#define MAX_TABLE (INT64_C(1) << 28)

enum pad_mode { PAD_REFLECT, PAD_EDGE, PAD_WRAP };

// Returns the element in [0, dim) that is shown at position `at`, which may be outside on either
// side.
static int64_t outside_index(enum pad_mode mode, int64_t at, int64_t dim) {
    if (mode == PAD_EDGE || dim == 1) return at < 0 ? 0 : at >= dim ? dim - 1 : at;
    int64_t period = mode == PAD_WRAP ? dim : 2 * (dim - 1);
    at %= period;
    if (at < 0) at += period;
    return at < dim ? at : period - at;
}

static enum ree_status pad_from_input(struct ree_lower *lower, struct ree_view *t,
                                      const struct padding *padding, enum pad_mode mode,
                                      struct ree_view **out) {
    struct ree_axis_table tables[REE_MAX_RANK] = {{NULL, 0}};
    for (uint32_t i = 0; i < t->rank; i++) {
        int64_t dim = t->dims[i], begin = padding->begin[i], n = dim + begin + padding->end[i];
        if (n == dim) continue;
        if (dim == 0)
            return ree_lower_fail(lower, REE_INVALID,
                                  "axis %u is empty: it has no elements to pad with", i);
        if (n > MAX_TABLE)
            return ree_lower_fail(lower, REE_UNSUPPORTED,
                                  "axis %u becomes %lld long; at most %lld is supported", i,
                                  (long long)n, (long long)MAX_TABLE);
        int32_t *index = ree_arena_alloc_array(lower->arena, (size_t)n, sizeof *index);
        if (!index) return ree_lower_no_memory(lower);
        for (int64_t k = 0; k < n; k++)
            index[k] = (int32_t)outside_index(mode, k - begin, dim);
        tables[i] = (struct ree_axis_table){index, n};
    }
    return ree_data_select(lower, t, tables, out);
}

enum ree_status ree_lower_op_pad(struct ree_lower *lower, struct ree_view *const *in,
                                 struct ree_view **out) {
    const char *mode = ree_rule_string(lower, "mode", "constant");
    bool constant = !strcmp(mode, "constant"), reflect = !strcmp(mode, "reflect");
    bool edge = !strcmp(mode, "edge"), wrap = !strcmp(mode, "wrap");
    if (!constant && !reflect && !edge && !wrap)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "mode is '%s', expected constant, reflect, edge or wrap", mode);
    struct padding padding;
    struct ree_view *t;
    bool more;
    REE_TRY(read_padding(lower, in, &padding));
    REE_TRY(crop(lower, in[0], &padding, &t, &more));
    out[0] = t;
    if (!more) return REE_OK;
    if (!constant)
        return pad_from_input(lower, t, &padding,
                              reflect ? PAD_REFLECT
                              : edge  ? PAD_EDGE
                                      : PAD_WRAP,
                              &out[0]);
    struct ree_view *value;
    REE_TRY(fill_value(lower, in, &value));
    return pad_constant(lower, t, &padding, value, &out[0]);
}
