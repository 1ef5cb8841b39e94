// Softmax, LogSoftmax and Hardmax over one axis; before opset 13, over all dimensions from the axis
// on.
#include "graph/lower/ops/rules.h"

#include <string.h>

// Views x as (outer, k, inner); the operator runs over k.
static enum ree_status split_axis(struct ree_lower *lower, struct ree_view *x, int64_t dims[3],
                                  struct ree_view **out) {
    REE_TRY(ree_rule_require_float(lower, x));
    bool flat = lower->node->opset < 13;
    int64_t at = ree_rule_int(lower, "axis", flat ? 1 : -1);
    uint32_t axis = 0;
    if (flat && at == (int64_t)x->rank)
        axis = x->rank; // the matrix has one column
    else if (x->rank || (at != 0 && at != -1))
        REE_TRY(ree_lower_axis(lower, at, x->rank, &axis));
    dims[0] = dims[1] = dims[2] = 1;
    for (uint32_t i = 0; i < x->rank; i++)
        dims[i < axis ? 0 : flat || i == axis ? 1 : 2] *= x->dims[i];
    return ree_lower_reshape(lower, x, 3, dims, out);
}

// Computes along k of t (outer, k, inner), with m = max(t) and d = t - m:
//
//     softmax: exp(d) / sum(exp(d))    with `log`: d - log(sum(exp(d)))
static enum ree_status softmax_of(struct ree_lower *lower, struct ree_view *t, bool log,
                                  struct ree_view **out) {
    if (lower->fuse && t->dtype == REE_F32) {
        REE_TRY(ree_lower_dense(lower, t, &t));
        REE_TRY(ree_lower_new(lower, REE_F32, 3, t->dims, out));
        union ree_params params;
        memset(&params.softmax, 0, sizeof params.softmax);
        params.softmax.log = log;
        params.softmax.outer = (uint32_t)t->dims[0];
        params.softmax.k = (uint32_t)t->dims[1];
        params.softmax.inner = (uint32_t)t->dims[2];
        struct ree_view *operands[2] = {t, *out};
        return ree_lower_emit(lower, REE_REPOP_SOFTMAX, &params, operands, 2, 1);
    }
    struct ree_view *max, *d, *e, *sum;
    REE_TRY(ree_lower_reduce(lower, t, REE_REDUCE_MAX, 1u << 1, true, false, &max));
    REE_TRY(ree_rule_step2(lower, REE_MAP_sub_f32, t, max, &d));
    REE_TRY(ree_rule_step1(lower, REE_MAP_exp_f32, d, &e));
    REE_TRY(ree_lower_reduce(lower, e, REE_REDUCE_SUM, 1u << 1, true, false, &sum));
    if (!log) return ree_rule_step2(lower, REE_MAP_div_f32, e, sum, out);
    REE_TRY(ree_rule_step1(lower, REE_MAP_log_f32, sum, &sum));
    return ree_rule_step2(lower, REE_MAP_sub_f32, d, sum, out);
}

static enum ree_status softmax(struct ree_lower *lower, struct ree_view *x, bool log,
                               struct ree_view **out) {
    struct ree_view *t, *y;
    int64_t dims[3];
    REE_TRY(split_axis(lower, x, dims, &t));
    REE_TRY(softmax_of(lower, t, log, &y));
    return ree_lower_reshape(lower, y, x->rank, x->dims, out);
}

enum ree_status ree_rule_log_softmax(struct ree_lower *lower, struct ree_view *x, uint32_t axis,
                                     struct ree_view **out) {
    int64_t dims[3] = {1, 1, 1};
    struct ree_view *t, *y;
    for (uint32_t i = 0; i < x->rank; i++)
        dims[i < axis ? 0 : i == axis ? 1 : 2] *= x->dims[i];
    REE_TRY(ree_lower_reshape(lower, x, 3, dims, &t));
    REE_TRY(softmax_of(lower, t, true, &y));
    return ree_lower_reshape(lower, y, x->rank, x->dims, out);
}

RULE(softmax) {
    return softmax(lower, in[0], false, &out[0]);
}
RULE(log_softmax) {
    return softmax(lower, in[0], true, &out[0]);
}

// 1 at the first maximum, else 0.
RULE(hardmax) {
    struct ree_view *t, *index, *y;
    int64_t dims[3];
    REE_TRY(split_axis(lower, in[0], dims, &t));
    if (ree_view_count(t) == 0) {
        out[0] = in[0];
        return REE_OK;
    }
    REE_TRY(ree_lower_reduce(lower, t, REE_REDUCE_ARGMAX, 1u << 1, true, false, &index));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 3, dims);
    int first = ree_expr_tensor(&b, index);
    int position = ree_expr_iota(&b, REE_I64, 0, (int64_t[]){0, 1, 0});
    int hit = ree_expr_op2(&b, REE_MAP_eq_i64, position, first);
    int one = ree_expr_number(&b, t->dtype, 1), zero = ree_expr_number(&b, t->dtype, 0);
    REE_TRY(ree_lower_map(&b, ree_expr_select(&b, t->dtype, hit, one, zero), t->dtype, &y));
    return ree_lower_reshape(lower, y, in[0]->rank, in[0]->dims, &out[0]);
}
