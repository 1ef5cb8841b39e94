// Shared by RNN, GRU and LSTM: checking and normalising the inputs, the input product of all time
// steps, the states, and the outputs. NUMERICS.md, "Recurrent networks", has the arithmetic.
//
// A node has n_steps steps. In step s, a forward direction is at time s, a reverse direction at
// time n_steps - 1 - s. The states of all steps are in one tensor: a step reads the previous entry
// and writes its own. The sequence output of a single direction is a view of this tensor.
#ifndef REE_GRAPH_LOWER_RECURRENT_H
#define REE_GRAPH_LOWER_RECURRENT_H

#include "graph/lower/ops/rules.h"

enum ree_activation_kind {
    REE_ACT_RELU,
    REE_ACT_TANH,
    REE_ACT_SIGMOID,
    REE_ACT_AFFINE,
    REE_ACT_LEAKY_RELU,
    REE_ACT_THRESHOLDED_RELU,
    REE_ACT_SCALED_TANH,
    REE_ACT_HARD_SIGMOID,
    REE_ACT_ELU,
    REE_ACT_SOFTSIGN,
    REE_ACT_SOFTPLUS,
};
struct ree_activation {
    enum ree_activation_kind kind;
    float alpha, beta;
};

#define REE_RECURRENT_MAX_FUNCTIONS 3 // f, g and h of LSTM

// Reads the attributes activations, activation_alpha and activation_beta: functions
// out[direction][function]. `defaults` has n_functions entries, used if `activations` is absent.
enum ree_status ree_activation_read(struct ree_lower *lower, uint32_t n_directions,
                                    uint32_t n_functions, const enum ree_activation_kind *defaults,
                                    struct ree_activation out[2][REE_RECURRENT_MAX_FUNCTIONS]);
// Adds the value of the function a for x to an expression.
int ree_activation_expr(struct ree_expr_builder *b, const struct ree_activation *a, int x);
// Returns whether the function is a single operation of an expression.
bool ree_activation_is_one_step(const struct ree_activation *a);

struct ree_recurrent {
    struct ree_lower *lower;
    uint32_t n_gates;  // number of gates: RNN 1, GRU 3, LSTM 4
    uint32_t n_states; // number of states: 1 (h), or 2 (h and c) for LSTM
    int64_t n_steps, batch, n_in, hidden, n_directions;
    bool first_is_reverse;
    bool batch_first; // layout = 1: x and the outputs begin with the batch dimension
    bool has_clip;
    float clip;
    struct ree_activation functions[2][REE_RECURRENT_MAX_FUNCTIONS];
    bool same_functions; // there are two directions, with the same functions

    struct ree_view *product;   // x W + Wb: (n_directions, n_steps, n_gates, batch, hidden)
    struct ree_view *r;         // R: (n_directions, n_gates, hidden out, hidden in)
    struct ree_view *rb;        // Rb: (n_directions, n_gates, 1, hidden); NULL: no bias
    struct ree_view *peepholes; // P: (n_directions, 3, 1, hidden); NULL: none
    // (1, n_steps, batch) int32: 1 if the time is within the length of the sequence, else 0. NULL:
    // all sequences have n_steps steps.
    struct ree_view *live;
    // States before step 0 and after each step: (n_steps + 1, n_directions, n_states, batch,
    // hidden).
    struct ree_view *states;
};

// One step of n directions, with the states before and after it.
struct ree_recurrent_step {
    struct ree_recurrent *run;
    uint32_t first, n; // index of the first direction; number of directions
    const struct ree_activation *functions;
    struct ree_view *product; // x W + Wb at this step: (n, n_gates, batch, hidden)
    // (n, batch, 1) int32: 1 if the time is within the length of the sequence, else 0. NULL: all
    // sequences have n_steps steps.
    struct ree_view *live;
    struct ree_view *h, *c;    // states before the step: (n, batch, hidden); c NULL: no cell state
    struct ree_view *old, *to; // all states before and after: (n, n_states, batch, hidden)
    // r, rb and peepholes of struct ree_recurrent, reduced to the n directions of this step
    struct ree_view *r, *rb, *peepholes;
};

// Lowers the arithmetic of one step of RNN, GRU or LSTM. It must write step->to.
typedef enum ree_status (*ree_recurrent_cell)(struct ree_recurrent_step *step);

struct ree_recurrent_form {
    uint32_t n_gates, n_states, n_functions;
    enum ree_activation_kind functions[REE_RECURRENT_MAX_FUNCTIONS];
};
// Lowers a whole node: checks, the input product, all steps with `cell`, and the outputs Y, Y_h and
// Y_c.
enum ree_status ree_recurrent_run(struct ree_recurrent *run, struct ree_lower *lower,
                                  const struct ree_recurrent_form *form, ree_recurrent_cell cell,
                                  struct ree_view *const *in, struct ree_view **out);

// Parts of a cell. The gates of a step are (n, gates, batch, hidden); one gate is (n, batch,
// hidden).

// Multiplies h (n, batch, hidden) by the matrices of `count` gates of R, from gate `from` on, and
// adds Rb. If with_input is set, adds these gates of the input product x W + Wb. *out is (n, count,
// batch, hidden).
enum ree_status ree_recurrent_product(struct ree_recurrent_step *step, struct ree_view *h,
                                      uint32_t from, uint32_t count, bool with_input,
                                      struct ree_view **out);
// ree_recurrent_gates views `count` gates of t: gates from, from + stride, ... ree_recurrent_gate
// views one gate, without the axis of gates.
enum ree_status ree_recurrent_gates(struct ree_recurrent_step *step, struct ree_view *t,
                                    uint32_t from, uint32_t stride, uint32_t count,
                                    struct ree_view **out);
enum ree_status ree_recurrent_gate(struct ree_recurrent_step *step, struct ree_view *t,
                                   uint32_t gate, struct ree_view **out);
// Adds function number `function` of the step to the expression, applied to clip(x).
int ree_recurrent_activate(struct ree_expr_builder *b, const struct ree_recurrent_step *step,
                           uint32_t function, int x);
// ree_recurrent_begin starts an expression over (n, n_states, batch, hidden). ree_recurrent_operand
// adds one gate or state (n, batch, hidden) as an operand.
void ree_recurrent_begin(struct ree_expr_builder *b, struct ree_recurrent_step *step);
int ree_recurrent_operand(struct ree_expr_builder *b, struct ree_view *t);
// Ends the expression and writes step->to: `value` for sequences whose length includes this step,
// the state before the step for all others.
enum ree_status ree_recurrent_finish(struct ree_recurrent_step *step, struct ree_expr_builder *b,
                                     int value);
#endif
