// RotaryEmbedding of com.microsoft: the standard operator with its inputs in another order, and
// with positions that may be a single number.
#include "graph/lower/ops/contrib/rotary.h"

#include "graph/lower/ops/attention/attention.h"

#define RULE(name)                                                                                 \
    enum ree_status ree_lower_op_ms_##name(struct ree_lower *lower, struct ree_view *const *in,    \
                                           struct ree_view **out)

enum ree_status ree_contrib_rotate(struct ree_lower *lower, struct ree_view *x,
                                   struct ree_view *positions, struct ree_view *cos_cache,
                                   struct ree_view *sin_cache, bool interleaved,
                                   struct ree_view **out) {
    REE_TRY(ree_rule_require_rank(lower, cos_cache, "cos_cache", 2, 2));
    REE_TRY(ree_rule_require_rank(lower, sin_cache, "sin_cache", 2, 2));
    int64_t width = 2 * cos_cache->dims[1];
    if (width < 2 || width > x->dims[3])
        return ree_lower_fail(
            lower, REE_INVALID,
            "cos_cache has rows of %lld elements, expected 1 to half of the head size %lld",
            (long long)cos_cache->dims[1], (long long)x->dims[3]);
    struct ree_standard step = {
        .type = "RotaryEmbedding",
        .opset = 23,
        .in = {x, cos_cache, sin_cache, positions},
        .attrs = {REE_INT_ATTR("interleaved", interleaved),
                  REE_INT_ATTR("rotary_embedding_dim", width == x->dims[3] ? 0 : width)}};
    return ree_standard_step(lower, &step, 1, out);
}

// Makes positions (batch, length): as given, or counted up from the single given number.
static enum ree_status positions(struct ree_lower *lower, struct ree_view *t, int64_t batch,
                                 int64_t length, struct ree_view **out) {
    char text[128];
    int64_t dims[2] = {batch, length};
    if (t->dtype == REE_I64 && t->rank == 2 && t->dims[0] == batch && t->dims[1] == length) {
        *out = t;
        return REE_OK;
    }
    if (t->dtype != REE_I64 || t->rank > 1 || ree_view_count(t) != 1)
        return ree_lower_fail(
            lower, REE_INVALID, "position_ids is %s, expected int64 of (1) or (%lld,%lld)",
            ree_view_text(t, text, sizeof text), (long long)batch, (long long)length);
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 2, dims);
    int first = ree_expr_tensor(&b, t);
    int step = ree_expr_iota(&b, REE_I64, 0, (int64_t[]){0, 1});
    return ree_lower_map(&b, ree_expr_op2(&b, REE_MAP_add_i64, first, step), REE_I64, out);
}

RULE(rotary_embedding) {
    struct ree_view *x = in[0], *ids;
    int64_t n_heads = ree_node_int(lower->node, "num_heads", 0);
    int64_t width = ree_node_int(lower->node, "rotary_embedding_dim", 0);
    bool interleaved = ree_node_int(lower->node, "interleaved", 0) != 0;
    REE_TRY(ree_rule_require_f32(lower, x));
    REE_TRY(ree_rule_require_rank(lower, x, "input", 3, 4));
    REE_TRY(ree_rule_require_rank(lower, in[2], "cos_cache", 2, 2));
    if (ree_node_int(lower->node, "is_packed_batching", 0))
        return ree_lower_fail(lower, REE_UNSUPPORTED, "is_packed_batching is not supported");
    if (ree_node_float(lower->node, "scale", 1) != 1)
        return ree_lower_fail(lower, REE_UNSUPPORTED, "a scale other than 1 is not supported");
    if (width != 0 && width != 2 * in[2]->dims[1])
        return ree_lower_fail(lower, REE_INVALID,
                              "rotary_embedding_dim is %lld, expected twice the %lld columns of "
                              "cos_cache",
                              (long long)width, (long long)in[2]->dims[1]);
    bool joined = x->rank == 3;
    if (joined) {
        // Without partial rotation, the cache determines the head size.
        int64_t size = 2 * in[2]->dims[1];
        if (width == 0 && size > 0) n_heads = x->dims[2] / size;
        REE_TRY(ree_lower_split_heads(lower, x, n_heads, "input", &x));
    }
    if (width == 0 && 2 * in[2]->dims[1] != x->dims[3])
        return ree_lower_fail(
            lower, REE_INVALID,
            "cos_cache has rows of %lld elements, expected half of the head size %lld",
            (long long)in[2]->dims[1], (long long)x->dims[3]);
    REE_TRY(positions(lower, in[1], x->dims[0], x->dims[2], &ids));
    REE_TRY(ree_contrib_rotate(lower, x, ids, in[2], in[3], interleaved, &out[0]));
    return joined ? ree_lower_join_heads(lower, out[0], &out[0]) : REE_OK;
}
