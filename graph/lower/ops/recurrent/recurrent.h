// Shared by RNN, GRU and LSTM: checking and normalising the inputs, the input product of all time
// steps, the states, and the outputs. NUMERICS.md, "Recurrent networks", has the arithmetic.
//
// A run has n_steps steps. In step s a forward direction is at time s, a reverse direction at time
// n_steps - 1 - s. The states of all steps are in one tensor: a step reads the previous entry and
// writes its own, and the sequence output is a view of the tensor, so nothing is copied.
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

// Reads activations, activation_alpha and activation_beta for n_directions * n_functions functions.
enum ree_status ree_activation_read(struct ree_lower *lower, uint32_t n_directions,
                                    uint32_t n_functions, const enum ree_activation_kind *defaults,
                                    struct ree_activation out[2][REE_RECURRENT_MAX_FUNCTIONS]);
// The function applied to value x.
int ree_activation_expr(struct ree_expr_builder *b, const struct ree_activation *a, int x);
// Returns whether the function is a single map operation.
bool ree_activation_is_one_step(const struct ree_activation *a);

struct ree_recurrent {
    struct ree_lower *lower;
    uint32_t n_gates;  // blocks of W: 1, 3 or 4
    uint32_t n_states; // 1 (h) or 2 (h, c)
    int64_t n_steps, batch, n_in, hidden, n_directions;
    bool first_is_reverse;
    bool batch_first; // layout = 1
    bool has_clip;
    float clip;
    struct ree_activation functions[2][REE_RECURRENT_MAX_FUNCTIONS];
    bool alike; // all directions have the same functions

    struct ree_view *product;   // (n_directions, n_steps, n_gates, batch, hidden): x W + Wb
    struct ree_view *r;         // (n_directions, n_gates, hidden out, hidden in)
    struct ree_view *rb;        // (n_directions, n_gates, 1, hidden); NULL: no bias
    struct ree_view *peepholes; // (n_directions, 3, 1, hidden); NULL: none
    // (1, n_steps, batch) int32: 1 if the step is within the sequence's length
    struct ree_view *live;
    struct ree_view *states; // (n_steps + 1, n_directions, n_states, batch, hidden), by step
};

// One step of some of the directions, with the states before and after it.
struct ree_recurrent_step {
    struct ree_recurrent *run;
    uint32_t first, n; // index of the first direction; number of directions
    const struct ree_activation *functions;
    struct ree_view *product; // (n, n_gates, batch, hidden)
    // (1, batch, 1); NULL: all sequences are within their length
    struct ree_view *live;
    struct ree_view *h, *c;              // (n, batch, hidden); c is NULL if there is no cell state
    struct ree_view *old, *to;           // states before and after: (n, n_states, batch, hidden)
    struct ree_view *r, *rb, *peepholes; // for these directions only
};

// Appends the dispatches of one step, which must write step->to.
typedef enum ree_status (*ree_recurrent_cell)(struct ree_recurrent_step *step);

struct ree_recurrent_form {
    uint32_t n_gates, n_states, n_functions;
    enum ree_activation_kind functions[REE_RECURRENT_MAX_FUNCTIONS];
};
// Lowers the whole operator: checks, the input product, the steps, and the outputs Y, Y_h and Y_c.
enum ree_status ree_recurrent_run(struct ree_recurrent *run, struct ree_lower *lower,
                                  const struct ree_recurrent_form *form, ree_recurrent_cell cell,
                                  struct ree_view *const *in, struct ree_view **out);

// Parts of a cell. Tensors of gates are (n, gates, batch, hidden), one gate is (n, batch, hidden).

// h (n, batch, hidden) times the gates [from, from + count) of R, + Rb. With `with_input`, these
// gates of the input product are added.
enum ree_status ree_recurrent_product(struct ree_recurrent_step *step, struct ree_view *h,
                                      uint32_t from, uint32_t count, bool with_input,
                                      struct ree_view **out);
// Views of the gates from, from + stride, ...; and of one gate.
enum ree_status ree_recurrent_gates(struct ree_recurrent_step *step, struct ree_view *t,
                                    uint32_t from, uint32_t stride, uint32_t count,
                                    struct ree_view **out);
enum ree_status ree_recurrent_gate(struct ree_recurrent_step *step, struct ree_view *t,
                                   uint32_t gate, struct ree_view **out);
// function(clip(x))
int ree_recurrent_activate(struct ree_expr_builder *b, const struct ree_recurrent_step *step,
                           uint32_t function, int x);
// Starts an expression over (n, n_states, batch, hidden). ree_recurrent_operand adds one gate or
// state as an operand.
void ree_recurrent_begin(struct ree_expr_builder *b, struct ree_recurrent_step *step);
int ree_recurrent_operand(struct ree_expr_builder *b, struct ree_view *t);
// Ends the expression and writes step->to: `value` within the sequence's length, else the state
// before.
enum ree_status ree_recurrent_finish(struct ree_recurrent_step *step, struct ree_expr_builder *b,
                                     int value);
#endif
