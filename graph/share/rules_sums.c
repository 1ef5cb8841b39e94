// Rules of operators that compute with several elements: reductions, products, convolutions, norms.
#include "graph/share/rule.h"

// Reductions

// Terms are ordered by the reduced axes, in the order of the tensor's axes.
const char *ree_share_reduce(struct ree_division *x) {
    const struct ree_value *value = ree_rule_input(x, 0);
    struct ree_samples s = ree_rule_samples(x, 0);
    int64_t axes[REE_MAX_RANK * 2];
    bool is_reduced[REE_MAX_RANK] = {false};
    size_t n;
    if (!ree_share_list(x->node, 1, "axes", &n, axes)) return "its axes are not constant";
    bool keeps = ree_node_int(x->node, "keepdims", 1) != 0;
    if (n == 0 && ree_node_int(x->node, "noop_with_empty_axes", 0)) return ree_share_elementwise(x);
    for (uint32_t i = 0; n == 0 && i < value->rank; i++)
        is_reduced[i] = true;
    for (size_t i = 0; i < n; i++) {
        uint32_t axis;
        if (!ree_rule_axis(axes[i], value->rank, &axis)) return REE_NO_SHAPES;
        is_reduced[axis] = true;
    }
    x->own->needs[0] = s;
    if (!is_reduced[s.axis]) {
        x->outputs[0] = s;
        for (uint32_t i = 0; !keeps && i < s.axis; i++)
            x->outputs[0].axis -= is_reduced[i];
        return NULL;
    }
    struct ree_sum_node *sum = x->sum;
    bool is_mean = ree_rule_is(x->node, "ReduceMean");
    if (!is_mean && !ree_rule_is(x->node, "ReduceSum"))
        return "ree cannot compute it over several ranks";
    x->role = REE_NODE_SUM;
    int64_t n_terms = 1;
    uint32_t at = 0;
    sum->groups = sum->m = sum->n = 1;
    for (uint32_t i = 0; i < value->rank; i++) {
        if (!is_reduced[i]) continue;
        if (i < s.axis && value->dims[i] > 1)
            return "its terms are not in the order of the samples";
        sum->order[0][at++] = i;
        n_terms *= value->dims[i];
    }
    for (uint32_t i = 0; i < value->rank; i++) {
        if (is_reduced[i]) continue;
        sum->order[0][at++] = i;
        sum->m *= value->dims[i];
    }
    sum->n_per_sample = (uint64_t)(n_terms / x->d->options->batch);
    sum->is_mean = is_mean;
    sum->divisor = (float)n_terms;
    bool is_integer = value->dtype == REE_I64 || value->dtype == REE_I32;
    bool is_float = value->dtype == REE_F32 || value->dtype == REE_F16 || value->dtype == REE_BF16;
    if (is_integer && !is_mean)
        sum->kind = REE_SUM_OF_INTEGERS;
    else if (is_float)
        sum->kind = REE_SUM_OF_ROWS;
    else
        return "ree cannot sum this type over several ranks";
    return NULL;
}

// Products

static bool is_float32_or_narrower(const struct ree_value *value) {
    return value->dtype == REE_F32 || value->dtype == REE_F16 || value->dtype == REE_BF16;
}

const char *ree_rule_check_operands(const struct ree_division *x) {
    for (size_t i = 0; i < 2; i++) {
        struct ree_samples needs = x->own->needs[i], s = ree_rule_samples(x, i);
        // A rank's samples of a common operand are selected by one Slice, which one group allows.
        if (!needs.is_divided || !ree_samples_fit(x->d, ree_rule_input(x, i), needs) ||
            (s.is_divided ? !ree_samples_same(s, needs) : needs.groups != 1))
            return REE_NOT_ALIGNED;
    }
    return NULL;
}

// A vector counts as a row of the first operand, as a column of the second one.
static const char *product_of_terms(struct ree_division *x) {
    const struct ree_value *a = ree_rule_input(x, 0), *b = ree_rule_input(x, 1);
    struct ree_samples s =
        ree_rule_samples(x, 0).is_divided ? ree_rule_samples(x, 0) : ree_rule_samples(x, 1);
    struct ree_sum_node *sum = x->sum;
    if ((a->rank > 2 || b->rank > 2) && a->rank != b->rank)
        return "it sums over samples, and repeats matrices";
    if (!is_float32_or_narrower(a) || !is_float32_or_narrower(b))
        return "ree cannot sum this type over several ranks";
    const uint32_t n_outer = a->rank > 2 ? a->rank - 2 : 0;
    sum->groups = sum->m = sum->n = 1;
    sum->order[0][0] = a->rank - 1;
    sum->order[1][0] = b->rank > 1 ? b->rank - 2 : 0;
    for (uint32_t i = 0; i < n_outer; i++) {
        if (a->dims[i] != b->dims[i]) return "it sums over samples, and repeats matrices";
        sum->groups *= a->dims[i];
        sum->order[0][1 + i] = sum->order[1][1 + i] = i;
    }
    if (a->rank > 1) {
        sum->order[0][1 + n_outer] = a->rank - 2;
        sum->m = a->dims[a->rank - 2];
    }
    if (b->rank > 1) {
        sum->order[1][1 + n_outer] = b->rank - 1;
        sum->n = b->dims[b->rank - 1];
    }
    x->own->needs[0] = ree_divided_along((uint32_t)sum->order[0][0], s.per);
    x->own->needs[1] = ree_divided_along((uint32_t)sum->order[1][0], s.per);
    x->role = REE_NODE_SUM;
    sum->kind = REE_SUM_OF_PRODUCTS;
    sum->n_per_sample = (uint64_t)s.per;
    return ree_rule_check_operands(x);
}

const char *ree_share_matmul(struct ree_division *x) {
    const struct ree_value *a = ree_rule_input(x, 0), *b = ree_rule_input(x, 1),
                           *made = ree_rule_output(x, 0);
    struct ree_samples sa = ree_rule_samples(x, 0), sb = ree_rule_samples(x, 1);
    bool is_plain = !x->node->domain[0];
    if (!b || !a->rank || !b->rank) return REE_NO_SHAPES;
    bool a_is_row = a->rank == 1, b_is_column = b->rank == 1;
    bool sums = (sa.is_divided && sa.axis == a->rank - 1) ||
                (sb.is_divided && sb.axis == (b_is_column ? 0 : b->rank - 2));
    if (sums) return is_plain ? product_of_terms(x) : REE_MIXES;
    if (!is_plain && sb.is_divided) return REE_MIXES;
    // The axis among those of a product of matrices, before axes of size 1 are removed.
    uint32_t rank = made->rank + a_is_row + b_is_column;
    struct ree_samples out = sa.is_divided ? ree_divided_along(sa.axis + rank - a->rank, sa.per)
                                           : ree_divided_along(sb.axis + rank - b->rank, sb.per);
    x->own->needs[sa.is_divided ? 0 : 1] = sa.is_divided ? sa : sb;
    // An axis of the batch of matrices is an axis of both operands; rows are only a's, columns b's.
    if (out.axis + 2 < rank)
        for (size_t i = 0; i < 2; i++) {
            const struct ree_value *value = ree_rule_input(x, i);
            uint32_t shift = rank - value->rank;
            if (value->rank > 2 && out.axis >= shift &&
                ree_axis_fits(x->d, value, out.axis - shift, out.per))
                x->own->needs[i] = ree_divided_along(out.axis - shift, out.per);
        }
    for (size_t i = 0; i < 2; i++)
        if (ree_rule_samples(x, i).is_divided &&
            !ree_samples_same(ree_rule_samples(x, i), x->own->needs[i]))
            return REE_NOT_ALIGNED;
    if (a_is_row && out.axis + 1 == rank) out.axis--;
    if (!ree_axis_fits(x->d, made, out.axis, out.per)) return REE_NOT_ALIGNED;
    x->outputs[0] = out;
    return NULL;
}

// The first input and the outputs have their samples along axis 0, the other inputs are common.
const char *ree_share_per_sample(struct ree_division *x) {
    struct ree_samples s = ree_rule_samples(x, 0);
    if (!s.is_divided || s.axis || s.per != 1 || s.groups != 1) return REE_MIXES;
    for (size_t i = 1; i < x->node->n_inputs; i++)
        if (ree_rule_samples(x, i).is_divided) return REE_MIXES;
    x->own->needs[0] = s;
    for (size_t i = 0; i < x->node->n_outputs; i++)
        if (ree_rule_output(x, i)) x->outputs[i] = s;
    return NULL;
}

// A convolution with the samples as channels: the gradient of weights.
static const char *conv_of_terms(struct ree_division *x) {
    const struct ree_value *a = ree_rule_input(x, 0), *b = ree_rule_input(x, 1),
                           *made = ree_rule_output(x, 0);
    const int64_t groups = ree_node_int(x->node, "group", 1);
    const uint32_t n = a->rank - 2;
    struct ree_sum_node *sum = x->sum;
    if (groups < 1 || b->dims[0] % groups) return REE_NO_SHAPES;
    if (ree_rule_input(x, 2)) return "it has a bias";
    const char *pads = ree_node_string(x->node, "auto_pad", "NOTSET");
    if (strcmp(pads, "NOTSET")) return "it has an automatic pad";
    if (!is_float32_or_narrower(a) || !is_float32_or_narrower(b))
        return "ree cannot sum this type over several ranks";
    x->own->needs[0] = x->own->needs[1] = ree_divided_along(1, 1);
    x->own->needs[0].groups = groups;
    x->role = REE_NODE_SUM;
    sum->kind = REE_SUM_OF_PRODUCTS;
    sum->is_conv = true;
    sum->n_per_sample = (uint64_t)ree_share_product(b, 2, b->rank);
    sum->n_positions = ree_share_product(made, 2, made->rank);
    sum->groups = groups;
    sum->m = a->dims[0] * sum->n_positions;
    sum->n = b->dims[0] / groups;
    // [groups, a's outputs, positions..., b's outputs] -> [a's outputs, groups, b's outputs,
    // positions...]
    if (n + 3 > REE_MAX_RANK) return "it has too many axes";
    sum->result_rank = n + 3;
    sum->result_dims[0] = groups;
    sum->result_dims[1] = a->dims[0];
    sum->result_dims[n + 2] = sum->n;
    sum->result_order[0] = 1;
    sum->result_order[1] = 0;
    sum->result_order[2] = n + 2;
    for (uint32_t i = 0; i < n; i++) {
        sum->result_dims[2 + i] = made->dims[2 + i];
        sum->result_order[3 + i] = 2 + (int64_t)i;
    }
    return ree_rule_check_operands(x);
}

const char *ree_share_conv(struct ree_division *x) {
    if (!ree_rule_input(x, 1) || ree_rule_input(x, 0)->rank < 3 ||
        ree_rule_input(x, 1)->rank != ree_rule_input(x, 0)->rank ||
        ree_rule_output(x, 0)->rank != ree_rule_input(x, 0)->rank)
        return REE_NO_SHAPES;
    for (size_t i = 0; i < 2; i++)
        if (ree_rule_samples(x, i).is_divided && ree_rule_samples(x, i).axis == 1)
            return conv_of_terms(x);
    return ree_share_per_sample(x);
}

const char *ree_share_max_pool(struct ree_division *x) {
    const char *why = ree_share_per_sample(x);
    if (why) return why;
    if (!ree_rule_output(x, 1)) return NULL;
    // Indices count the elements of all samples before this one.
    x->own->added_to_second = x->d->options->begin * ree_share_product(ree_rule_input(x, 0), 1,
                                                                       ree_rule_input(x, 0)->rank);
    return NULL;
}

const char *ree_share_layer_norm(struct ree_division *x) {
    uint32_t axis;
    if (!ree_rule_axis(ree_node_int(x->node, "axis", -1), ree_rule_input(x, 0)->rank, &axis))
        return REE_NO_SHAPES;
    if (!axis) return REE_MIXES;
    const char *why = ree_share_per_sample(x);
    // Scale and bias are broadcast.
    for (size_t i = 1; !why && i < x->node->n_inputs; i++)
        if (ree_rule_input(x, i) && ree_rule_input(x, i)->rank == ree_rule_input(x, 0)->rank &&
            ree_axis_fits(x->d, ree_rule_input(x, i), 0, 1))
            x->own->needs[i] = ree_divided_along(0, 1);
    return why;
}

const char *ree_share_batch_norm(struct ree_division *x) {
    if (ree_node_int(x->node, "training_mode", 0)) return REE_MIXES;
    // Statistics of the batch: before opset 14 they are what asks for training.
    for (size_t i = 1; i < x->node->n_outputs; i++)
        if (ree_rule_output(x, i)) return REE_MIXES;
    return ree_share_per_sample(x);
}

// Operators that treat all elements alike, with broadcasting.
