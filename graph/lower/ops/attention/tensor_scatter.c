// TensorScatter: writes an update into a cache, at a separate start position for each sequence of
// the batch.
#include "graph/lower/ops/rules.h"

#include <string.h>

// Computes the positions to write to: at[b, s] = start[b] + s; if circular, modulo the length.
static enum ree_status write_positions(struct ree_lower *lower, struct ree_view *starts,
                                       int64_t batch, int64_t n, int64_t length, bool circular,
                                       struct ree_view **out) {
    struct ree_expr_builder b;
    REE_TRY(ree_lower_reshape(lower, starts, 2, (int64_t[]){batch, 1}, &starts));
    ree_expr_init(&b, lower, 2, (int64_t[]){batch, n});
    int s = ree_expr_iota(&b, REE_I64, 0, (int64_t[]){0, 1});
    int at = ree_expr_op2(&b, REE_MAP_add_i64, ree_expr_tensor(&b, starts), s);
    if (circular) at = ree_expr_op2(&b, REE_MAP_mod_i64, at, ree_expr_i64(&b, length));
    return ree_lower_map(&b, at, REE_I64, out);
}

enum ree_status ree_lower_op_tensor_scatter(struct ree_lower *lower, struct ree_view *const *in,
                                            struct ree_view **out) {
    struct ree_view *cache = in[0], *update = in[1], *starts = ree_rule_input(lower, in, 2);
    char tc[128], tu[128];
    uint32_t axis;
    const char *mode = ree_rule_string(lower, "mode", "linear");
    bool circular = !strcmp(mode, "circular");
    if (!circular && strcmp(mode, "linear"))
        return ree_lower_fail(lower, REE_INVALID, "mode is '%s', expected linear or circular",
                              mode);
    REE_TRY(ree_lower_axis(lower, ree_rule_int(lower, "axis", -2), cache->rank, &axis));
    if (axis == 0)
        return ree_lower_fail(lower, REE_INVALID, "axis is 0, the batch; expected another axis");
    bool fits = update->dtype == cache->dtype && update->rank == cache->rank;
    for (uint32_t i = 0; fits && i < cache->rank; i++)
        fits = i == axis ? update->dims[i] <= cache->dims[i] : update->dims[i] == cache->dims[i];
    if (!fits)
        return ree_lower_fail(lower, REE_INVALID,
                              "update is %s, expected the type and shape of past_cache, %s; only "
                              "axis %u may be shorter",
                              ree_view_text(update, tu, sizeof tu),
                              ree_view_text(cache, tc, sizeof tc), axis);
    int64_t batch = cache->dims[0], length = cache->dims[axis], n = update->dims[axis];
    if (starts && (starts->dtype != REE_I64 || starts->rank != 1 || starts->dims[0] != batch))
        return ree_lower_fail(lower, REE_INVALID, "write_indices is %s, expected int64[%lld]",
                              ree_view_text(starts, tc, sizeof tc), (long long)batch);

    struct ree_view *target, *part;
    REE_TRY(ree_lower_new(lower, cache->dtype, cache->rank, cache->dims, &target));
    REE_TRY(ree_lower_copy_into(lower, cache, target));
    out[0] = target;
    if (ree_view_count(update) == 0) return REE_OK;
    if (!starts) {
        REE_TRY(ree_lower_slice(lower, target, axis, 0, 1, n, &part));
        return ree_lower_copy_into(lower, update, part);
    }
    struct ree_view *at;
    REE_TRY(write_positions(lower, starts, batch, n, length, circular, &at));
    // An update is at most as long as the cache, so no two of its positions are written to the same
    // place.
    return ree_lower_scatter_positions(lower, target, 0, axis, at, update);
}
