// Lowers standard operators as steps of fused operators.
#include "graph/lower/ops/contrib/standard.h"

#include <string.h>

enum ree_status ree_standard_step(struct ree_lower *lower, const struct ree_standard *step,
                                  uint32_t wanted, struct ree_view **out) {
    // A rule only checks these values for NULL, to find which outputs are used.
    static struct ree_value used;
    struct ree_value *outputs[REE_STANDARD_SLOTS];
    struct ree_attr attrs[REE_STANDARD_ATTRS];
    const struct ree_node *fused = lower->node;
    struct ree_node node = {.name = fused->name,
                            .op_type = step->type,
                            .domain = "",
                            .opset = step->opset,
                            .n_outputs = REE_STANDARD_SLOTS,
                            .outputs = outputs,
                            .attrs = attrs,
                            .id = fused->id};
    for (uint32_t i = 0; i < REE_STANDARD_SLOTS; i++) {
        outputs[i] = wanted >> i & 1 ? &used : NULL;
        if (step->in[i]) node.n_inputs = i + 1;
    }
    while (node.n_attrs < REE_STANDARD_ATTRS && step->attrs[node.n_attrs].name) {
        attrs[node.n_attrs] = step->attrs[node.n_attrs];
        node.n_attrs++;
    }
    const char *reason;
    const struct ree_op *op = ree_op_find("", step->type, step->opset, &reason);
    if (!op)
        return ree_lower_fail(lower, REE_INTERNAL, "the step %s of opset %lld is %s", step->type,
                              (long long)step->opset, reason);
    struct ree_view *results[REE_STANDARD_SLOTS] = {NULL};
    lower->node = &node;
    enum ree_status status = op->rule(lower, step->in, results);
    lower->node = fused;
    if (status != REE_OK) return status;
    for (uint32_t i = 0; i < REE_STANDARD_SLOTS; i++)
        if (wanted >> i & 1) out[i] = results[i];
    return REE_OK;
}

enum ree_status ree_contrib_activation(struct ree_lower *lower, const char *name, size_t n,
                                       const float *params, struct ree_view *x,
                                       struct ree_view **out) {
    static const struct {
        const char *name;
        int64_t opset; // before opset 11, Clip's bounds were attributes
        const char *attrs[2];
    } known[] = {
        {"Relu", 14, {NULL}},
        {"Tanh", 13, {NULL}},
        {"Sigmoid", 13, {NULL}},
        {"Softplus", 22, {NULL}},
        {"Softsign", 22, {NULL}},
        {"HardSwish", 22, {NULL}},
        {"Gelu", 20, {NULL}},
        {"LeakyRelu", 16, {"alpha"}},
        {"Elu", 22, {"alpha"}},
        {"Celu", 12, {"alpha"}},
        {"ThresholdedRelu", 22, {"alpha"}},
        {"Selu", 22, {"alpha", "gamma"}},
        {"HardSigmoid", 22, {"alpha", "beta"}},
        {"Clip", 6, {"min", "max"}},
    };
    *out = x;
    if (!name || !*name) return REE_OK;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(name, known[i].name)) continue;
        struct ree_standard step = {.type = name, .opset = known[i].opset, .in = {x}};
        for (size_t a = 0; a < 2 && a < n && known[i].attrs[a]; a++)
            step.attrs[a] = (struct ree_attr)REE_FLOAT_ATTR(known[i].attrs[a], params[a]);
        return ree_standard_step(lower, &step, 1, out);
    }
    return ree_lower_fail(lower, REE_UNSUPPORTED, "activation '%s' is not supported", name);
}

enum ree_status ree_contrib_add(struct ree_lower *lower, struct ree_view *x, struct ree_view *y,
                                struct ree_view **out) {
    *out = x;
    return y ? ree_rule_step2(lower, REE_MAP_add_f32, x, y, out) : REE_OK;
}

enum ree_status ree_contrib_widen(struct ree_lower *lower, struct ree_view *t,
                                  struct ree_view **out) {
    *out = t;
    if (t->dtype != REE_F16 && t->dtype != REE_BF16) return REE_OK;
    return ree_lower_cast(lower, t, REE_F32, out);
}

enum ree_status ree_contrib_check_vector(struct ree_lower *lower, const struct ree_view *t,
                                         const char *name, const struct ree_view *as, int64_t n) {
    if (!t) return REE_OK;
    REE_TRY(ree_rule_same_type(lower, t, name, as, "0"));
    return ree_rule_require_vector(lower, t, name, n);
}

enum ree_status ree_contrib_required(struct ree_lower *lower, struct ree_view *const *in,
                                     uint32_t i, const char *name, struct ree_view **out) {
    *out = ree_rule_input(lower, in, i);
    return *out ? REE_OK
                : ree_lower_fail(lower, REE_INVALID, "input %s is required but omitted", name);
}
