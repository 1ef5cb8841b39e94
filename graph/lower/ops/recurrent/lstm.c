// LSTM: gates i (input), o (output), f (forget) and the candidate n, in this order.
//
//     i = f(gi + Pi * c)   f = f(gf + Pf * c), or 1 - i with input_forget   n = g(gn)
//     c' = f * c + i * n   o = f(go + Po * c')   h' = o * h(c')
//
// with g. = (x W. + Wb.) + (h R. + Rb.). The inputs of f and g are clipped; the input of h is c'
// without clipping.
#include "graph/lower/ops/recurrent/recurrent.h"

enum { INPUT, OUTPUT, FORGET, CANDIDATE };

// The states are one tensor, so one map makes both: the index along the state axis selects h or c.
static enum ree_status finish_states(struct ree_recurrent_step *step, struct ree_expr_builder *b,
                                     int h, int c) {
    int state = ree_expr_iota(b, REE_I32, 0, (int64_t[]){0, 1, 0, 0});
    return ree_recurrent_finish(step, b, ree_expr_select(b, REE_F32, state, c, h));
}

static int multiply(struct ree_expr_builder *b, int x, int y) {
    return ree_expr_op2(b, REE_MAP_mul_f32, x, y);
}

static int cell_state(struct ree_expr_builder *b, int f, int c, int i, int n) {
    return ree_expr_op2(b, REE_MAP_add_f32, multiply(b, f, c), multiply(b, i, n));
}

// Returns whether 1 - i replaces the forget gate.
static bool has_input_forget(const struct ree_recurrent_step *step) {
    return ree_rule_int(step->run->lower, "input_forget", 0) != 0;
}

static int one_minus(struct ree_expr_builder *b, int i) {
    return ree_expr_op2(b, REE_MAP_sub_f32, ree_expr_f32(b, 1), i);
}

// Computes everything after the product in one map.
static enum ree_status cell_in_one_map(struct ree_recurrent_step *step, struct ree_view *gates) {
    struct ree_expr_builder b;
    int value[4];
    ree_recurrent_begin(&b, step);
    for (uint32_t i = 0; i < 4; i++) {
        struct ree_view *gate;
        if (i == FORGET && has_input_forget(step)) continue;
        REE_TRY(ree_recurrent_gate(step, gates, i, &gate));
        value[i] =
            ree_recurrent_activate(&b, step, i == CANDIDATE, ree_recurrent_operand(&b, gate));
    }
    if (has_input_forget(step)) value[FORGET] = one_minus(&b, value[INPUT]);
    int old = ree_recurrent_operand(&b, step->c);
    int c = cell_state(&b, value[FORGET], old, value[INPUT], value[CANDIDATE]);
    int h = multiply(&b, value[OUTPUT], ree_activation_expr(&b, &step->functions[2], c));
    return finish_states(step, &b, h, c);
}

// Computes function(clip(gate + peephole * c)) as a map of its own; peephole NULL: no sum.
static enum ree_status activated(struct ree_recurrent_step *step, uint32_t function,
                                 struct ree_view *gate, struct ree_view *peephole,
                                 struct ree_view *c, struct ree_view **out) {
    struct ree_expr_builder b;
    ree_expr_init(&b, step->run->lower, 3, gate->dims);
    int value = ree_expr_tensor(&b, gate);
    if (peephole) {
        int seen = multiply(&b, ree_expr_tensor(&b, peephole), ree_expr_tensor(&b, c));
        value = ree_expr_op2(&b, REE_MAP_add_f32, value, seen);
    }
    value = ree_recurrent_activate(&b, step, function, value);
    return ree_lower_map(&b, value, REE_F32, out);
}

// As cell_in_one_map, with one map per gate, which allows peepholes and longer functions.
static enum ree_status cell_by_gates(struct ree_recurrent_step *step, struct ree_view *gates) {
    struct ree_view *gate[4], *peephole[3] = {NULL}, *c, *seen;
    struct ree_lower *lower = step->run->lower;
    for (uint32_t i = 0; i < 4; i++)
        REE_TRY(ree_recurrent_gate(step, gates, i, &gate[i]));
    for (uint32_t i = 0; i < 3 && step->peepholes; i++)
        REE_TRY(ree_recurrent_gate(step, step->peepholes, i, &peephole[i]));
    REE_TRY(activated(step, 0, gate[INPUT], peephole[INPUT], step->c, &gate[INPUT]));
    if (!has_input_forget(step))
        REE_TRY(activated(step, 0, gate[FORGET], peephole[FORGET], step->c, &gate[FORGET]));
    REE_TRY(activated(step, 1, gate[CANDIDATE], NULL, NULL, &gate[CANDIDATE]));

    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 3, step->c->dims);
    int i = ree_expr_tensor(&b, gate[INPUT]);
    int f = has_input_forget(step) ? one_minus(&b, i) : ree_expr_tensor(&b, gate[FORGET]);
    int n = ree_expr_tensor(&b, gate[CANDIDATE]), old = ree_expr_tensor(&b, step->c);
    REE_TRY(ree_lower_map(&b, cell_state(&b, f, old, i, n), REE_F32, &c));
    REE_TRY(activated(step, 0, gate[OUTPUT], peephole[OUTPUT], c, &gate[OUTPUT]));
    ree_expr_init(&b, lower, 3, c->dims);
    int h = ree_activation_expr(&b, &step->functions[2], ree_expr_tensor(&b, c));
    REE_TRY(ree_lower_map(&b, h, REE_F32, &seen));

    ree_recurrent_begin(&b, step);
    int o = ree_recurrent_operand(&b, gate[OUTPUT]);
    h = multiply(&b, o, ree_recurrent_operand(&b, seen));
    return finish_states(step, &b, h, ree_recurrent_operand(&b, c));
}

static enum ree_status lstm_cell(struct ree_recurrent_step *step) {
    struct ree_view *gates;
    REE_TRY(ree_recurrent_product(step, step->h, 0, 4, true, &gates));
    bool one_map = step->run->lower->fuse && !step->peepholes;
    for (uint32_t i = 0; i < 3; i++)
        one_map = one_map && ree_activation_is_one_step(&step->functions[i]);
    return one_map ? cell_in_one_map(step, gates) : cell_by_gates(step, gates);
}

enum ree_status ree_lower_op_lstm(struct ree_lower *lower, struct ree_view *const *in,
                                  struct ree_view **out) {
    static const struct ree_recurrent_form form = {
        .n_gates = 4,
        .n_states = 2,
        .n_functions = 3,
        .functions = {REE_ACT_SIGMOID, REE_ACT_TANH, REE_ACT_TANH}};
    struct ree_recurrent run = {0};
    return ree_recurrent_run(&run, lower, &form, lstm_cell, in, out);
}
