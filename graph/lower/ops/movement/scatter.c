// Scatter, ScatterElements, ScatterND: a copy of the data, then one `scatter` into it.
#include "graph/lower/ops/data.h"

#include <string.h>

static enum ree_status scatter_kind(struct ree_lower *lower, enum ree_scatter_kind *out) {
    static const char *const names[] = {"none", "add", "mul", "min", "max"};
    const char *name = ree_rule_string(lower, "reduction", "none");
    for (int k = 0; k < 5; k++) {
        if (strcmp(name, names[k]) != 0) continue;
        *out = (enum ree_scatter_kind)k; // in the order of the enum
        return REE_OK;
    }
    return ree_lower_fail(lower, REE_INVALID,
                          "reduction is '%s', expected none, add, mul, min or max", name);
}

static enum ree_status check_types(struct ree_lower *lower, const struct ree_view *data,
                                   const struct ree_view *index, const struct ree_view *updates) {
    char a[128], b[128];
    if (index->dtype != REE_I64 && index->dtype != REE_I32)
        return ree_lower_fail(lower, REE_INVALID, "indices are %s, expected int64 or int32",
                              ree_view_text(index, a, sizeof a));
    if (updates->dtype != data->dtype)
        return ree_lower_fail(lower, REE_INVALID, "updates are %s, but the data is %s",
                              ree_view_text(updates, a, sizeof a),
                              ree_view_text(data, b, sizeof b));
    return REE_OK;
}

// Returns the type in which updates are combined: the wide type for types without arithmetic of
// their own. Replacement only moves bytes.
static enum ree_dtype computing_type(enum ree_scatter_kind kind, enum ree_dtype dtype) {
    return kind == REE_SCATTER_SET ? dtype : ree_data_wide(dtype);
}

static bool can_combine(enum ree_dtype dtype) {
    switch (dtype) {
    case REE_F32:
    case REE_F64:
    case REE_I32:
    case REE_U32:
    case REE_I64:
    case REE_U64:
    case REE_I8:
    case REE_U8: return true;
    default: return false;
    }
}

// Converts the operands, copies the data and emits the scatter into the copy. The caller has filled
// in the shape in p, for a dense target with data's dims.
static enum ree_status scatter(struct ree_lower *lower, struct ree_view *data,
                               struct ree_view *index, struct ree_view *updates,
                               enum ree_scatter_kind kind, struct ree_scatter_params *p,
                               struct ree_view **out) {
    enum ree_dtype dtype = data->dtype, wide = computing_type(kind, dtype);
    if (kind != REE_SCATTER_SET && !can_combine(wide))
        return ree_lower_fail(lower, REE_UNSUPPORTED, "reductions of %s are not supported",
                              ree_dtype_name(dtype));
    REE_TRY(ree_lower_cast(lower, updates, wide, &updates));
    REE_TRY(ree_lower_dense(lower, index, &index));
    REE_TRY(ree_lower_dense(lower, updates, &updates));
    struct ree_view *target;
    if (wide != dtype) {
        REE_TRY(ree_lower_cast(lower, data, wide, &target));
    } else {
        REE_TRY(ree_lower_new(lower, dtype, data->rank, data->dims, &target));
        REE_TRY(ree_lower_copy_into(lower, data, target));
    }
    if (ree_view_count(updates)) {
        union ree_params params;
        memset(&params, 0, sizeof params);
        params.scatter = *p;
        params.scatter.kind = kind;
        params.scatter.dtype = (uint32_t)wide;
        params.scatter.index_dtype = (uint32_t)index->dtype;
        struct ree_view *operands[3] = {target, index, updates};
        REE_TRY(ree_lower_emit(lower, REE_REPOP_SCATTER, &params, operands, 3, 0));
    }
    return ree_lower_cast(lower, target, dtype, out);
}

// A vector of the RepOp has one position on all axes except the scattered one; its updates along
// that axis are its steps.
enum ree_status ree_lower_op_scatterelements(struct ree_lower *lower, struct ree_view *const *in,
                                             struct ree_view **out) {
    struct ree_view *data = in[0], *index = in[1], *updates = in[2];
    enum ree_scatter_kind kind;
    uint32_t axis;
    REE_TRY(scatter_kind(lower, &kind));
    REE_TRY(check_types(lower, data, index, updates));
    REE_TRY(ree_lower_axis(lower, ree_rule_int(lower, "axis", 0), data->rank, &axis));
    bool fits = index->rank == data->rank && updates->rank == data->rank;
    for (uint32_t i = 0; fits && i < data->rank; i++)
        fits = index->dims[i] == updates->dims[i] && (i == axis || index->dims[i] <= data->dims[i]);
    if (!fits) {
        char a[128], b[128], c[128];
        return ree_lower_fail(
            lower, REE_INVALID,
            "indices %s and updates %s do not match data %s: the first two must have the same "
            "shape, which may be longer than the data only along axis %u",
            ree_view_text(index, a, sizeof a), ree_view_text(updates, b, sizeof b),
            ree_view_text(data, c, sizeof c), axis);
    }
    struct ree_scatter_params p = {.rank = data->rank, .n_step_dims = 1, .n_components = 1};
    int32_t data_strides[REE_MAX_RANK], index_strides[REE_MAX_RANK];
    ree_data_dense_strides(data->rank, data->dims, data_strides);
    ree_data_dense_strides(index->rank, index->dims, index_strides);
    p.n_vectors = 1;
    p.n_steps = (uint32_t)index->dims[axis];
    p.component_sizes[0] = (uint32_t)data->dims[axis];
    p.component_strides[0] = data_strides[axis];
    for (uint32_t i = 0, n = 0; i < data->rank; i++) {
        uint32_t to = i == axis ? data->rank - 1 : n++;
        p.dims[to] = (uint32_t)index->dims[i];
        p.data_strides[to] = i == axis ? 0 : data_strides[i];
        p.index_strides[to] = p.update_strides[to] = index_strides[i];
        if (i != axis) p.n_vectors *= p.dims[to];
    }
    return scatter(lower, data, index, updates, kind, &p, &out[0]);
}

// The steps of the RepOp are the tuples of indices, in row-major order. A vector has one element of
// the slices that the tuples select.
enum ree_status ree_lower_op_scatternd(struct ree_lower *lower, struct ree_view *const *in,
                                       struct ree_view **out) {
    struct ree_view *data = in[0], *index = in[1], *updates = in[2];
    enum ree_scatter_kind kind;
    REE_TRY(scatter_kind(lower, &kind));
    REE_TRY(check_types(lower, data, index, updates));
    uint32_t q = index->rank;
    int64_t k = q ? index->dims[q - 1] : 0;
    bool fits = q >= 1 && data->rank >= 1 && k >= 1 && k <= data->rank;
    uint32_t n_index = fits ? (uint32_t)k : 0;
    fits = fits && updates->rank == q - 1 + data->rank - n_index;
    for (uint32_t i = 0; fits && i < updates->rank; i++)
        fits = updates->dims[i] == (i < q - 1 ? index->dims[i] : data->dims[i - (q - 1) + n_index]);
    if (!fits) {
        char a[128], b[128], c[128];
        return ree_lower_fail(lower, REE_INVALID, "indices %s and updates %s do not match data %s",
                              ree_view_text(index, a, sizeof a),
                              ree_view_text(updates, b, sizeof b),
                              ree_view_text(data, c, sizeof c));
    }
    struct ree_scatter_params p = {.rank = 2, .n_step_dims = 1, .n_components = n_index};
    int32_t data_strides[REE_MAX_RANK];
    ree_data_dense_strides(data->rank, data->dims, data_strides);
    p.n_vectors = p.n_steps = 1;
    for (uint32_t i = n_index; i < data->rank; i++)
        p.n_vectors *= (uint32_t)data->dims[i];
    for (uint32_t i = 0; i + 1 < q; i++)
        p.n_steps *= (uint32_t)index->dims[i];
    p.dims[0] = p.n_vectors;
    p.dims[1] = p.n_steps;
    p.data_strides[0] = 1;
    p.index_strides[1] = (int32_t)n_index;
    p.update_strides[0] = 1;
    p.update_strides[1] = (int32_t)p.n_vectors;
    p.component_stride = 1;
    for (uint32_t j = 0; j < n_index; j++) {
        p.component_sizes[j] = (uint32_t)data->dims[j];
        p.component_strides[j] = data_strides[j];
    }
    return scatter(lower, data, index, updates, kind, &p, &out[0]);
}
