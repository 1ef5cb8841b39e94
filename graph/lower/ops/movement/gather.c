// Gather, GatherElements, GatherND, ReverseSequence: one `gather` each. Compress and NonZero read
// their input on the host, because their output shapes depend on it.
#include "graph/lower/ops/data.h"
#include "base/dtype.h"

#include <string.h>

static enum ree_status check_index_type(struct ree_lower *lower, const struct ree_view *index) {
    char text[128];
    if (index->dtype == REE_I64 || index->dtype == REE_I32) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "indices are %s, expected int64 or int32",
                          ree_view_text(index, text, sizeof text));
}

// A single host-known index `at` selects one slice of the data, which is a view.
static enum ree_status gather_one(struct ree_lower *lower, struct ree_view *data, uint32_t axis,
                                  const struct ree_view *index, int64_t at, struct ree_view **out) {
    struct ree_view *view;
    REE_TRY(ree_lower_slice(lower, data, axis, at, 1, 1, &view));
    // Replace the axis by as many dimensions of size 1 as the index has.
    struct ree_view *shaped = ree_lower_view(lower, view);
    if (!shaped) return ree_lower_no_memory(lower);
    shaped->rank = data->rank - 1 + index->rank;
    for (uint32_t i = 0; i < shaped->rank; i++) {
        bool fresh = i >= axis && i < axis + index->rank;
        uint32_t from = i < axis ? i : i + 1 - index->rank;
        shaped->dims[i] = fresh ? 1 : view->dims[from];
        shaped->strides[i] = fresh ? 0 : view->strides[from];
    }
    *out = shaped;
    return REE_OK;
}

enum ree_status ree_data_gather(struct ree_lower *lower, struct ree_view *data,
                                struct ree_view *index, uint32_t axis, struct ree_view **out) {
    REE_TRY(check_index_type(lower, index));
    uint32_t rank = data->rank - 1 + index->rank;
    if (rank > REE_MAX_RANK)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "the result has rank %u; at most %d is "
                              "supported",
                              rank, REE_MAX_RANK);
    if (ree_view_count(index) == 1 && ree_lower_is_host(index)) {
        int64_t at, dim = data->dims[axis];
        REE_TRY(ree_data_int(lower, index, "indices", &at));
        if (at < 0) at += dim;
        // An index out of range is left to the dispatch: a run must not depend on whether the host
        // knows the index, and a dispatch that nothing reads does not fail.
        if (at >= 0 && at < dim) return gather_one(lower, data, axis, index, at, out);
    }
    REE_TRY(ree_lower_dense(lower, index, &index));

    struct ree_gather_params p = {.n_components = 1};
    p.component_sizes[0] = (uint32_t)data->dims[axis];
    p.component_strides[0] = (int32_t)data->strides[axis];
    int32_t index_strides[REE_MAX_RANK];
    ree_data_dense_strides(index->rank, index->dims, index_strides);
    int64_t dims[REE_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++) {
        if (i >= axis && i < axis + index->rank) {
            dims[i] = index->dims[i - axis];
            p.index_strides[i] = index_strides[i - axis];
        } else {
            uint32_t from = i < axis ? i : i + 1 - index->rank;
            dims[i] = data->dims[from];
            p.data_strides[i] = (int32_t)data->strides[from];
        }
    }
    return ree_data_emit_gather(lower, data, index, &p, rank, dims, out);
}

enum ree_status ree_lower_op_gather(struct ree_lower *lower, struct ree_view *const *in,
                                    struct ree_view **out) {
    uint32_t axis;
    REE_TRY(ree_lower_axis(lower, ree_rule_int(lower, "axis", 0), in[0]->rank, &axis));
    return ree_data_gather(lower, in[0], in[1], axis, &out[0]);
}

enum ree_status ree_lower_op_gatherelements(struct ree_lower *lower, struct ree_view *const *in,
                                            struct ree_view **out) {
    struct ree_view *data = in[0], *index = in[1];
    uint32_t axis;
    REE_TRY(check_index_type(lower, index));
    REE_TRY(ree_lower_axis(lower, ree_rule_int(lower, "axis", 0), data->rank, &axis));
    // Coordinates on the other axes are used unchanged, so they must be inside the data.
    bool fits = index->rank == data->rank;
    for (uint32_t i = 0; fits && i < data->rank; i++)
        fits = i == axis || index->dims[i] <= data->dims[i];
    if (!fits) {
        char a[128], b[128];
        return ree_lower_fail(lower, REE_INVALID,
                              "indices %s do not match data %s: the ranks must be equal, and "
                              "indices may be longer only along axis %u",
                              ree_view_text(index, a, sizeof a), ree_view_text(data, b, sizeof b),
                              axis);
    }
    REE_TRY(ree_lower_dense(lower, index, &index));
    struct ree_gather_params p = {.n_components = 1};
    ree_data_dense_strides(index->rank, index->dims, p.index_strides);
    for (uint32_t i = 0; i < data->rank; i++)
        p.data_strides[i] = i == axis ? 0 : (int32_t)data->strides[i];
    p.component_sizes[0] = (uint32_t)data->dims[axis];
    p.component_strides[0] = (int32_t)data->strides[axis];
    return ree_data_emit_gather(lower, data, index, &p, index->rank, index->dims, &out[0]);
}

enum ree_status ree_lower_op_gathernd(struct ree_lower *lower, struct ree_view *const *in,
                                      struct ree_view **out) {
    struct ree_view *data = in[0], *index = in[1];
    char a[128], b[128];
    REE_TRY(check_index_type(lower, index));
    int64_t n_batch = ree_rule_int(lower, "batch_dims", 0);
    uint32_t q = index->rank;
    bool fits = n_batch >= 0 && q >= 1 && n_batch < q && n_batch < data->rank;
    int64_t k = fits ? index->dims[q - 1] : 0;
    fits = fits && k >= 1 && k <= data->rank - n_batch;
    for (uint32_t i = 0; fits && i < n_batch; i++)
        fits = index->dims[i] == data->dims[i];
    if (!fits)
        return ree_lower_fail(lower, REE_INVALID,
                              "indices %s do not match data %s with batch_dims %lld",
                              ree_view_text(index, a, sizeof a), ree_view_text(data, b, sizeof b),
                              (long long)n_batch);
    uint32_t batch = (uint32_t)n_batch, n_index = (uint32_t)k, inner = batch + n_index;
    uint32_t rank = q - 1 + data->rank - inner;
    if (rank > REE_MAX_RANK)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "the result has rank %u; at most %d is "
                              "supported",
                              rank, REE_MAX_RANK);
    REE_TRY(ree_lower_dense(lower, index, &index));

    struct ree_gather_params p = {.n_components = n_index, .component_stride = 1};
    for (uint32_t j = 0; j < n_index; j++) {
        p.component_sizes[j] = (uint32_t)data->dims[batch + j];
        p.component_strides[j] = (int32_t)data->strides[batch + j];
    }
    int32_t index_strides[REE_MAX_RANK];
    ree_data_dense_strides(q, index->dims, index_strides);
    int64_t dims[REE_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++) {
        if (i < q - 1) {
            dims[i] = index->dims[i];
            p.index_strides[i] = index_strides[i];
            p.data_strides[i] = i < batch ? (int32_t)data->strides[i] : 0;
        } else {
            uint32_t from = i - (q - 1) + inner;
            dims[i] = data->dims[from];
            p.data_strides[i] = (int32_t)data->strides[from];
        }
    }
    return ree_data_emit_gather(lower, data, index, &p, rank, dims, &out[0]);
}

// out[t, b] = data[t < len[b] ? len[b] - 1 - t : t, b]. A map over (batch, time) makes the time
// indices.
enum ree_status ree_lower_op_reversesequence(struct ree_lower *lower, struct ree_view *const *in,
                                             struct ree_view **out) {
    struct ree_view *data = in[0], *lens = in[1];
    char text[128];
    uint32_t time, batch;
    REE_TRY(ree_lower_axis(lower, ree_rule_int(lower, "time_axis", 0), data->rank, &time));
    REE_TRY(ree_lower_axis(lower, ree_rule_int(lower, "batch_axis", 1), data->rank, &batch));
    if (time == batch)
        return ree_lower_fail(lower, REE_INVALID, "time_axis and batch_axis are both %u", time);
    if (lens->dtype != REE_I64 || lens->rank != 1 || lens->dims[0] != data->dims[batch])
        return ree_lower_fail(lower, REE_INVALID, "sequence_lens is %s, expected int64[%lld]",
                              ree_view_text(lens, text, sizeof text), (long long)data->dims[batch]);
    int64_t dims[2] = {data->dims[batch], data->dims[time]}, column[2] = {dims[0], 1};
    REE_TRY(ree_lower_reshape(lower, lens, 2, column, &lens));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 2, dims);
    int len = ree_expr_tensor(&b, lens), t = ree_expr_iota(&b, REE_I64, 0, (int64_t[2]){0, 1});
    int last = ree_expr_op2(&b, REE_MAP_sub_i64, len, ree_expr_i64(&b, 1));
    int mirrored = ree_expr_op2(&b, REE_MAP_sub_i64, last, t);
    int at =
        ree_expr_op3(&b, REE_MAP_select_b64, ree_expr_op2(&b, REE_MAP_lt_i64, t, len), mirrored, t);
    struct ree_view *index;
    REE_TRY(ree_lower_map(&b, at, REE_I64, &index));

    struct ree_gather_params p = {.n_components = 1};
    for (uint32_t i = 0; i < data->rank; i++)
        p.data_strides[i] = i == time ? 0 : (int32_t)data->strides[i];
    p.index_strides[batch] = (int32_t)dims[1];
    p.index_strides[time] = 1;
    p.component_sizes[0] = (uint32_t)data->dims[time];
    p.component_strides[0] = (int32_t)data->strides[time];
    return ree_data_emit_gather(lower, data, index, &p, data->rank, data->dims, &out[0]);
}

enum ree_status ree_lower_op_compress(struct ree_lower *lower, struct ree_view *const *in,
                                      struct ree_view **out) {
    struct ree_view *t = in[0], *condition = in[1];
    char text[128];
    if (condition->dtype != REE_BOOL || condition->rank != 1)
        return ree_lower_fail(lower, REE_INVALID, "condition is %s, expected a list of bool",
                              ree_view_text(condition, text, sizeof text));
    uint32_t axis = 0;
    if (ree_node_attr(lower->node, "axis")) {
        REE_TRY(ree_lower_axis(lower, ree_rule_int(lower, "axis", 0), t->rank, &axis));
    } else {
        int64_t flat = ree_view_count(t);
        REE_TRY(ree_lower_reshape(lower, t, 1, &flat, &t));
    }
    int64_t n = condition->dims[0];
    if (n > t->dims[axis])
        return ree_lower_fail(lower, REE_INVALID,
                              "condition has %lld elements, but axis %u of the input has %lld",
                              (long long)n, axis, (long long)t->dims[axis]);
    const void *bytes;
    REE_TRY(ree_lower_host(lower, condition, &bytes));
    int32_t *index = ree_arena_alloc_array(lower->arena, (size_t)n, sizeof *index);
    if (!index) return ree_lower_no_memory(lower);
    struct ree_axis_table tables[REE_MAX_RANK] = {{NULL, 0}};
    tables[axis].index = index;
    for (int64_t i = 0; i < n; i++)
        if (((const unsigned char *)bytes)[i]) index[tables[axis].n++] = (int32_t)i;
    return ree_data_select(lower, t, tables, &out[0]);
}

// Returns whether an element is not zero. For floats, -0 is also zero. float8e8m0 has no zero. Of
// strings, the empty one, which has the number 0 (ree_lower_intern), counts as zero.
static bool is_nonzero(enum ree_dtype dtype, const unsigned char *element) {
    if (dtype == REE_STRING) {
        int64_t string;
        memcpy(&string, element, sizeof string);
        return string != 0;
    }
    const unsigned width = ree_dtype_bits(dtype);
    bool has_minus_zero = ree_dtype_is_float(dtype) && dtype != REE_F8E4M3FNUZ &&
                          dtype != REE_F8E5M2FNUZ && dtype != REE_F8E8M0;
    uint64_t bits = 0, sign = UINT64_C(1) << (width - 1);
    memcpy(&bits, element, ree_dtype_size(dtype)); // little-endian
    bits &= has_minus_zero ? sign - 1 : sign | (sign - 1);
    return bits != 0 || dtype == REE_F8E8M0;
}

enum ree_status ree_lower_op_nonzero(struct ree_lower *lower, struct ree_view *const *in,
                                     struct ree_view **out) {
    struct ree_view *t = in[0];
    const void *bytes;
    REE_TRY(ree_lower_host(lower, t, &bytes));
    size_t size = ree_dtype_size(t->dtype);
    int64_t count = ree_view_count(t), found = 0;
    for (int64_t i = 0; i < count; i++)
        found += is_nonzero(t->dtype, (const unsigned char *)bytes + (size_t)i * size);
    // A scalar has no coordinates: the result is (0, found).
    int64_t dims[2] = {t->rank, found};
    int64_t *where =
        ree_arena_alloc_array(lower->arena, (size_t)t->rank * (size_t)found, sizeof *where);
    if (!where) return ree_lower_no_memory(lower);
    for (int64_t i = 0, k = 0; i < count; i++) {
        if (!is_nonzero(t->dtype, (const unsigned char *)bytes + (size_t)i * size)) continue;
        int64_t rest = i;
        for (uint32_t d = t->rank; d-- > 0;) {
            where[(int64_t)d * found + k] = rest % t->dims[d];
            rest /= t->dims[d];
        }
        k++;
    }
    return ree_lower_literal(lower, REE_I64, 2, dims, where, &out[0]);
}
