// Lowers RNN, GRU and LSTM: inputs, the input product, the loop over the steps, outputs.
#include "graph/lower/ops/recurrent/recurrent.h"

#include <string.h>

// Views

static enum ree_status unsqueeze(struct ree_lower *lower, struct ree_view *t, uint32_t axis,
                                 struct ree_view **out) {
    struct ree_view *view = ree_lower_view(lower, t);
    if (!view) return ree_lower_no_memory(lower);
    for (uint32_t i = view->rank++; i > axis; i--) {
        view->dims[i] = view->dims[i - 1];
        view->strides[i] = view->strides[i - 1];
    }
    view->dims[axis] = 1;
    view->strides[axis] = 0;
    *out = view;
    return REE_OK;
}

// Selects element `at` of an axis and drops the axis.
static enum ree_status select_at(struct ree_lower *lower, struct ree_view *t, uint32_t axis,
                                 int64_t at, struct ree_view **out) {
    struct ree_view *view;
    REE_TRY(ree_lower_slice(lower, t, axis, at, 1, 1, &view));
    view->rank--;
    for (uint32_t i = axis; i < view->rank; i++) {
        view->dims[i] = view->dims[i + 1];
        view->strides[i] = view->strides[i + 1];
    }
    *out = view;
    return REE_OK;
}

// Swaps the first two axes.
static enum ree_status swap_leading(struct ree_lower *lower, struct ree_view *t,
                                    struct ree_view **out) {
    uint32_t perm[REE_MAX_RANK];
    for (uint32_t i = 0; i < t->rank; i++)
        perm[i] = i < 2 ? 1 - i : i;
    return ree_lower_transpose(lower, t, perm, out);
}

static bool is_reverse(const struct ree_recurrent *run, uint32_t direction) {
    return direction == 1 || run->first_is_reverse;
}

// Views t (directions, steps, ...) at step s: directions [first, first + n), each at its own time,
// without the axis of steps. Two directions differ by a single stride, which may differ from t's.
static enum ree_status at_step(const struct ree_recurrent *run, struct ree_view *t, uint32_t first,
                               uint32_t n, int64_t s, struct ree_view **out) {
    int64_t times[2];
    for (uint32_t i = 0; i < n; i++)
        times[i] = is_reverse(run, first + i) ? run->n_steps - 1 - s : s;
    struct ree_view *view;
    REE_TRY(select_at(run->lower, t, 1, times[0], &view));
    if (t->dims[0] == 1) view->strides[0] = 0; // shared by all directions
    view->offset += first * view->strides[0];
    view->dims[0] = n;
    if (n == 2) view->strides[0] += (times[1] - times[0]) * t->strides[1];
    *out = view;
    return REE_OK;
}

// Inputs

static enum ree_status require_shape(struct ree_lower *lower, const struct ree_view *t,
                                     const char *name, uint32_t rank, const int64_t *dims) {
    bool same = t->dtype == REE_F32 && t->rank == rank;
    for (uint32_t i = 0; same && i < rank; i++)
        same = t->dims[i] == dims[i];
    if (same) return REE_OK;
    char got[128], want[128];
    struct ree_view expected = {.dtype = REE_F32, .rank = rank};
    memcpy(expected.dims, dims, rank * sizeof *dims);
    return ree_lower_fail(lower, REE_INVALID, "input %s is %s, expected %s", name,
                          ree_view_text(t, got, sizeof got),
                          ree_view_text(&expected, want, sizeof want));
}

// If a state has no elements, neither has an output, and no step computes anything.
static bool has_elements(const struct ree_recurrent *run) {
    return run->batch > 0 && run->hidden > 0;
}

static enum ree_status read_direction(struct ree_recurrent *run) {
    const char *direction = ree_rule_string(run->lower, "direction", "forward");
    bool both = !strcmp(direction, "bidirectional");
    run->first_is_reverse = !strcmp(direction, "reverse");
    run->n_directions = both ? 2 : 1;
    if (both || run->first_is_reverse || !strcmp(direction, "forward")) return REE_OK;
    return ree_lower_fail(run->lower, REE_INVALID,
                          "direction is '%s', expected forward, reverse or bidirectional",
                          direction);
}

static enum ree_status read_attributes(struct ree_recurrent *run,
                                       const struct ree_recurrent_form *form) {
    struct ree_lower *lower = run->lower;
    const struct ree_node *node = lower->node;
    REE_TRY(read_direction(run));
    REE_TRY(ree_activation_read(lower, (uint32_t)run->n_directions, form->n_functions,
                                form->functions, run->functions));
    run->same_functions =
        run->n_directions == 2 && !memcmp(run->functions[0], run->functions[1],
                                          form->n_functions * sizeof *run->functions[0]);
    const struct ree_attr *clip = ree_node_attr(node, "clip");
    run->has_clip = clip != NULL;
    run->clip = ree_rule_float(lower, "clip", 0);
    if (run->has_clip && !(run->clip > 0))
        return ree_lower_fail(lower, REE_INVALID, "clip is %g, expected more than 0",
                              (double)run->clip);
    int64_t layout = ree_rule_int(lower, "layout", 0);
    if (layout != 0 && layout != 1)
        return ree_lower_fail(lower, REE_INVALID, "layout is %lld, expected 0 or 1",
                              (long long)layout);
    run->batch_first = layout == 1;
    return REE_OK;
}

static enum ree_status read_sizes(struct ree_recurrent *run, struct ree_view *x, struct ree_view *w,
                                  struct ree_view *r) {
    struct ree_lower *lower = run->lower;
    REE_TRY(ree_rule_require_f32(lower, x));
    REE_TRY(ree_rule_require_rank(lower, x, "X", 3, 3));
    REE_TRY(ree_rule_require_rank(lower, r, "R", 3, 3));
    run->n_steps = x->dims[run->batch_first ? 1 : 0];
    run->batch = x->dims[run->batch_first ? 0 : 1];
    run->n_in = x->dims[2];
    run->hidden = r->dims[2];
    int64_t hidden = ree_rule_int(lower, "hidden_size", run->hidden);
    if (hidden != run->hidden)
        return ree_lower_fail(lower, REE_INVALID, "hidden_size is %lld, but R has %lld columns",
                              (long long)hidden, (long long)run->hidden);
    int64_t rows = 0;
    if (__builtin_mul_overflow(run->hidden, (int64_t)run->n_gates, &rows))
        return ree_lower_fail(lower, REE_UNSUPPORTED, "R has %lld columns", (long long)run->hidden);
    REE_TRY(require_shape(lower, w, "W", 3, (int64_t[]){run->n_directions, rows, run->n_in}));
    REE_TRY(require_shape(lower, r, "R", 3, (int64_t[]){run->n_directions, rows, run->hidden}));
    // A tensor without elements may have sizes whose product is no int64.
    int64_t n;
    if (__builtin_add_overflow(run->n_steps, 1, &n) || __builtin_mul_overflow(n, run->batch, &n))
        return ree_lower_fail(lower, REE_UNSUPPORTED, "%lld time steps of a batch of %lld",
                              (long long)run->n_steps, (long long)run->batch);
    if (!has_elements(run)) return REE_OK;
    return ree_lower_count_time_steps(lower, run->n_steps, (uint32_t)run->n_directions);
}

// Computes live[0, t, b] = t < length of b. If all sequences have the full length, all would be
// true; run->live is then NULL. A length beyond the steps acts as all steps, and a negative one as
// 0 (NUMERICS.md): checking lengths would require to read those that the device computes.
static enum ree_status read_lengths(struct ree_recurrent *run, struct ree_view *lengths) {
    struct ree_lower *lower = run->lower;
    if (!lengths) return REE_OK;
    char text[128];
    if (lengths->dtype != REE_I32 || lengths->rank != 1 || lengths->dims[0] != run->batch)
        return ree_lower_fail(lower, REE_INVALID, "input sequence_lens is %s, expected int32[%lld]",
                              ree_view_text(lengths, text, sizeof text), (long long)run->batch);
    if (ree_lower_is_host(lengths)) {
        const int64_t *values;
        size_t n;
        bool whole = true;
        REE_TRY(ree_lower_host_ints(lower, lengths, "sequence_lens", &values, &n));
        for (size_t i = 0; i < n; i++)
            whole = whole && values[i] >= run->n_steps;
        if (whole) return REE_OK;
    }
    struct ree_expr_builder b;
    ree_expr_init(&b, lower, 3, (int64_t[]){1, run->n_steps, run->batch});
    int time = ree_expr_iota(&b, REE_I32, 0, (int64_t[]){0, 1, 0});
    int within = ree_expr_op2(&b, REE_MAP_lt_i32, time, ree_expr_tensor(&b, lengths));
    return ree_lower_map(&b, within, REE_I32, &run->live);
}

// Views B (directions, 2 * n_gates * hidden) as two halves (directions, n_gates, 1, hidden).
static enum ree_status read_bias(struct ree_recurrent *run, struct ree_view *bias,
                                 struct ree_view *halves[2]) {
    struct ree_lower *lower = run->lower;
    halves[0] = halves[1] = NULL;
    if (!bias) return REE_OK;
    int64_t gates = run->n_gates;
    REE_TRY(require_shape(lower, bias, "B", 2,
                          (int64_t[]){run->n_directions, 2 * gates * run->hidden}));
    struct ree_view *split;
    REE_TRY(ree_lower_reshape(lower, bias, 5,
                              (int64_t[]){run->n_directions, 2, gates, 1, run->hidden}, &split));
    for (uint32_t i = 0; i < 2; i++)
        REE_TRY(select_at(lower, split, 1, i, &halves[i]));
    return REE_OK;
}

static enum ree_status read_peepholes(struct ree_recurrent *run, struct ree_view *p) {
    if (!p) return REE_OK;
    REE_TRY(require_shape(run->lower, p, "P", 2, (int64_t[]){run->n_directions, 3 * run->hidden}));
    return ree_lower_reshape(run->lower, p, 4, (int64_t[]){run->n_directions, 3, 1, run->hidden},
                             &run->peepholes);
}

// Computes x W + Wb for all steps at once; the rows are in the order of X.
static enum ree_status make_product(struct ree_recurrent *run, struct ree_view *x,
                                    struct ree_view *w, struct ree_view *wb) {
    struct ree_lower *lower = run->lower;
    int64_t gates = run->n_gates, width = gates * run->hidden;
    int64_t outer = x->dims[0], inner = x->dims[1];
    struct ree_view *rows, *columns, *product;
    REE_TRY(ree_lower_reshape(lower, x, 3, (int64_t[]){1, outer * inner, run->n_in}, &rows));
    REE_TRY(ree_lower_transpose(lower, w, (uint32_t[]){0, 2, 1}, &columns));
    REE_TRY(ree_lower_matmul(lower, rows, columns, &product));
    if (wb) {
        REE_TRY(ree_lower_reshape(lower, wb, 3, (int64_t[]){run->n_directions, 1, width}, &wb));
        REE_TRY(ree_rule_step2(lower, REE_MAP_add_f32, product, wb, &product));
    }
    int64_t dims[5] = {run->n_directions, outer, inner, gates, run->hidden};
    REE_TRY(ree_lower_reshape(lower, product, 5, dims, &run->product));
    // Reorder (directions, outer, inner, gates, hidden) to (directions, steps, gates, batch,
    // hidden).
    uint32_t time = run->batch_first ? 2 : 1, batch = run->batch_first ? 1 : 2;
    return ree_lower_transpose(lower, run->product, (uint32_t[]){0, time, 3, batch, 4},
                               &run->product);
}

// States

// Writes a state before the first step: as given, or zeros.
static enum ree_status start_state(struct ree_recurrent *run, struct ree_view *given,
                                   const char *name, uint32_t state) {
    struct ree_lower *lower = run->lower;
    int64_t dims[3] = {run->n_directions, run->batch, run->hidden};
    struct ree_view *at, *value;
    if (given) {
        int64_t as_given[3] = {dims[0], dims[1], dims[2]};
        if (run->batch_first) {
            as_given[0] = dims[1];
            as_given[1] = dims[0];
        }
        REE_TRY(require_shape(lower, given, name, 3, as_given));
        value = given;
        if (run->batch_first) REE_TRY(swap_leading(lower, given, &value));
    } else {
        struct ree_view *zero;
        REE_TRY(ree_lower_literal(lower, REE_F32, 0, NULL, &(float){0}, &zero));
        REE_TRY(ree_lower_broadcast(lower, zero, 3, dims, &value));
    }
    REE_TRY(select_at(lower, run->states, 0, 0, &at));
    REE_TRY(select_at(lower, at, 1, state, &at));
    return ree_lower_copy_into(lower, value, at);
}

static enum ree_status make_states(struct ree_recurrent *run, struct ree_view *const *in) {
    struct ree_lower *lower = run->lower;
    int64_t dims[5] = {run->n_steps + 1, run->n_directions, run->n_states, run->batch, run->hidden};
    REE_TRY(ree_lower_new(lower, REE_F32, 5, dims, &run->states));
    REE_TRY(start_state(run, ree_rule_input(lower, in, 5), "initial_h", 0));
    if (run->n_states == 1) return REE_OK;
    return start_state(run, ree_rule_input(lower, in, 6), "initial_c", 1);
}

// Steps

static enum ree_status directions_of(struct ree_recurrent_step *step, struct ree_view *t,
                                     struct ree_view **out) {
    return ree_lower_slice(step->run->lower, t, 0, step->first, 1, step->n, out);
}

static enum ree_status take_step(struct ree_recurrent_step *step, int64_t s,
                                 ree_recurrent_cell cell) {
    struct ree_recurrent *run = step->run;
    struct ree_lower *lower = run->lower;
    REE_TRY(at_step(run, run->product, step->first, step->n, s, &step->product));
    if (run->live) {
        REE_TRY(at_step(run, run->live, step->first, step->n, s, &step->live));
        REE_TRY(unsqueeze(lower, step->live, 2, &step->live));
    }
    REE_TRY(select_at(lower, run->states, 0, s, &step->old));
    REE_TRY(select_at(lower, run->states, 0, s + 1, &step->to));
    REE_TRY(directions_of(step, step->old, &step->old));
    REE_TRY(directions_of(step, step->to, &step->to));
    REE_TRY(select_at(lower, step->old, 1, 0, &step->h));
    if (run->n_states == 2) REE_TRY(select_at(lower, step->old, 1, 1, &step->c));
    return cell(step);
}

static enum ree_status take_steps(struct ree_recurrent *run, ree_recurrent_cell cell) {
    if (!has_elements(run)) return REE_OK;
    // Compute both directions in one dispatch, unless the batch is so large that packing each
    // matrix only once is faster on the device.
    bool both = run->same_functions && run->batch <= 8;
    uint32_t n = (uint32_t)run->n_directions, together = both ? n : 1;
    for (uint32_t first = 0; first < n; first += together) {
        struct ree_recurrent_step step = {
            .run = run, .first = first, .n = together, .functions = run->functions[first]};
        REE_TRY(directions_of(&step, run->r, &step.r));
        if (run->rb) REE_TRY(directions_of(&step, run->rb, &step.rb));
        if (run->peepholes) REE_TRY(directions_of(&step, run->peepholes, &step.peepholes));
        for (int64_t s = 0; s < run->n_steps; s++)
            REE_TRY(take_step(&step, s, cell));
    }
    return REE_OK;
}

// Outputs

// Views h of one direction in the order of time: (steps, batch, hidden).
static enum ree_status sequence_of(struct ree_recurrent *run, uint32_t direction,
                                   struct ree_view **out) {
    struct ree_lower *lower = run->lower;
    struct ree_view *view;
    REE_TRY(select_at(lower, run->states, 1, direction, &view));
    REE_TRY(select_at(lower, view, 1, 0, &view));
    int64_t n = run->n_steps;
    if (is_reverse(run, direction)) return ree_lower_slice(lower, view, 0, n, -1, n, out);
    return ree_lower_slice(lower, view, 0, n ? 1 : 0, 1, n, out);
}

// Makes Y (steps, directions, batch, hidden), zero after the end of each sequence.
static enum ree_status make_sequence(struct ree_recurrent *run, struct ree_view **out) {
    struct ree_lower *lower = run->lower;
    struct ree_view *y;
    if (run->n_directions == 1) {
        REE_TRY(sequence_of(run, 0, &y));
        REE_TRY(unsqueeze(lower, y, 1, &y));
    } else {
        int64_t dims[4] = {run->n_steps, run->n_directions, run->batch, run->hidden};
        REE_TRY(ree_lower_new(lower, REE_F32, 4, dims, &y));
        for (uint32_t d = 0; d < run->n_directions; d++) {
            struct ree_view *from, *to;
            REE_TRY(sequence_of(run, d, &from));
            REE_TRY(select_at(lower, y, 1, d, &to));
            REE_TRY(ree_lower_copy_into(lower, from, to));
        }
    }
    if (run->live) {
        struct ree_view *live;
        REE_TRY(ree_lower_reshape(lower, run->live, 4, (int64_t[]){run->n_steps, 1, run->batch, 1},
                                  &live));
        struct ree_expr_builder b;
        ree_expr_init(&b, lower, 4, y->dims);
        int value = ree_expr_tensor(&b, y), within = ree_expr_tensor(&b, live);
        value = ree_expr_select(&b, REE_F32, within, value, ree_expr_f32(&b, 0));
        REE_TRY(ree_lower_map(&b, value, REE_F32, &y));
    }
    *out = y;
    if (!run->batch_first) return REE_OK;
    return ree_lower_transpose(lower, y, (uint32_t[]){2, 0, 1, 3}, out);
}

static enum ree_status last_state(struct ree_recurrent *run, uint32_t state,
                                  struct ree_view **out) {
    REE_TRY(select_at(run->lower, run->states, 0, run->n_steps, out));
    REE_TRY(select_at(run->lower, *out, 1, state, out));
    return run->batch_first ? swap_leading(run->lower, *out, out) : REE_OK;
}

enum ree_status ree_recurrent_run(struct ree_recurrent *run, struct ree_lower *lower,
                                  const struct ree_recurrent_form *form, ree_recurrent_cell cell,
                                  struct ree_view *const *in, struct ree_view **out) {
    run->lower = lower;
    run->n_gates = form->n_gates;
    run->n_states = form->n_states;
    REE_TRY(read_attributes(run, form));
    REE_TRY(read_sizes(run, in[0], in[1], in[2]));
    REE_TRY(read_lengths(run, ree_rule_input(lower, in, 4)));
    struct ree_view *halves[2];
    REE_TRY(read_bias(run, ree_rule_input(lower, in, 3), halves));
    REE_TRY(read_peepholes(run, ree_rule_input(lower, in, 7)));
    run->rb = halves[1];
    REE_TRY(make_product(run, in[0], in[1], halves[0]));
    int64_t dims[4] = {run->n_directions, run->n_gates, run->hidden, run->hidden};
    REE_TRY(ree_lower_reshape(lower, in[2], 4, dims, &run->r));
    REE_TRY(make_states(run, in));
    REE_TRY(take_steps(run, cell));
    if (ree_rule_wants(lower, 0)) REE_TRY(make_sequence(run, &out[0]));
    if (ree_rule_wants(lower, 1)) REE_TRY(last_state(run, 0, &out[1]));
    if (ree_rule_wants(lower, 2)) REE_TRY(last_state(run, 1, &out[2]));
    return REE_OK;
}

// Parts of cells

enum ree_status ree_recurrent_gates(struct ree_recurrent_step *step, struct ree_view *t,
                                    uint32_t from, uint32_t stride, uint32_t count,
                                    struct ree_view **out) {
    return ree_lower_slice(step->run->lower, t, 1, from, stride, count, out);
}

enum ree_status ree_recurrent_gate(struct ree_recurrent_step *step, struct ree_view *t,
                                   uint32_t gate, struct ree_view **out) {
    return select_at(step->run->lower, t, 1, gate, out);
}

// Converts (n, gates, batch, hidden) to (n, batch, gates, hidden), and vice versa.
static enum ree_status swap_middle(struct ree_lower *lower, struct ree_view *t,
                                   struct ree_view **out) {
    return ree_lower_transpose(lower, t, (uint32_t[]){0, 2, 1, 3}, out);
}

// The sums are computed over (n, batch, gates, hidden), the product's memory layout, so that fusion
// can make them its epilogue.
enum ree_status ree_recurrent_product(struct ree_recurrent_step *step, struct ree_view *h,
                                      uint32_t from, uint32_t count, bool with_input,
                                      struct ree_view **out) {
    struct ree_recurrent *run = step->run;
    struct ree_lower *lower = run->lower;
    int64_t n = step->n, hidden = run->hidden, dims[4] = {n, run->batch, count, hidden};
    struct ree_view *r, *product, *bias = NULL, *input = NULL;
    REE_TRY(ree_recurrent_gates(step, step->r, from, 1, count, &r));
    REE_TRY(ree_lower_reshape(lower, r, 3, (int64_t[]){n, count * hidden, hidden}, &r));
    REE_TRY(ree_lower_transpose(lower, r, (uint32_t[]){0, 2, 1}, &r));
    REE_TRY(ree_lower_matmul(lower, h, r, &product));
    REE_TRY(ree_lower_reshape(lower, product, 4, dims, &product));
    if (step->rb) {
        REE_TRY(ree_recurrent_gates(step, step->rb, from, 1, count, &bias));
        REE_TRY(swap_middle(lower, bias, &bias));
    }
    if (with_input) {
        REE_TRY(ree_recurrent_gates(step, step->product, from, 1, count, &input));
        REE_TRY(swap_middle(lower, input, &input));
    }
    if (bias || input) {
        struct ree_expr_builder b;
        ree_expr_init(&b, lower, 4, dims);
        int value = ree_expr_tensor(&b, product);
        if (bias) value = ree_expr_op2(&b, REE_MAP_add_f32, value, ree_expr_tensor(&b, bias));
        if (input) value = ree_expr_op2(&b, REE_MAP_add_f32, ree_expr_tensor(&b, input), value);
        REE_TRY(ree_lower_map(&b, value, REE_F32, &product));
    }
    return swap_middle(lower, product, out);
}

int ree_recurrent_activate(struct ree_expr_builder *b, const struct ree_recurrent_step *step,
                           uint32_t function, int x) {
    const struct ree_recurrent *run = step->run;
    if (run->has_clip) {
        x = ree_expr_op2(b, REE_MAP_max_f32, x, ree_expr_f32(b, -run->clip));
        x = ree_expr_op2(b, REE_MAP_min_f32, x, ree_expr_f32(b, run->clip));
    }
    return ree_activation_expr(b, &step->functions[function], x);
}

void ree_recurrent_begin(struct ree_expr_builder *b, struct ree_recurrent_step *step) {
    ree_expr_init(b, step->run->lower, 4, step->to->dims);
}

int ree_recurrent_operand(struct ree_expr_builder *b, struct ree_view *t) {
    struct ree_view *view = t;
    if (b->status == REE_OK) b->status = unsqueeze(b->lower, t, 1, &view);
    return ree_expr_tensor(b, view);
}

enum ree_status ree_recurrent_finish(struct ree_recurrent_step *step, struct ree_expr_builder *b,
                                     int value) {
    if (step->live) {
        int within = ree_recurrent_operand(b, step->live), old = ree_expr_tensor(b, step->old);
        value = ree_expr_select(b, REE_F32, within, value, old);
    }
    return ree_lower_map_into(b, value, step->to);
}
