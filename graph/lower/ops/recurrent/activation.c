// The activation functions of recurrent operators: finds them by name, and reads the parameters
// that some of them have.
#include "graph/lower/ops/recurrent/recurrent.h"

#include <strings.h>

static const struct {
    const char *name;
    enum ree_activation_kind kind;
    bool has_alpha, has_beta;
    float alpha, beta; // defaults, if the node gives none
} known[] = {
    {"Relu", REE_ACT_RELU, false, false, 0, 0},
    {"Tanh", REE_ACT_TANH, false, false, 0, 0},
    {"Sigmoid", REE_ACT_SIGMOID, false, false, 0, 0},
    {"Affine", REE_ACT_AFFINE, true, true, 1, 0},
    {"LeakyRelu", REE_ACT_LEAKY_RELU, true, false, 0.01f, 0},
    {"ThresholdedRelu", REE_ACT_THRESHOLDED_RELU, true, false, 1, 0},
    {"ScaledTanh", REE_ACT_SCALED_TANH, true, true, 1, 1},
    {"HardSigmoid", REE_ACT_HARD_SIGMOID, true, true, 0.2f, 0.5f},
    {"Elu", REE_ACT_ELU, true, false, 1, 0},
    {"Softsign", REE_ACT_SOFTSIGN, false, false, 0, 0},
    {"Softplus", REE_ACT_SOFTPLUS, false, false, 0, 0},
};
#define N_KNOWN (sizeof known / sizeof known[0])

// Names are compared without regard to case, because models differ in case.
static enum ree_status find(struct ree_lower *lower, const char *name, size_t *out) {
    for (*out = 0; *out < N_KNOWN; ++*out)
        if (!strcasecmp(known[*out].name, name)) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID,
                          "the activation '%s' is unknown, expected Relu, Tanh, Sigmoid, Affine, "
                          "LeakyRelu, ThresholdedRelu, ScaledTanh, HardSigmoid, Elu, Softsign or "
                          "Softplus",
                          name);
}

enum ree_status ree_activation_read(struct ree_lower *lower, uint32_t n_directions,
                                    uint32_t n_functions, const enum ree_activation_kind *defaults,
                                    struct ree_activation out[2][REE_RECURRENT_MAX_FUNCTIONS]) {
    const struct ree_attr *names = ree_node_attr(lower->node, "activations");
    uint32_t n = n_directions * n_functions;
    if (names && (names->kind != REE_ATTR_STRINGS || names->n != n))
        return ree_lower_fail(lower, REE_INVALID, "activations has %zu entries, expected %u",
                              names->kind == REE_ATTR_STRINGS ? names->n : 0, n);
    size_t n_alpha, n_beta;
    const float *alpha = ree_rule_floats(lower, "activation_alpha", &n_alpha);
    const float *beta = ree_rule_floats(lower, "activation_beta", &n_beta);
    // Each function that has a parameter takes the next value of the list.
    for (uint32_t i = 0; i < n; i++) {
        size_t k = (size_t)defaults[i % n_functions];
        if (names) REE_TRY(find(lower, names->strings[i], &k));
        struct ree_activation *a = &out[i / n_functions][i % n_functions];
        *a = (struct ree_activation){known[k].kind, known[k].alpha, known[k].beta};
        if (known[k].has_alpha && n_alpha) {
            a->alpha = *alpha++;
            n_alpha--;
        }
        if (known[k].has_beta && n_beta) {
            a->beta = *beta++;
            n_beta--;
        }
    }
    return REE_OK;
}

bool ree_activation_is_one_step(const struct ree_activation *a) {
    return a->kind == REE_ACT_TANH || a->kind == REE_ACT_SIGMOID || a->kind == REE_ACT_SOFTPLUS;
}

#define ONE(op, x) ree_expr_op1(b, REE_MAP_##op##_f32, x)
#define TWO(op, x, y) ree_expr_op2(b, REE_MAP_##op##_f32, x, y)
#define SELECT(c, x, y) ree_expr_op3(b, REE_MAP_select_b32, c, x, y)

int ree_activation_expr(struct ree_expr_builder *b, const struct ree_activation *a, int x) {
    if (a->kind == REE_ACT_TANH) return ONE(tanh, x);
    if (a->kind == REE_ACT_SIGMOID) return ONE(sigmoid, x);
    if (a->kind == REE_ACT_SOFTPLUS) return ONE(softplus, x);
    int zero = ree_expr_f32(b, 0), one = ree_expr_f32(b, 1);
    int alpha = ree_expr_f32(b, a->alpha), beta = ree_expr_f32(b, a->beta);
    switch (a->kind) {
    case REE_ACT_RELU: return TWO(max, x, zero);
    case REE_ACT_AFFINE: return TWO(add, TWO(mul, alpha, x), beta);
    case REE_ACT_LEAKY_RELU: return SELECT(TWO(lt, x, zero), TWO(mul, alpha, x), x);
    case REE_ACT_THRESHOLDED_RELU: return SELECT(TWO(lt, alpha, x), x, zero);
    case REE_ACT_SCALED_TANH: return TWO(mul, alpha, ONE(tanh, TWO(mul, beta, x)));
    case REE_ACT_HARD_SIGMOID:
        return TWO(max, zero, TWO(min, one, TWO(add, TWO(mul, alpha, x), beta)));
    case REE_ACT_ELU: return SELECT(TWO(lt, x, zero), TWO(mul, alpha, ONE(expm1, x)), x);
    case REE_ACT_SOFTSIGN: return TWO(div, x, TWO(add, one, ONE(abs, x)));
    default: return x;
    }
}
