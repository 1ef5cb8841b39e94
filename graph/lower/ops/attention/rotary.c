// RotaryEmbedding: rotates pairs of elements by an angle that depends on the position.
#include "graph/lower/ops/attention/attention.h"

// Views x (a, b, c, 2 * n_pairs) with an axis for the two members of a pair: as (a, b, c, 2,
// n_pairs), or, if interleaved, as (a, b, c, n_pairs, 2).
static enum ree_status as_pairs(struct ree_lower *lower, struct ree_view *x, int64_t n_pairs,
                                bool interleaved, struct ree_view **out) {
    int64_t dims[5] = {x->dims[0], x->dims[1], x->dims[2], interleaved ? n_pairs : 2,
                       interleaved ? 2 : n_pairs};
    return ree_lower_reshape(lower, x, 5, dims, out);
}

// Broadcasts t (a, b, c, n_pairs) to the shape of `pairs`, which as_pairs has made.
static enum ree_status along_pairs(struct ree_lower *lower, struct ree_view *t,
                                   const struct ree_view *pairs, bool interleaved,
                                   struct ree_view **out) {
    int64_t dims[5] = {pairs->dims[0], pairs->dims[1], pairs->dims[2], pairs->dims[3],
                       pairs->dims[4]};
    int64_t table[4] = {dims[0], dims[1], dims[2], interleaved ? dims[3] : dims[4]};
    REE_TRY(ree_lower_broadcast(lower, t, 4, table, &t));
    struct ree_view *view = ree_lower_view(lower, t);
    if (!view) return ree_lower_no_memory(lower);
    view->rank = 5;
    view->dims[4] = dims[4];
    view->dims[3] = dims[3];
    view->strides[4] = interleaved ? 0 : t->strides[3];
    view->strides[3] = interleaved ? t->strides[3] : 0;
    *out = view;
    return REE_OK;
}

// Rotates all pairs (x0, x1): y0 = cos * x0 - sin * x1, y1 = sin * x0 + cos * x1. The expression
// computes cos times the element itself, minus or plus sin times its partner.
static enum ree_status rotate_all(struct ree_lower *lower, struct ree_view *x, struct ree_view *cos,
                                  struct ree_view *sin, bool interleaved, struct ree_view **out) {
    struct ree_view *own, *partner, *y;
    REE_TRY(as_pairs(lower, x, x->dims[3] / 2, interleaved, &own));
    REE_TRY(along_pairs(lower, cos, own, interleaved, &cos));
    REE_TRY(along_pairs(lower, sin, own, interleaved, &sin));
    uint32_t member = interleaved ? 4 : 3;
    REE_TRY(ree_lower_slice(lower, own, member, 1, -1, 2, &partner));
    struct ree_expr_builder b;
    int64_t which[5] = {0};
    which[member] = 1;
    ree_expr_init(&b, lower, 5, own->dims);
    int a = ree_expr_op2(&b, REE_MAP_mul_f32, ree_expr_tensor(&b, cos), ree_expr_tensor(&b, own));
    int c =
        ree_expr_op2(&b, REE_MAP_mul_f32, ree_expr_tensor(&b, sin), ree_expr_tensor(&b, partner));
    int second = ree_expr_iota(&b, REE_I32, 0, which);
    c = ree_expr_select(&b, REE_F32, second, c, ree_expr_op1(&b, REE_MAP_neg_f32, c));
    REE_TRY(ree_lower_map(&b, ree_expr_op2(&b, REE_MAP_add_f32, a, c), REE_F32, &y));
    return ree_lower_reshape(lower, y, 4, x->dims, out);
}

enum ree_status ree_lower_rotate(struct ree_lower *lower, struct ree_view *x, struct ree_view *cos,
                                 struct ree_view *sin, bool interleaved, struct ree_view **out) {
    int64_t n = cos->rank ? 2 * cos->dims[cos->rank - 1] : 0;
    if (x->rank != 4 || n < 1 || n > x->dims[3])
        return ree_lower_fail(lower, REE_INVALID, "cannot rotate %lld of %lld elements",
                              (long long)n, (long long)(x->rank ? x->dims[x->rank - 1] : 0));
    if (ree_view_count(x) == 0) {
        *out = x;
        return REE_OK;
    }
    if (n == x->dims[3]) return rotate_all(lower, x, cos, sin, interleaved, out);
    struct ree_view *y, *part, *turned, *rest;
    REE_TRY(ree_lower_new(lower, REE_F32, 4, x->dims, &y));
    REE_TRY(ree_lower_slice(lower, x, 3, 0, 1, n, &part));
    REE_TRY(rotate_all(lower, part, cos, sin, interleaved, &turned));
    REE_TRY(ree_lower_slice(lower, y, 3, 0, 1, n, &part));
    REE_TRY(ree_lower_copy_into(lower, turned, part));
    REE_TRY(ree_lower_slice(lower, x, 3, n, 1, x->dims[3] - n, &rest));
    REE_TRY(ree_lower_slice(lower, y, 3, n, 1, x->dims[3] - n, &part));
    REE_TRY(ree_lower_copy_into(lower, rest, part));
    *out = y;
    return REE_OK;
}

// Makes (batch, len, 1, n_pairs) from a cache that has a row for each position, or for each token.
static enum ree_status read_cache(struct ree_lower *lower, struct ree_view *cache,
                                  struct ree_view *position_ids, const char *what,
                                  const int64_t dims[3], struct ree_view **out) {
    char text[128];
    bool by_position = position_ids != NULL;
    bool fits = cache->rank == (by_position ? 2 : 3) && cache->dtype == REE_F32 &&
                cache->dims[cache->rank - 1] == dims[2];
    if (fits && !by_position) fits = cache->dims[0] == dims[0] && cache->dims[1] == dims[1];
    if (!fits && by_position)
        return ree_lower_fail(lower, REE_INVALID,
                              "%s is %s, expected the type of X and shape [positions,%lld]", what,
                              ree_view_text(cache, text, sizeof text), (long long)dims[2]);
    if (!fits)
        return ree_lower_fail(
            lower, REE_INVALID,
            "%s is %s, expected the type of X and, without position_ids, shape [%lld,%lld,%lld]",
            what, ree_view_text(cache, text, sizeof text), (long long)dims[0], (long long)dims[1],
            (long long)dims[2]);
    if (by_position) REE_TRY(ree_lower_rows(lower, cache, position_ids, &cache));
    return ree_lower_reshape(lower, cache, 4, (int64_t[4]){dims[0], dims[1], 1, dims[2]}, out);
}

enum ree_status ree_lower_op_rotary_embedding(struct ree_lower *lower, struct ree_view *const *in,
                                              struct ree_view **out) {
    static const uint32_t swap_heads[4] = {0, 2, 1, 3};
    struct ree_view *x = in[0], *cos, *sin, *ids = ree_rule_input(lower, in, 3), *y;
    char text[128];
    REE_TRY(ree_rule_require_f32(lower, x));
    REE_TRY(ree_rule_require_rank(lower, x, "X", 3, 4));
    bool interleaved = ree_rule_int(lower, "interleaved", 0) != 0;
    // (batch, heads, len, head size)
    struct ree_view *heads = x;
    if (x->rank == 3) {
        int64_t n_heads = ree_rule_int(lower, "num_heads", 0);
        if (n_heads < 1)
            return ree_lower_fail(
                lower, REE_INVALID,
                "num_heads is %lld; an input of rank 3 requires it to be 1 or more",
                (long long)n_heads);
        REE_TRY(ree_lower_split_heads(lower, x, n_heads, "input X", &heads));
    }
    int64_t head_dim = heads->dims[3], n = ree_rule_int(lower, "rotary_embedding_dim", 0);
    if (n == 0) n = head_dim;
    if (n < 2 || n % 2 || n > head_dim)
        return ree_lower_fail(lower, REE_INVALID,
                              "cannot rotate %lld elements of heads of %lld: expected an even "
                              "number up to the head size",
                              (long long)n, (long long)head_dim);
    const int64_t dims[3] = {heads->dims[0], heads->dims[2], n / 2};
    if (ids && (ids->dtype != REE_I64 || ids->rank != 2 || ids->dims[0] != dims[0] ||
                ids->dims[1] != dims[1]))
        return ree_lower_fail(lower, REE_INVALID, "position_ids is %s, expected int64[%lld,%lld]",
                              ree_view_text(ids, text, sizeof text), (long long)dims[0],
                              (long long)dims[1]);
    REE_TRY(read_cache(lower, in[1], ids, "cos_cache", dims, &cos));
    REE_TRY(read_cache(lower, in[2], ids, "sin_cache", dims, &sin));
    if (x->rank == 3) {
        REE_TRY(ree_lower_transpose(lower, heads, swap_heads, &heads));
    } else {
        REE_TRY(ree_lower_transpose(lower, cos, swap_heads, &cos));
        REE_TRY(ree_lower_transpose(lower, sin, swap_heads, &sin));
    }
    REE_TRY(ree_lower_rotate(lower, heads, cos, sin, interleaved, &y));
    return ree_lower_reshape(lower, y, x->rank, x->dims, &out[0]);
}
