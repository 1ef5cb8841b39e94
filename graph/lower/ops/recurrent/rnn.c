// RNN: h' = f((x W + Wb) + (h R + Rb)). With fusion, a step is one product with its epilogue.
#include "graph/lower/ops/recurrent/recurrent.h"

static enum ree_status rnn_cell(struct ree_recurrent_step *step) {
    struct ree_view *sum;
    REE_TRY(ree_recurrent_product(step, step->h, 0, 1, true, &sum));
    struct ree_expr_builder b;
    ree_recurrent_begin(&b, step);
    int h = ree_recurrent_activate(&b, step, 0, ree_expr_tensor(&b, sum));
    return ree_recurrent_finish(step, &b, h);
}

enum ree_status ree_lower_op_rnn(struct ree_lower *lower, struct ree_view *const *in,
                                 struct ree_view **out) {
    static const struct ree_recurrent_form form = {
        .n_gates = 1, .n_states = 1, .n_functions = 1, .functions = {REE_ACT_TANH}};
    struct ree_recurrent run = {0};
    return ree_recurrent_run(&run, lower, &form, rnn_cell, in, out);
}
