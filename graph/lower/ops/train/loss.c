// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss, which is NegativeLogLikelihoodLoss of a
// LogSoftmax.
#include "graph/lower/ops/data.h"

#include <string.h>

struct loss {
    bool has_ignored;
    int64_t ignored;
    bool mean, sum;           // if neither: no reduction
    struct ree_view *target;  // (n, positions...)
    struct ree_view *weights; // (classes); NULL: none
};

static enum ree_status read_loss(struct ree_lower *lower, const struct ree_view *x,
                                 struct ree_view *target, struct ree_view *weights,
                                 struct loss *loss) {
    char a[128], b[128];
    const char *reduction = ree_rule_string(lower, "reduction", "mean");
    *loss = (struct loss){.target = target, .weights = weights};
    loss->mean = !strcmp(reduction, "mean");
    loss->sum = !strcmp(reduction, "sum");
    if (!loss->mean && !loss->sum && strcmp(reduction, "none"))
        return ree_lower_fail(lower, REE_INVALID, "reduction is '%s', expected none, sum or mean",
                              reduction);
    const struct ree_attr *ignored = ree_node_attr(lower->node, "ignore_index");
    loss->has_ignored = ignored != NULL;
    loss->ignored = ree_rule_int(lower, "ignore_index", 0);
    REE_TRY(ree_rule_require_f32(lower, x));
    REE_TRY(ree_rule_require_rank(lower, x, "input", 2, REE_MAX_RANK));
    bool fits = target->rank == x->rank - 1 && target->dims[0] == x->dims[0];
    for (uint32_t i = 2; fits && i < x->rank; i++)
        fits = target->dims[i - 1] == x->dims[i];
    if (!fits || (target->dtype != REE_I32 && target->dtype != REE_I64))
        return ree_lower_fail(lower, REE_INVALID,
                              "target %s does not match input %s, expected int32 or int64 of its "
                              "shape without axis 1",
                              ree_view_text(target, a, sizeof a), ree_view_text(x, b, sizeof b));
    if (!weights) return REE_OK;
    REE_TRY(ree_rule_require_f32(lower, weights));
    return ree_rule_require_vector(lower, weights, "weight", x->dims[1]);
}

// target == ignore_index
static int is_ignored(struct ree_expr_builder *b, const struct loss *loss, int target) {
    bool wide = loss->target->dtype == REE_I64;
    target = wide ? target : ree_expr_op1(b, REE_MAP_i32_to_i64, target);
    return ree_expr_op2(b, REE_MAP_eq_i64, target, ree_expr_i64(b, loss->ignored));
}

// Sets *out to the target classes. The ignored class becomes 0, because ignore_index may be outside
// of the range of classes, where a gather fails.
static enum ree_status classes_of(struct ree_lower *lower, const struct loss *loss,
                                  struct ree_view **out) {
    struct ree_view *target = loss->target;
    if (!loss->has_ignored) return ree_lower_dense(lower, target, out);
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, target->rank, target->dims);
    int class = ree_expr_tensor(&b, target);
    int zero = ree_expr_number(&b, target->dtype, 0);
    class = ree_expr_select(&b, target->dtype, is_ignored(&b, loss, class), zero, class);
    return ree_lower_map(&b, class, target->dtype, out);
}

// Sets *out to the value, or to 0 where the target is ignored.
static enum ree_status without_ignored(struct ree_lower *lower, const struct loss *loss,
                                       struct ree_view *value, struct ree_view **out) {
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, loss->target->rank, loss->target->dims);
    int ignored = is_ignored(&b, loss, ree_expr_tensor(&b, loss->target));
    int kept = ree_expr_tensor(&b, value);
    kept = ree_expr_select(&b, REE_F32, ignored, ree_expr_f32(&b, 0), kept);
    return ree_lower_map(&b, kept, REE_F32, out);
}

// Sets *out to x[n, classes[n, positions...], positions...].
static enum ree_status take_class(struct ree_lower *lower, struct ree_view *x,
                                  struct ree_view *classes, struct ree_view **out) {
    struct ree_gather_params p = {.n_components = 1};
    p.component_sizes[0] = (uint32_t)x->dims[1];
    p.component_strides[0] = (int32_t)x->strides[1];
    ree_data_dense_strides(classes->rank, classes->dims, p.index_strides);
    for (uint32_t i = 0; i < classes->rank; i++)
        p.data_strides[i] = (int32_t)x->strides[i ? i + 1 : 0];
    return ree_data_emit_gather(lower, x, classes, &p, classes->rank, classes->dims, out);
}

// Sets *out to weights[class], or to ones if there are no weights.
static enum ree_status take_weight(struct ree_lower *lower, const struct loss *loss,
                                   struct ree_view *classes, struct ree_view **out) {
    if (!loss->weights) {
        struct ree_view *one;
        REE_TRY(ree_lower_literal(lower, REE_F32, 0, NULL, &(float){1}, &one));
        return ree_lower_broadcast(lower, one, classes->rank, classes->dims, out);
    }
    struct ree_gather_params p = {.n_components = 1};
    p.component_sizes[0] = (uint32_t)loss->weights->dims[0];
    p.component_strides[0] = (int32_t)loss->weights->strides[0];
    ree_data_dense_strides(classes->rank, classes->dims, p.index_strides);
    return ree_data_emit_gather(lower, loss->weights, classes, &p, classes->rank, classes->dims,
                                out);
}

static enum ree_status total(struct ree_lower *lower, struct ree_view *t, struct ree_view **out) {
    return ree_lower_reduce(lower, t, REE_REDUCE_SUM, (1u << t->rank) - 1, false, false, out);
}

// -x[class], times the weight if there are weights or an ignored class, then the reduction. A
// weighted mean divides the sum by the sum of the weights.
static enum ree_status likelihood(struct ree_lower *lower, const struct loss *loss,
                                  struct ree_view *x, struct ree_view **out) {
    struct ree_view *classes, *losses, *weights = NULL;
    REE_TRY(classes_of(lower, loss, &classes));
    REE_TRY(take_class(lower, x, classes, &losses));
    if (loss->has_ignored) REE_TRY(without_ignored(lower, loss, losses, &losses));
    REE_TRY(ree_rule_step1(lower, REE_MAP_neg_f32, losses, &losses));
    if (loss->weights || loss->has_ignored) {
        REE_TRY(take_weight(lower, loss, classes, &weights));
        if (loss->has_ignored) REE_TRY(without_ignored(lower, loss, weights, &weights));
        REE_TRY(ree_rule_step2(lower, REE_MAP_mul_f32, losses, weights, &losses));
    }
    *out = losses;
    if (loss->sum || (loss->mean && weights)) REE_TRY(total(lower, losses, out));
    if (!loss->mean) return REE_OK;
    if (!weights) {
        uint32_t mask = (1u << losses->rank) - 1;
        REE_TRY(ree_rule_mean(lower, losses, mask, REE_REDUCE_SUM, out));
        return ree_lower_reshape(lower, *out, 0, NULL, out);
    }
    REE_TRY(total(lower, weights, &weights));
    return ree_rule_step2(lower, REE_MAP_div_f32, *out, weights, out);
}

enum ree_status ree_lower_op_negative_log_likelihood_loss(struct ree_lower *lower,
                                                          struct ree_view *const *in,
                                                          struct ree_view **out) {
    struct loss loss;
    REE_TRY(read_loss(lower, in[0], in[1], ree_rule_input(lower, in, 2), &loss));
    return likelihood(lower, &loss, in[0], &out[0]);
}

enum ree_status ree_lower_op_softmax_cross_entropy_loss(struct ree_lower *lower,
                                                        struct ree_view *const *in,
                                                        struct ree_view **out) {
    struct loss loss;
    struct ree_view *x = in[0], *log;
    REE_TRY(read_loss(lower, x, in[1], ree_rule_input(lower, in, 2), &loss));
    REE_TRY(ree_rule_log_softmax(lower, x, 1, &log));
    if (ree_rule_wants(lower, 1)) out[1] = log;
    return likelihood(lower, &loss, log, &out[0]);
}
