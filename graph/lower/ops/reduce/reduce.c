// Reduce*, ArgMax and ArgMin: one `reduce`, with a map before or after it if the operator has one.
// NUMERICS.md, "Reductions".
#include "graph/lower/ops/data.h"

#include <string.h>

// Reads the axes to reduce, as a mask. If none are named: all axes, or no axes with
// noop_with_empty_axes.
static enum ree_status reduced_axes(struct ree_lower *lower, struct ree_view *const *in,
                                    uint32_t *out_mask) {
    const int64_t *axes;
    size_t n;
    bool given;
    uint32_t rank = in[0]->rank;
    REE_TRY(ree_data_ints(lower, in, 1, "axes", &axes, &n, &given));
    if (n) return ree_data_axes_mask(lower, n, axes, rank, out_mask);
    bool noop = ree_rule_int(lower, "noop_with_empty_axes", 0) != 0;
    *out_mask = noop ? 0 : (UINT32_C(1) << rank) - 1;
    return REE_OK;
}

static bool is_extremum(enum ree_reduce_kind kind) {
    return kind == REE_REDUCE_MAX || kind == REE_REDUCE_MIN;
}

// Converts the tensor to a type that `reduce` supports. Fails for types that the reduction does not
// support.
static enum ree_status widen(struct ree_lower *lower, struct ree_view *t, enum ree_reduce_kind kind,
                             struct ree_view **out) {
    enum ree_dtype wide = ree_data_wide(t->dtype);
    bool narrow = t->dtype == REE_I8 || t->dtype == REE_U8 || t->dtype == REE_BOOL ||
                  t->dtype == REE_I16 || t->dtype == REE_U16;
    if (narrow ? !is_extremum(kind) : !ree_data_is_ordered(wide))
        return ree_lower_fail(lower, REE_UNSUPPORTED, "%s is not supported",
                              ree_dtype_name(t->dtype));
    return ree_lower_cast(lower, t, wide, out);
}

struct reduction {
    struct ree_view *t; // in the type of the computation
    uint32_t mask;
    bool keepdims;
    uint64_t n_reduce; // elements per result, if the result has elements at all
};

static enum ree_status begin(struct ree_lower *lower, struct ree_view *const *in,
                             enum ree_reduce_kind kind, struct reduction *r) {
    REE_TRY(reduced_axes(lower, in, &r->mask));
    REE_TRY(widen(lower, in[0], kind, &r->t));
    r->keepdims = ree_rule_int(lower, "keepdims", 1) != 0;
    r->n_reduce = 1;
    for (uint32_t i = 0; i < r->t->rank; i++)
        if (r->mask >> i & 1) r->n_reduce *= (uint64_t)r->t->dims[i];
    return REE_OK;
}

static enum ree_status run(struct ree_lower *lower, const struct reduction *r,
                           enum ree_reduce_kind kind, struct ree_view **out) {
    return ree_lower_reduce(lower, r->t, kind, r->mask, r->keepdims, false, out);
}

// Reductions without a map. Over no axes, the sum, product or extremum is the tensor itself.
static enum ree_status reduce(struct ree_lower *lower, struct ree_view *const *in,
                              enum ree_reduce_kind kind, struct ree_view **out) {
    struct reduction r;
    REE_TRY(begin(lower, in, kind, &r));
    if (r.mask == 0 && kind != REE_REDUCE_SUM_SQ && kind != REE_REDUCE_SUM_ABS) {
        out[0] = in[0];
        return REE_OK;
    }
    REE_TRY(run(lower, &r, kind, &out[0]));
    return ree_lower_cast(lower, out[0], in[0]->dtype, &out[0]);
}

enum ree_status ree_lower_op_reducesum(struct ree_lower *lower, struct ree_view *const *in,
                                       struct ree_view **out) {
    return reduce(lower, in, REE_REDUCE_SUM, out);
}

enum ree_status ree_lower_op_reducesumsquare(struct ree_lower *lower, struct ree_view *const *in,
                                             struct ree_view **out) {
    return reduce(lower, in, REE_REDUCE_SUM_SQ, out);
}

enum ree_status ree_lower_op_reducel1(struct ree_lower *lower, struct ree_view *const *in,
                                      struct ree_view **out) {
    return reduce(lower, in, REE_REDUCE_SUM_ABS, out);
}

enum ree_status ree_lower_op_reduceprod(struct ree_lower *lower, struct ree_view *const *in,
                                        struct ree_view **out) {
    return reduce(lower, in, REE_REDUCE_PROD, out);
}

enum ree_status ree_lower_op_reducemax(struct ree_lower *lower, struct ree_view *const *in,
                                       struct ree_view **out) {
    return reduce(lower, in, REE_REDUCE_MAX, out);
}

enum ree_status ree_lower_op_reducemin(struct ree_lower *lower, struct ree_view *const *in,
                                       struct ree_view **out) {
    return reduce(lower, in, REE_REDUCE_MIN, out);
}

// The sum divided by the count: rounded once for floats, truncated towards zero for integers.
enum ree_status ree_lower_op_reducemean(struct ree_lower *lower, struct ree_view *const *in,
                                        struct ree_view **out) {
    struct reduction r;
    struct ree_view *sum;
    REE_TRY(begin(lower, in, REE_REDUCE_SUM, &r));
    if (r.mask == 0) {
        out[0] = in[0];
        return REE_OK;
    }
    REE_TRY(run(lower, &r, REE_REDUCE_SUM, &sum));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, sum->rank, sum->dims);
    int s = ree_expr_tensor(&b, sum), mean;
    switch (sum->dtype) {
    case REE_F32:
    case REE_F64:
        mean = ree_expr_op2(&b, REE_MAP_div_f32, s,
                            ree_expr_number(&b, sum->dtype, (int64_t)r.n_reduce));
        break;
    case REE_I64:
        mean = ree_expr_op2(&b, REE_MAP_div_i64, s, ree_expr_i64(&b, (int64_t)r.n_reduce));
        break;
    case REE_U64:
        mean = ree_expr_op2(&b, REE_MAP_div_u64, s, ree_expr_i64(&b, (int64_t)r.n_reduce));
        break;
    case REE_U32:
        mean = ree_expr_op2(&b, REE_MAP_div_u32, s, ree_expr_i32(&b, (int32_t)r.n_reduce));
        break;
    default:
        mean = ree_expr_op2(&b, REE_MAP_div_i32, s, ree_expr_i32(&b, (int32_t)r.n_reduce));
        break;
    }
    enum ree_dtype dtype = in[0]->dtype;
    return ree_lower_map(&b, ree_expr_cast(&b, mean, sum->dtype, dtype), dtype, &out[0]);
}

// Computes op(reduction), in float32, or in float64 for float64.
static enum ree_status reduce_then(struct ree_lower *lower, struct ree_view *const *in,
                                   enum ree_reduce_kind kind, enum ree_map_op op,
                                   struct ree_view **out) {
    struct reduction r;
    struct ree_view *reduced;
    REE_TRY(begin(lower, in, kind, &r));
    REE_TRY(run(lower, &r, kind, &reduced));
    enum ree_dtype dtype = in[0]->dtype;
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, reduced->rank, reduced->dims);
    enum ree_dtype real = dtype == REE_F64 ? REE_F64 : REE_F32;
    int x = ree_expr_cast(&b, ree_expr_tensor(&b, reduced), reduced->dtype, real);
    int y = ree_expr_cast(&b, ree_expr_op1(&b, op, x), real, dtype);
    return ree_lower_map(&b, y, dtype, &out[0]);
}

enum ree_status ree_lower_op_reducel2(struct ree_lower *lower, struct ree_view *const *in,
                                      struct ree_view **out) {
    return reduce_then(lower, in, REE_REDUCE_SUM_SQ, REE_MAP_sqrt_f32, out);
}

enum ree_status ree_lower_op_reducelogsum(struct ree_lower *lower, struct ree_view *const *in,
                                          struct ree_view **out) {
    return reduce_then(lower, in, REE_REDUCE_SUM, REE_MAP_log_f32, out);
}

// log(sum exp(x - m)) + m, with m = max x, or 0 if that is infinite. Integers are computed in
// float32.
enum ree_status ree_lower_op_reducelogsumexp(struct ree_lower *lower, struct ree_view *const *in,
                                             struct ree_view **out) {
    struct reduction r;
    // Checks the types that the sum supports, not those of the maximum: the operator does not have
    // 8-bit integers or bool.
    REE_TRY(begin(lower, in, REE_REDUCE_SUM, &r));
    if (r.t->dtype != REE_F64) REE_TRY(ree_lower_cast(lower, r.t, REE_F32, &r.t));
    struct ree_view *x = r.t, *max, *m, *e, *sum, *result;
    REE_TRY(ree_lower_reduce(lower, x, REE_REDUCE_MAX, r.mask, true, false, &max));
    struct ree_expr_builder b;

    ree_expr_init(&b, lower, max->rank, max->dims);
    int v = ree_expr_tensor(&b, max);
    int infinite = ree_expr_op2(&b, REE_MAP_or_b32, ree_expr_op1(&b, REE_MAP_isposinf_f32, v),
                                ree_expr_op1(&b, REE_MAP_isneginf_f32, v));
    v = ree_expr_op3(&b, REE_MAP_select_b32, infinite, ree_expr_f32(&b, 0), v);
    REE_TRY(ree_lower_map(&b, v, REE_F32, &m));

    ree_expr_init(&b, lower, x->rank, x->dims);
    v = ree_expr_op2(&b, REE_MAP_sub_f32, ree_expr_tensor(&b, x), ree_expr_tensor(&b, m));
    REE_TRY(ree_lower_map(&b, ree_expr_op1(&b, REE_MAP_exp_f32, v), REE_F32, &e));

    REE_TRY(ree_lower_reduce(lower, e, REE_REDUCE_SUM, r.mask, true, false, &sum));
    ree_expr_init(&b, lower, sum->rank, sum->dims);
    v = ree_expr_op2(&b, REE_MAP_add_f32,
                     ree_expr_op1(&b, REE_MAP_log_f32, ree_expr_tensor(&b, sum)),
                     ree_expr_tensor(&b, m));
    enum ree_dtype dtype = in[0]->dtype;
    REE_TRY(ree_lower_map(&b, ree_expr_cast(&b, v, sum->dtype, dtype), dtype, &result));
    if (r.keepdims) {
        out[0] = result;
        return REE_OK;
    }
    int64_t dims[REE_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < result->rank; i++)
        if (!(r.mask >> i & 1)) dims[rank++] = result->dims[i];
    return ree_lower_reshape(lower, result, rank, dims, &out[0]);
}

static enum ree_status arg_extremum(struct ree_lower *lower, struct ree_view *t, bool max,
                                    struct ree_view **out) {
    enum ree_reduce_kind kind = max ? REE_REDUCE_ARGMAX : REE_REDUCE_ARGMIN;
    uint32_t axis;
    REE_TRY(ree_lower_axis(lower, ree_rule_int(lower, "axis", 0), t->rank, &axis));
    REE_TRY(widen(lower, t, REE_REDUCE_MAX, &t));
    bool keepdims = ree_rule_int(lower, "keepdims", 1) != 0;
    bool last = ree_rule_int(lower, "select_last_index", 0) != 0;
    return ree_lower_reduce(lower, t, kind, UINT32_C(1) << axis, keepdims, last, out);
}

enum ree_status ree_lower_op_argmax(struct ree_lower *lower, struct ree_view *const *in,
                                    struct ree_view **out) {
    return arg_extremum(lower, in[0], true, &out[0]);
}

enum ree_status ree_lower_op_argmin(struct ree_lower *lower, struct ree_view *const *in,
                                    struct ree_view **out) {
    return arg_extremum(lower, in[0], false, &out[0]);
}
