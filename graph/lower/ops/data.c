// Shared by the rules for shapes, movement, reductions and resampling: lists from inputs or
// attributes, and gathers.
#include "graph/lower/ops/data.h"

#include <stdio.h>
#include <string.h>

static enum ree_status read_list(struct ree_lower *lower, struct ree_view *t, const char *what,
                                 const int64_t **out, size_t *out_n) {
    char text[128];
    if (t->rank > 1)
        return ree_lower_fail(lower, REE_INVALID, "%s is %s, expected a list of integers", what,
                              ree_view_text(t, text, sizeof text));
    return ree_lower_host_ints(lower, t, what, out, out_n);
}

enum ree_status ree_data_input_ints(struct ree_lower *lower, struct ree_view *const *in,
                                    uint32_t input, const char *what, const int64_t **out,
                                    size_t *out_n, bool *out_given) {
    struct ree_view *t = ree_rule_input(lower, in, input);
    *out = NULL;
    *out_n = 0;
    *out_given = t != NULL;
    return t ? read_list(lower, t, what, out, out_n) : REE_OK;
}

enum ree_status ree_data_ints(struct ree_lower *lower, struct ree_view *const *in, uint32_t input,
                              const char *name, const int64_t **out, size_t *out_n,
                              bool *out_given) {
    *out = NULL;
    *out_n = 0;
    *out_given = true;
    struct ree_view *t = input == REE_DATA_ATTR_ONLY ? NULL : ree_rule_input(lower, in, input);
    if (t) return read_list(lower, t, name, out, out_n);
    const struct ree_attr *attr = ree_node_attr(lower->node, name);
    if (!attr) {
        *out_given = false;
        return REE_OK;
    }
    if (attr->kind != REE_ATTR_INTS)
        return ree_lower_fail(lower, REE_INVALID, "attribute '%s' is not a list of integers", name);
    *out = attr->ints;
    *out_n = attr->n;
    return REE_OK;
}

enum ree_status ree_data_int(struct ree_lower *lower, struct ree_view *t, const char *what,
                             int64_t *out) {
    char text[128];
    if (ree_view_count(t) != 1)
        return ree_lower_fail(lower, REE_INVALID, "%s is %s, expected one integer", what,
                              ree_view_text(t, text, sizeof text));
    const int64_t *values;
    size_t n;
    REE_TRY(ree_lower_host_ints(lower, t, what, &values, &n));
    *out = values[0];
    return REE_OK;
}

enum ree_status ree_data_axes_mask(struct ree_lower *lower, size_t n, const int64_t *axes,
                                   uint32_t rank, uint32_t *out_mask) {
    uint32_t mask = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t axis;
        REE_TRY(ree_lower_axis(lower, axes[i], rank, &axis));
        if (mask >> axis & 1)
            return ree_lower_fail(lower, REE_INVALID, "axes contains axis %u twice", axis);
        mask |= UINT32_C(1) << axis;
    }
    *out_mask = mask;
    return REE_OK;
}

const char *ree_data_list_text(size_t n, const int64_t *values, char *out, size_t size) {
    size_t at = (size_t)snprintf(out, size, "[");
    for (size_t i = 0; i < n && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%lld", i ? "," : "", (long long)values[i]);
    if (at < size) snprintf(out + at, size - at, "]");
    return out;
}

enum ree_status ree_data_reinterpret(struct ree_lower *lower, struct ree_view *t,
                                     enum ree_dtype dtype, struct ree_view **out) {
    if (t->dtype == dtype) {
        *out = t;
        return REE_OK;
    }
    struct ree_view *view = ree_lower_view(lower, t);
    if (!view) return ree_lower_no_memory(lower);
    view->dtype = dtype;
    *out = view;
    return REE_OK;
}

enum ree_dtype ree_data_carrier(enum ree_dtype dtype) {
    return dtype == REE_F64 || dtype == REE_STRING ? REE_U64 : dtype;
}

enum ree_dtype ree_data_wide(enum ree_dtype dtype) {
    switch (dtype) {
    case REE_F16:
    case REE_BF16: return REE_F32;
    case REE_I16: return REE_I32;
    case REE_U16: return REE_U32;
    default: return dtype;
    }
}

bool ree_data_is_ordered(enum ree_dtype dtype) {
    switch (dtype) {
    case REE_F32:
    case REE_F64:
    case REE_I8:
    case REE_U8:
    case REE_I32:
    case REE_U32:
    case REE_I64:
    case REE_U64: return true;
    default: return false;
    }
}

void ree_data_dense_strides(uint32_t rank, const int64_t *dims, int32_t *out_strides) {
    uint32_t stride = 1; // may wrap for an empty tensor, whose strides are not used
    for (uint32_t i = rank; i-- > 0;) {
        out_strides[i] = (int32_t)stride;
        stride *= (uint32_t)dims[i];
    }
}

enum ree_status ree_data_emit_gather(struct ree_lower *lower, struct ree_view *data,
                                     struct ree_view *index, struct ree_gather_params *params,
                                     uint32_t rank, const int64_t *dims, struct ree_view **out) {
    REE_TRY(ree_lower_new(lower, data->dtype, rank, dims, out));
    int64_t count = ree_view_count(*out);
    if (count == 0) return REE_OK;
    union ree_params p;
    memset(&p, 0, sizeof p);
    struct ree_gather_params *g = &p.gather;
    *g = *params;
    g->elem_size = (uint32_t)ree_dtype_size(data->dtype);
    g->index_dtype = (uint32_t)index->dtype;
    g->n_elements = (uint32_t)count;
    g->data_offset = (int32_t)data->offset;
    uint32_t n = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] == 1) continue;
        int32_t ds = params->data_strides[i], is = params->index_strides[i];
        if (n && g->data_strides[n - 1] == ds * dims[i] && g->index_strides[n - 1] == is * dims[i])
            g->dims[n - 1] *= (uint32_t)dims[i];
        else
            g->dims[n++] = (uint32_t)dims[i];
        g->data_strides[n - 1] = ds;
        g->index_strides[n - 1] = is;
    }
    if (n == 0) {
        g->dims[0] = 1;
        g->data_strides[0] = g->index_strides[0] = 0;
        n = 1;
    }
    for (uint32_t i = n; i < REE_MAX_RANK; i++)
        g->dims[i] = 0, g->data_strides[i] = 0, g->index_strides[i] = 0;
    g->rank = n;
    struct ree_view *operands[3] = {data, index, *out};
    return ree_lower_emit(lower, REE_REPOP_GATHER, &p, operands, 3, 1);
}

// Selects along one axis with a table that has no regular pattern.
static enum ree_status gather_axis(struct ree_lower *lower, struct ree_view *t, uint32_t axis,
                                   const struct ree_axis_table *table, struct ree_view **out) {
    struct ree_view *index;
    REE_TRY(ree_lower_literal(lower, REE_I32, 1, &table->n, table->index, &index));
    struct ree_gather_params p = {.n_components = 1};
    int64_t dims[REE_MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++) {
        dims[i] = t->dims[i];
        p.data_strides[i] = (int32_t)t->strides[i];
    }
    dims[axis] = table->n;
    p.data_strides[axis] = 0;
    p.index_strides[axis] = 1;
    p.component_sizes[0] = (uint32_t)t->dims[axis];
    p.component_strides[0] = (int32_t)t->strides[axis];
    return ree_data_emit_gather(lower, t, index, &p, t->rank, dims, out);
}

// Returns whether index[i] = start + i * step.
static bool is_progression(const struct ree_axis_table *table, int64_t *out_step) {
    int64_t step = table->n > 1 ? (int64_t)table->index[1] - table->index[0] : 1;
    for (int64_t i = 2; i < table->n; i++)
        if ((int64_t)table->index[i] - table->index[i - 1] != step) return false;
    *out_step = step;
    return true;
}

// Returns whether index[i] = start + i / repeat, with repeat > 1 a divisor of n.
static bool is_repetition(const struct ree_axis_table *table, int64_t *out_repeat) {
    int64_t repeat = 1;
    while (repeat < table->n && table->index[repeat] == table->index[0])
        repeat++;
    if (repeat < 2 || table->n % repeat) return false;
    for (int64_t i = 0, k = 0, at = table->index[0]; i < table->n; i++) {
        if (table->index[i] != at) return false;
        if (++k == repeat) k = 0, at++;
    }
    *out_repeat = repeat;
    return true;
}

enum ree_status ree_data_select(struct ree_lower *lower, struct ree_view *t,
                                const struct ree_axis_table *axes, struct ree_view **out) {
    int64_t repeats[REE_MAX_RANK];
    uint32_t rank = t->rank, n_repeated = 0;
    for (uint32_t i = 0; i < rank; i++) {
        repeats[i] = 1;
        if (!axes[i].index) continue;
        int64_t step, repeat;
        if (axes[i].n == 0) {
            REE_TRY(ree_lower_slice(lower, t, i, 0, 1, 0, &t));
        } else if (is_progression(&axes[i], &step)) {
            REE_TRY(ree_lower_slice(lower, t, i, axes[i].index[0], step, axes[i].n, &t));
        } else if (rank + n_repeated < REE_MAX_RANK && is_repetition(&axes[i], &repeat)) {
            REE_TRY(ree_lower_slice(lower, t, i, axes[i].index[0], 1, axes[i].n / repeat, &t));
            repeats[i] = repeat;
            n_repeated++;
        } else {
            REE_TRY(gather_axis(lower, t, i, &axes[i], &t));
        }
    }
    if (n_repeated) {
        struct ree_view *view = ree_lower_view(lower, t);
        if (!view) return ree_lower_no_memory(lower);
        int64_t dims[REE_MAX_RANK];
        view->rank = 0;
        for (uint32_t i = 0; i < rank; i++) {
            dims[i] = t->dims[i] * repeats[i];
            view->dims[view->rank] = t->dims[i];
            view->strides[view->rank++] = t->strides[i];
            if (repeats[i] == 1) continue;
            view->dims[view->rank] = repeats[i];
            view->strides[view->rank++] = 0;
        }
        REE_TRY(ree_lower_reshape(lower, view, rank, dims, &t));
    }
    *out = t;
    return REE_OK;
}
