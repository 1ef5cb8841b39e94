// GRU: gates z (update), r (reset) and the candidate n, in this order.
//
//     z = f(xz + hz)   r = f(xr + hr)   h' = (1 - z) * n + z * h
//     n = g(xn + ((r * h) Rn + Rbn))      or, with linear_before_reset, g(xn + r * (h Rn + Rbn))
//
// with x. = x W. + Wb. and h. = h R. + Rb.
#include "graph/lower/ops/recurrent/recurrent.h"

enum { UPDATE, RESET, CANDIDATE };

// Computes one gate's activation as a map of its own: function(clip(x + y)), then times `times`. y
// NULL: no sum; times NULL: no product.
static enum ree_status activated(struct ree_recurrent_step *step, uint32_t function,
                                 struct ree_view *x, struct ree_view *y, struct ree_view *times,
                                 struct ree_view **out) {
    struct ree_expr_builder b;
    ree_expr_init(&b, step->run->lower, x->rank, x->dims);
    int value = ree_expr_tensor(&b, x);
    if (y) value = ree_expr_op2(&b, REE_MAP_add_f32, value, ree_expr_tensor(&b, y));
    value = ree_recurrent_activate(&b, step, function, value);
    if (times) value = ree_expr_op2(&b, REE_MAP_mul_f32, value, ree_expr_tensor(&b, times));
    return ree_lower_map(&b, value, REE_F32, out);
}

// Adds (1 - z) * n + z * h to the expression.
static int blend(struct ree_expr_builder *b, struct ree_recurrent_step *step, int z, int n) {
    int rest = ree_expr_op2(b, REE_MAP_sub_f32, ree_expr_f32(b, 1), z);
    int fresh = ree_expr_op2(b, REE_MAP_mul_f32, rest, n);
    int kept = ree_expr_op2(b, REE_MAP_mul_f32, z, ree_recurrent_operand(b, step->h));
    return ree_expr_op2(b, REE_MAP_add_f32, fresh, kept);
}

// The reset gate is applied before the product with Rn: two products per step.
static enum ree_status cell_reset_first(struct ree_recurrent_step *step) {
    struct ree_view *gates, *update, *reset, *product;
    REE_TRY(ree_recurrent_product(step, step->h, UPDATE, 2, true, &gates));
    REE_TRY(ree_recurrent_gate(step, gates, UPDATE, &update));
    REE_TRY(ree_recurrent_gate(step, gates, RESET, &reset));
    REE_TRY(activated(step, 0, reset, NULL, step->h, &reset));
    REE_TRY(ree_recurrent_product(step, reset, CANDIDATE, 1, true, &product));
    bool one_map = step->run->lower->fuse && ree_activation_is_one_step(&step->functions[0]);
    if (!one_map) REE_TRY(activated(step, 0, update, NULL, NULL, &update));
    struct ree_expr_builder b;
    ree_recurrent_begin(&b, step);
    int z = ree_recurrent_operand(&b, update);
    if (one_map) z = ree_recurrent_activate(&b, step, 0, z);
    int n = ree_recurrent_activate(&b, step, 1, ree_expr_tensor(&b, product));
    return ree_recurrent_finish(step, &b, blend(&b, step, z, n));
}

// The reset gate is applied after the product: one product, and one map if the gates' function is a
// single operation.
static enum ree_status cell_reset_last(struct ree_recurrent_step *step) {
    struct ree_view *gates, *h[3], *x[3];
    REE_TRY(ree_recurrent_product(step, step->h, 0, 3, false, &gates));
    for (uint32_t i = 0; i < 3; i++) {
        REE_TRY(ree_recurrent_gate(step, gates, i, &h[i]));
        REE_TRY(ree_recurrent_gate(step, step->product, i, &x[i]));
    }
    bool one_map = step->run->lower->fuse && ree_activation_is_one_step(&step->functions[0]);
    struct ree_expr_builder b;
    int gate[2];
    for (uint32_t i = 0; i < 2 && !one_map; i++)
        REE_TRY(activated(step, 0, x[i], h[i], NULL, &h[i]));
    ree_recurrent_begin(&b, step);
    for (uint32_t i = 0; i < 2; i++) {
        gate[i] = ree_recurrent_operand(&b, h[i]);
        if (!one_map) continue;
        gate[i] = ree_expr_op2(&b, REE_MAP_add_f32, ree_recurrent_operand(&b, x[i]), gate[i]);
        gate[i] = ree_recurrent_activate(&b, step, 0, gate[i]);
    }
    int n = ree_recurrent_operand(&b, h[CANDIDATE]);
    n = ree_expr_op2(&b, REE_MAP_mul_f32, gate[RESET], n);
    n = ree_expr_op2(&b, REE_MAP_add_f32, ree_recurrent_operand(&b, x[CANDIDATE]), n);
    n = ree_recurrent_activate(&b, step, 1, n);
    return ree_recurrent_finish(step, &b, blend(&b, step, gate[UPDATE], n));
}

enum ree_status ree_lower_op_gru(struct ree_lower *lower, struct ree_view *const *in,
                                 struct ree_view **out) {
    static const struct ree_recurrent_form form = {.n_gates = 3,
                                                   .n_states = 1,
                                                   .n_functions = 2,
                                                   .functions = {REE_ACT_SIGMOID, REE_ACT_TANH}};
    struct ree_recurrent run = {0};
    bool last = ree_rule_int(lower, "linear_before_reset", 0) != 0;
    return ree_recurrent_run(&run, lower, &form, last ? cell_reset_last : cell_reset_first, in,
                             out);
}
