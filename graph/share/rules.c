// Rules: through which operators samples can be followed. rules_movement.c and rules_sums.c have
// most of them.
#include "graph/share/rule.h"

int64_t ree_share_own(const struct ree_divide *d) {
    return d->options->end - d->options->begin;
}

bool ree_share_has_shape(const struct ree_value *value) {
    int64_t n = 1;
    if (!value || !value->has_shape || value->kind != REE_TENSOR) return false;
    for (uint32_t i = 0; i < value->rank; i++) {
        // No tensor has more elements; so products of dimensions and small numbers do not overflow.
        if (value->dims[i] < 0 || value->dims[i] > INT32_MAX) return false;
        if (value->dims[i] && (n *= value->dims[i]) > INT32_MAX) return false;
    }
    return true;
}

int64_t ree_share_product(const struct ree_value *value, uint32_t begin, uint32_t end) {
    int64_t n = 1;
    for (uint32_t i = begin; i < end; i++)
        n *= value->dims[i];
    return n;
}

bool ree_samples_same(struct ree_samples a, struct ree_samples b) {
    return a.is_divided == b.is_divided &&
           (!a.is_divided || (a.axis == b.axis && a.per == b.per && a.groups == b.groups));
}

bool ree_samples_fit(const struct ree_divide *d, const struct ree_value *value,
                     struct ree_samples s) {
    return !s.is_divided ||
           (s.axis < value->rank && value->dims[s.axis] == s.groups * d->options->batch * s.per);
}

bool ree_share_list(const struct ree_node *node, size_t i, const char *attribute, size_t *out_n,
                    int64_t out[REE_MAX_RANK * 2]) {
    const struct ree_value *value = i < node->n_inputs ? node->inputs[i] : NULL;
    *out_n = 0;
    if (value) {
        size_t size = ree_dtype_size(value->dtype);
        bool is_integer = value->dtype == REE_I64 || value->dtype == REE_I32;
        if (!value->data || value->is_input || !is_integer) return false;
        size_t n = value->nbytes / size;
        if (n > REE_MAX_RANK * 2) return false;
        for (size_t k = 0; k < n; k++)
            out[k] = value->dtype == REE_I64 ? ((const int64_t *)value->data)[k]
                                             : ((const int32_t *)value->data)[k];
        *out_n = n;
        return true;
    }
    const int64_t *ints = attribute ? ree_node_ints(node, attribute, out_n) : NULL;
    if (*out_n > REE_MAX_RANK * 2) return false;
    if (*out_n) memcpy(out, ints, *out_n * sizeof *out);
    return true;
}

bool ree_rule_set_list(struct ree_divide *d, struct ree_own_node *own, size_t at,
                       const int64_t *list, size_t n) {
    own->list = ree_arena_alloc_array(&d->arena, n + 1, sizeof *own->list);
    if (!own->list) return false;
    memcpy(own->list, list, n * sizeof *list);
    own->list_input = at;
    own->n_list = n;
    return true;
}

void ree_rule_own_shape(const struct ree_divide *d, const struct ree_value *value,
                        struct ree_samples s, int64_t out[REE_MAX_RANK]) {
    memcpy(out, value->dims, sizeof value->dims);
    out[s.axis] = s.groups * ree_share_own(d) * s.per;
}

// Elementwise operators

bool ree_rule_broadcast(const struct ree_divide *d, const struct ree_node *node,
                        struct ree_samples out, struct ree_own_node *own) {
    const struct ree_value *made = node->outputs[0];
    for (size_t i = 0; i < node->n_inputs; i++) {
        const struct ree_value *value = node->inputs[i];
        if (!value) continue;
        if (!ree_share_has_shape(value) || value->rank > made->rank) return false;
        uint32_t shift = made->rank - value->rank;
        if (out.axis < shift || !ree_axis_fits(d, value, out.axis - shift, out.per)) continue;
        own->needs[i] = ree_divided_along(out.axis - shift, out.per);
    }
    return true;
}

const char *ree_share_elementwise(struct ree_division *x) {
    const struct ree_value *made = ree_rule_output(x, 0);
    if (x->node->n_outputs != 1) return REE_NO_SHAPES;
    struct ree_samples out = {0};
    for (size_t i = 0; i < x->node->n_inputs; i++) {
        struct ree_samples s = ree_rule_samples(x, i);
        if (!s.is_divided) continue;
        if (ree_rule_input(x, i)->rank > made->rank) return REE_NO_SHAPES;
        s.axis += made->rank - ree_rule_input(x, i)->rank;
        if (out.is_divided && !ree_samples_same(s, out)) return REE_NOT_ALIGNED;
        out = s;
    }
    if (!ree_axis_fits(x->d, made, out.axis, out.per)) return REE_MIXES;
    if (!ree_rule_broadcast(x->d, x->node, out, x->own)) return REE_NO_SHAPES;
    x->outputs[0] = out;
    return NULL;
}

static const char *expand(struct ree_division *x) {
    const struct ree_value *made = ree_rule_output(x, 0);
    struct ree_samples s = ree_rule_samples(x, 0);
    int64_t shape[REE_MAX_RANK];
    if (ree_rule_samples(x, 1).is_divided) return REE_MIXES;
    if (ree_rule_input(x, 0)->rank > made->rank) return REE_NO_SHAPES;
    s.axis += made->rank - ree_rule_input(x, 0)->rank;
    if (!ree_axis_fits(x->d, made, s.axis, s.per)) return REE_MIXES;
    x->own->needs[0] = ree_rule_samples(x, 0);
    x->outputs[0] = s;
    ree_rule_own_shape(x->d, made, s, shape);
    return ree_rule_set_list(x->d, x->own, 1, shape, made->rank) ? NULL : REE_NO_SHAPES;
}

static const char *const elementwise_ops[] = {
    "Abs",
    "Acos",
    "Acosh",
    "Add",
    "And",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BitShift",
    "BitwiseAnd",
    "BitwiseNot",
    "BitwiseOr",
    "BitwiseXor",
    "Cast",
    "Ceil",
    "Celu",
    "Clip",
    "Cos",
    "Cosh",
    "Div",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "Greater",
    "GreaterOrEqual",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "IsInf",
    "IsNaN",
    "LeakyRelu",
    "Less",
    "LessOrEqual",
    "Log",
    "Max",
    "Mean",
    "Min",
    "Mish",
    "Mod",
    "Mul",
    "Neg",
    "Not",
    "Or",
    "PRelu",
    "Pow",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Sub",
    "Sum",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Where",
    "Xor",
};

static const struct ree_share_row rules[] = {
    {"ArgMax", ree_share_arg},
    {"ArgMin", ree_share_arg},
    {"AveragePool", ree_share_per_sample},
    {"BatchNormalization", ree_share_batch_norm},
    {"Concat", ree_share_concat},
    {"Conv", ree_share_conv},
    {"ConvTranspose", ree_share_per_sample},
    {"CumSum", ree_share_cumsum},
    {"Einsum", ree_share_einsum},
    {"Expand", expand},
    {"Flatten", ree_share_reshape},
    {"Gather", ree_share_gather},
    {"GatherElements", ree_share_elements},
    {"GlobalAveragePool", ree_share_per_sample},
    {"GlobalMaxPool", ree_share_per_sample},
    {"GroupNormalization", ree_share_per_sample},
    {"InstanceNormalization", ree_share_per_sample},
    {"LayerNormalization", ree_share_layer_norm},
    {"LogSoftmax", ree_share_along_attribute},
    {"MatMul", ree_share_matmul},
    {"MaxPool", ree_share_max_pool},
    {"Pad", ree_share_pad},
    {"ReduceL1", ree_share_reduce},
    {"ReduceL2", ree_share_reduce},
    {"ReduceLogSum", ree_share_reduce},
    {"ReduceLogSumExp", ree_share_reduce},
    {"ReduceMax", ree_share_reduce},
    {"ReduceMean", ree_share_reduce},
    {"ReduceMin", ree_share_reduce},
    {"ReduceProd", ree_share_reduce},
    {"ReduceSum", ree_share_reduce},
    {"ReduceSumSquare", ree_share_reduce},
    {"Reshape", ree_share_reshape},
    {"ScatterElements", ree_share_elements},
    {"ScatterND", ree_share_scatter_nd},
    {"Slice", ree_share_slice},
    {"Softmax", ree_share_along_attribute},
    {"Split", ree_share_along_first},
    {"Squeeze", ree_share_reshape},
    {"TopK", ree_share_along_attribute},
    {"Transpose", ree_share_transpose},
    {"Trilu", ree_share_trilu},
    {"Unsqueeze", ree_share_reshape},
};

static bool is_elementwise(const struct ree_node *node) {
    for (size_t i = 0; i < sizeof elementwise_ops / sizeof *elementwise_ops; i++)
        if (ree_rule_is(node, elementwise_ops[i])) return true;
    return false;
}

ree_share_rule ree_share_find(const struct ree_node *node) {
    bool is_internal = strcmp(node->domain, "ree.internal") == 0;
    if (is_internal) return ree_rule_is(node, "MatMul") ? ree_share_matmul : NULL;
    if (node->domain[0]) return NULL;
    if (is_elementwise(node)) return ree_share_elementwise;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (ree_rule_is(node, rules[i].op_type)) return rules[i].rule;
    return NULL;
}

bool ree_share_takes_groups(ree_share_rule rule) {
    return rule == ree_share_conv;
}

// Common values of which each rank reads its own samples

// Returns whether the node is a Range of integers whose numbers, and the one behind the last, fit
// into 32 bits.
static bool is_integer_range(const struct ree_node *node) {
    int64_t numbers[3][REE_MAX_RANK * 2];
    size_t n;
    for (size_t i = 0; i < 3; i++)
        if (!ree_share_list(node, i, NULL, &n, numbers[i]) || n != 1 || numbers[i][0] > INT32_MAX ||
            numbers[i][0] < INT32_MIN)
            return false;
    int64_t end = numbers[0][0] + numbers[2][0] * node->outputs[0]->dims[0];
    return end <= INT32_MAX && end >= INT32_MIN;
}

bool ree_share_push(struct ree_divide *d, const struct ree_node *node, struct ree_samples out,
                    struct ree_own_node *own) {
    const struct ree_value *made = node->outputs[0];
    int64_t shape[REE_MAX_RANK];
    if (node->n_outputs != 1 || node->domain[0] || !ree_share_has_shape(made)) return false;
    if (is_elementwise(node)) return ree_rule_broadcast(d, node, out, own);
    ree_rule_own_shape(d, made, out, shape);
    if (ree_rule_is(node, "Reshape") || ree_rule_is(node, "Unsqueeze") ||
        ree_rule_is(node, "Squeeze")) {
        // What reshapes the output to the input finds the input's samples.
        if (!ree_rule_reshape(d, made, out, node->inputs[0], &own->needs[0])) return false;
        own->is_reshape = true;
        return ree_rule_set_list(d, own, 1, shape, made->rank);
    }
    if (ree_rule_is(node, "Transpose")) {
        uint32_t order[REE_MAX_RANK];
        if (!ree_rule_order(node, made->rank, order)) return false;
        own->needs[0] = ree_divided_along(order[out.axis], out.per);
        return true;
    }
    if (ree_rule_is(node, "Expand"))
        return ree_rule_broadcast(d, node, out, own) &&
               ree_rule_set_list(d, own, 1, shape, made->rank);
    return ree_rule_is(node, "Range") && is_integer_range(node);
}
