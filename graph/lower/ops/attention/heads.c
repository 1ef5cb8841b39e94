// Splits and joins heads, appends keys and values to their caches, and selects rows of tables.
#include "graph/lower/ops/attention/attention.h"
#include "graph/lower/ops/data.h"

#include <string.h>

static const uint32_t swap_heads[4] = {0, 2, 1, 3};

enum ree_status ree_lower_split_heads(struct ree_lower *lower, struct ree_view *t, int64_t n_heads,
                                      const char *what, struct ree_view **out) {
    char text[128];
    if (t->rank != 3 || n_heads < 1 || t->dims[2] % n_heads)
        return ree_lower_fail(
            lower, REE_INVALID,
            "the %s is %s, expected rank 3 with a last size that is a multiple of %lld heads", what,
            ree_view_text(t, text, sizeof text), (long long)n_heads);
    int64_t dims[4] = {t->dims[0], t->dims[1], n_heads, t->dims[2] / n_heads};
    REE_TRY(ree_lower_reshape(lower, t, 4, dims, out));
    return ree_lower_transpose(lower, *out, swap_heads, out);
}

enum ree_status ree_lower_join_heads(struct ree_lower *lower, struct ree_view *t,
                                     struct ree_view **out) {
    int64_t dims[3] = {t->dims[0], t->dims[2], t->dims[1] * t->dims[3]};
    REE_TRY(ree_lower_transpose(lower, t, swap_heads, out));
    return ree_lower_reshape(lower, *out, 3, dims, out);
}

enum ree_status ree_lower_append_keys(struct ree_lower *lower, struct ree_view *past,
                                      struct ree_view *t, const char *what, struct ree_view **out) {
    *out = t;
    if (!past) return REE_OK;
    char a[128], b[128];
    bool fits = past->dtype == t->dtype && past->rank == t->rank;
    for (uint32_t i = 0; fits && i < t->rank; i++)
        fits = i == 2 || past->dims[i] == t->dims[i];
    if (!fits)
        return ree_lower_fail(lower, REE_INVALID,
                              "%s is %s, expected the type and shape of %s, except for its length",
                              what, ree_view_text(past, a, sizeof a),
                              ree_view_text(t, b, sizeof b));
    if (past->dims[2] == 0 && !ree_lower_grows_in_place(lower, past, 2, t->dims[2])) return REE_OK;
    return ree_lower_append(lower, past, 2, t, out);
}

enum ree_status ree_lower_rows(struct ree_lower *lower, struct ree_view *table,
                               struct ree_view *index, struct ree_view **out) {
    uint32_t rank = index->rank + 1;
    if (table->rank != 2 || rank > REE_MAX_RANK)
        return ree_lower_fail(lower, REE_INTERNAL, "rows of a table of rank %u", table->rank);
    REE_TRY(ree_lower_dense(lower, index, &index));
    struct ree_gather_params p = {.n_components = 1};
    p.component_sizes[0] = (uint32_t)table->dims[0];
    p.component_strides[0] = (int32_t)table->strides[0];
    ree_data_dense_strides(index->rank, index->dims, p.index_strides);
    p.data_strides[index->rank] = (int32_t)table->strides[1];
    int64_t dims[REE_MAX_RANK];
    memcpy(dims, index->dims, sizeof dims);
    dims[index->rank] = table->dims[1];
    return ree_data_emit_gather(lower, table, index, &p, rank, dims, out);
}
