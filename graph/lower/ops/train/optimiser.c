// Adagrad, Adam, Momentum: one step for each of any number of tensors. Inputs: the learning rate R,
// the step count T, then all tensors X, all gradients G, and all states of each kind. Outputs: the
// new X and the new states, in the same order.
#include "graph/lower/ops/rules.h"

#include <string.h>

#define MAX_STATES 2

// The operands and results of a step for one tensor.
struct part {
    struct ree_view *x, *g, *state[MAX_STATES];
    struct ree_view *new_x, *new_state[MAX_STATES];
};

static int mul(struct ree_expr_builder *b, int x, int y) {
    return ree_expr_op2(b, REE_MAP_mul_f32, x, y);
}

static int add(struct ree_expr_builder *b, int x, int y) {
    return ree_expr_op2(b, REE_MAP_add_f32, x, y);
}

static int sub(struct ree_expr_builder *b, int x, int y) {
    return ree_expr_op2(b, REE_MAP_sub_f32, x, y);
}

static int attribute(struct ree_expr_builder *b, const char *name, float fallback) {
    return ree_expr_f32(b, ree_rule_float(b->lower, name, fallback));
}

// g = (norm_coefficient * X) + G
static int gradient(struct ree_expr_builder *b, const struct part *part) {
    int x = ree_expr_tensor(b, part->x), g = ree_expr_tensor(b, part->g);
    return add(b, mul(b, attribute(b, "norm_coefficient", 0), x), g);
}

static enum ree_status start(struct ree_lower *lower, struct ree_view *const *in,
                             struct ree_view **rate, struct ree_view **count) {
    char text[128];
    if (in[0]->dtype != REE_F32 || ree_view_count(in[0]) != 1)
        return ree_lower_fail(lower, REE_INVALID, "input R is %s, expected one float32",
                              ree_view_text(in[0], text, sizeof text));
    if (in[1]->dtype != REE_I64 || ree_view_count(in[1]) != 1)
        return ree_lower_fail(lower, REE_INVALID, "input T is %s, expected one int64",
                              ree_view_text(in[1], text, sizeof text));
    REE_TRY(ree_lower_reshape(lower, in[0], 0, NULL, rate));
    return ree_lower_reshape(lower, in[1], 0, NULL, count);
}

// Finds and checks the inputs of tensor i of n.
static enum ree_status read_part(struct ree_lower *lower, struct ree_view *const *in, size_t n,
                                 size_t i, uint32_t n_states, struct part *part) {
    struct ree_view *all[2 + MAX_STATES];
    for (uint32_t k = 0; k < 2 + n_states; k++) {
        char a[128], b[128];
        all[k] = in[2 + k * n + i];
        if (!all[k])
            return ree_lower_fail(lower, REE_INVALID, "input %zu is omitted", 2 + k * n + i);
        REE_TRY(ree_rule_require_f32(lower, all[k]));
        bool same = all[k]->rank == all[0]->rank &&
                    !memcmp(all[k]->dims, all[0]->dims, all[0]->rank * sizeof all[0]->dims[0]);
        if (!same)
            return ree_lower_fail(
                lower, REE_INVALID, "input %zu is %s, expected %s like tensor %zu", 2 + k * n + i,
                ree_view_text(all[k], a, sizeof a), ree_view_text(all[0], b, sizeof b), i);
    }
    *part = (struct part){.x = all[0], .g = all[1]};
    memcpy(part->state, all + 2, n_states * sizeof *all);
    return REE_OK;
}

typedef enum ree_status (*update)(struct ree_lower *lower, struct ree_view *rate,
                                  struct part *part);

static enum ree_status run(struct ree_lower *lower, struct ree_view *const *in, uint32_t n_states,
                           struct ree_view *rate, update step, struct ree_view **out) {
    size_t kinds = 2 + n_states, n = (lower->node->n_inputs - 2) / kinds;
    if ((lower->node->n_inputs - 2) % kinds || lower->node->n_outputs != n * (1 + n_states))
        return ree_lower_fail(lower, REE_INVALID,
                              "has %zu inputs and %zu outputs, expected 2 + %zu n and %u n",
                              lower->node->n_inputs, lower->node->n_outputs, kinds, 1 + n_states);
    for (size_t i = 0; i < n; i++) {
        struct part part;
        REE_TRY(read_part(lower, in, n, i, n_states, &part));
        REE_TRY(step(lower, rate, &part));
        out[i] = part.new_x;
        for (uint32_t k = 0; k < n_states; k++)
            out[(k + 1) * n + i] = part.new_state[k];
    }
    return REE_OK;
}

// T as float32.
static int count_of(struct ree_expr_builder *b, struct ree_view *count) {
    return ree_expr_op1(b, REE_MAP_i64_to_f32, ree_expr_tensor(b, count));
}

// Returns `later` if T > 0, else `first`.
static int by_count(struct ree_expr_builder *b, struct ree_view *count, int later, int first) {
    int started = ree_expr_op2(b, REE_MAP_lt_i64, ree_expr_i64(b, 0), ree_expr_tensor(b, count));
    return ree_expr_select(b, REE_F32, started, later, first);
}

// Adagrad: H' = H + g * g; X' = X - (r * g) / (sqrt(H') + epsilon)

static enum ree_status adagrad_step(struct ree_lower *lower, struct ree_view *rate,
                                    struct part *part) {
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, part->x->rank, part->x->dims);
    int g = gradient(&b, part);
    int h = add(&b, ree_expr_tensor(&b, part->state[0]), mul(&b, g, g));
    REE_TRY(ree_lower_map(&b, h, REE_F32, &part->new_state[0]));
    ree_expr_init(&b, lower, part->x->rank, part->x->dims);
    int root = ree_expr_op1(&b, REE_MAP_sqrt_f32, ree_expr_tensor(&b, part->new_state[0]));
    int scaled = mul(&b, ree_expr_tensor(&b, rate), gradient(&b, part));
    scaled =
        ree_expr_op2(&b, REE_MAP_div_f32, scaled, add(&b, root, attribute(&b, "epsilon", 1e-6f)));
    return ree_lower_map(&b, sub(&b, ree_expr_tensor(&b, part->x), scaled), REE_F32, &part->new_x);
}

// r = R / (1 + T * decay_factor)
enum ree_status ree_lower_op_adagrad(struct ree_lower *lower, struct ree_view *const *in,
                                     struct ree_view **out) {
    struct ree_view *rate, *count;
    REE_TRY(start(lower, in, &rate, &count));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 0, NULL);
    int decay = mul(&b, count_of(&b, count), attribute(&b, "decay_factor", 0));
    decay = add(&b, ree_expr_f32(&b, 1), decay);
    int r = ree_expr_op2(&b, REE_MAP_div_f32, ree_expr_tensor(&b, rate), decay);
    REE_TRY(ree_lower_map(&b, r, REE_F32, &rate));
    return run(lower, in, 1, rate, adagrad_step, out);
}

// Adam: V' = alpha * V + (1 - alpha) * g; H' = beta * H + (1 - beta) * (g * g);
// X' = (1 - norm_coefficient_post) * (X - (r * V') / (sqrt(H') + epsilon))

static int moving(struct ree_expr_builder *b, const char *name, float fallback,
                  struct ree_view *old, int fresh) {
    int keep = attribute(b, name, fallback);
    int rest = sub(b, ree_expr_f32(b, 1), keep);
    return add(b, mul(b, keep, ree_expr_tensor(b, old)), mul(b, rest, fresh));
}

static enum ree_status adam_step(struct ree_lower *lower, struct ree_view *rate,
                                 struct part *part) {
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, part->x->rank, part->x->dims);
    int v = moving(&b, "alpha", 0.9f, part->state[0], gradient(&b, part));
    REE_TRY(ree_lower_map(&b, v, REE_F32, &part->new_state[0]));
    ree_expr_init(&b, lower, part->x->rank, part->x->dims);
    int g = gradient(&b, part);
    int h = moving(&b, "beta", 0.999f, part->state[1], mul(&b, g, g));
    REE_TRY(ree_lower_map(&b, h, REE_F32, &part->new_state[1]));

    ree_expr_init(&b, lower, part->x->rank, part->x->dims);
    int root = ree_expr_op1(&b, REE_MAP_sqrt_f32, ree_expr_tensor(&b, part->new_state[1]));
    root = add(&b, root, attribute(&b, "epsilon", 1e-6f));
    int change = mul(&b, ree_expr_tensor(&b, rate), ree_expr_tensor(&b, part->new_state[0]));
    change = ree_expr_op2(&b, REE_MAP_div_f32, change, root);
    int x = sub(&b, ree_expr_tensor(&b, part->x), change);
    int kept = sub(&b, ree_expr_f32(&b, 1), attribute(&b, "norm_coefficient_post", 0));
    return ree_lower_map(&b, mul(&b, kept, x), REE_F32, &part->new_x);
}

// r = T > 0 ? (R * sqrt(1 - beta^T)) / (1 - alpha^T) : R
enum ree_status ree_lower_op_adam(struct ree_lower *lower, struct ree_view *const *in,
                                  struct ree_view **out) {
    struct ree_view *rate, *count;
    REE_TRY(start(lower, in, &rate, &count));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 0, NULL);
    int r = ree_expr_tensor(&b, rate), t = count_of(&b, count), one = ree_expr_f32(&b, 1);
    int alpha = ree_expr_op2(&b, REE_MAP_pow_f32, attribute(&b, "alpha", 0.9f), t);
    int beta = ree_expr_op2(&b, REE_MAP_pow_f32, attribute(&b, "beta", 0.999f), t);
    int root = ree_expr_op1(&b, REE_MAP_sqrt_f32, sub(&b, one, beta));
    int adjusted = ree_expr_op2(&b, REE_MAP_div_f32, mul(&b, r, root), sub(&b, one, alpha));
    REE_TRY(ree_lower_map(&b, by_count(&b, count, adjusted, r), REE_F32, &rate));
    return run(lower, in, 2, rate, adam_step, out);
}

// Momentum: V' = alpha * V + c * g, c = T > 0 ? beta : 1; X' = X - R * V', or with Nesterov
// X' = X - R * (g + alpha * V')

static enum ree_status momentum_step(struct ree_lower *lower, struct ree_view *factors,
                                     struct part *part) {
    struct ree_view *rate, *fresh;
    bool nesterov = !strcmp(ree_rule_string(lower, "mode", "standard"), "nesterov");
    REE_TRY(ree_lower_slice(lower, factors, 0, 0, 1, 1, &rate));
    REE_TRY(ree_lower_slice(lower, factors, 0, 1, 1, 1, &fresh));
    REE_TRY(ree_lower_reshape(lower, rate, 0, NULL, &rate));
    REE_TRY(ree_lower_reshape(lower, fresh, 0, NULL, &fresh));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, part->x->rank, part->x->dims);
    int old = mul(&b, attribute(&b, "alpha", 0), ree_expr_tensor(&b, part->state[0]));
    int g = mul(&b, ree_expr_tensor(&b, fresh), gradient(&b, part));
    REE_TRY(ree_lower_map(&b, add(&b, old, g), REE_F32, &part->new_state[0]));

    ree_expr_init(&b, lower, part->x->rank, part->x->dims);
    int change = ree_expr_tensor(&b, part->new_state[0]);
    if (nesterov) change = add(&b, gradient(&b, part), mul(&b, attribute(&b, "alpha", 0), change));
    change = mul(&b, ree_expr_tensor(&b, rate), change);
    return ree_lower_map(&b, sub(&b, ree_expr_tensor(&b, part->x), change), REE_F32, &part->new_x);
}

// momentum_step gets R and c as one tensor of two elements.
enum ree_status ree_lower_op_momentum(struct ree_lower *lower, struct ree_view *const *in,
                                      struct ree_view **out) {
    struct ree_view *rate, *count, *factors;
    const char *mode = ree_rule_string(lower, "mode", "standard");
    if (strcmp(mode, "standard") && strcmp(mode, "nesterov"))
        return ree_lower_fail(lower, REE_INVALID, "mode is '%s', expected standard or nesterov",
                              mode);
    REE_TRY(start(lower, in, &rate, &count));
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 1, (int64_t[]){2});
    int fresh = by_count(&b, count, attribute(&b, "beta", 1), ree_expr_f32(&b, 1));
    int which = ree_expr_iota(&b, REE_I32, 0, (int64_t[]){1});
    int value = ree_expr_select(&b, REE_F32, which, fresh, ree_expr_tensor(&b, rate));
    REE_TRY(ree_lower_map(&b, value, REE_F32, &factors));
    return run(lower, in, 1, factors, momentum_step, out);
}
