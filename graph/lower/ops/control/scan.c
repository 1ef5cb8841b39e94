// Scan: lowers the body once per position along the scanned axes, over the state that the previous
// position returned. The number of positions follows from shapes, so nothing is read back.
//
// Opset 8 scans each sequence of a batch separately, along axis 1 of all inputs and outputs, up to
// the sequence's length. After that length, a scan output is zero.
#include "graph/lower/ops/control/control.h"

#include <string.h>

struct scan {
    struct ree_lower *lower;
    const struct ree_graph *body;
    size_t n_state, n_scanned, n_scan; // state variables, scanned inputs, scan outputs
    const int64_t *in_axes, *in_directions, *out_axes, *out_directions; // NULL: all zero
    struct ree_view **in;   // inputs of the body: state, a slice of each scanned input
    struct ree_view **made; // outputs of the body: state, an item of each scan output
    struct ree_control_items *items;
};

// Reads a list that has one entry for each of n inputs or outputs.
static enum ree_status read_list(struct ree_lower *lower, const char *name, size_t n,
                                 const int64_t **out) {
    size_t length;
    *out = ree_rule_ints(lower, name, &length);
    if (*out && length != n)
        return ree_lower_fail(lower, REE_INVALID, "attribute '%s' has %zu entries, expected %zu",
                              name, length, n);
    return REE_OK;
}

static enum ree_status read_directions(struct ree_lower *lower, const char *name, size_t n,
                                       const int64_t **out) {
    REE_TRY(read_list(lower, name, n, out));
    for (size_t i = 0; *out && i < n; i++)
        if ((*out)[i] != 0 && (*out)[i] != 1)
            return ree_lower_fail(lower, REE_INVALID,
                                  "attribute '%s' has the entry %lld, expected 0 or 1", name,
                                  (long long)(*out)[i]);
    return REE_OK;
}

// Reads the body and the numbers of inputs and outputs, and allocates the arrays. n_given: number
// of the node's inputs, without the lengths of opset 8.
static enum ree_status start(struct scan *scan, size_t n_given) {
    struct ree_lower *lower = scan->lower;
    int64_t n = ree_rule_int(lower, "num_scan_inputs", 0);
    if (n < 1 || (uint64_t)n > n_given)
        return ree_lower_fail(lower, REE_INVALID,
                              "attribute 'num_scan_inputs' is %lld, expected 1 to %zu",
                              (long long)n, n_given);
    scan->n_scanned = (size_t)n;
    scan->n_state = n_given - scan->n_scanned;
    REE_TRY(ree_control_graph(lower, "body", n_given, scan->n_state, &scan->body));
    scan->n_scan = scan->body->n_outputs - scan->n_state;
    if (lower->node->n_outputs > scan->body->n_outputs)
        return ree_lower_fail(lower, REE_INVALID, "has %zu outputs, but its body computes %zu",
                              lower->node->n_outputs, scan->body->n_outputs);
    scan->in = ree_arena_alloc_array(lower->arena, n_given + 1, sizeof *scan->in);
    scan->made = ree_arena_alloc_array(lower->arena, scan->body->n_outputs + 1, sizeof *scan->made);
    scan->items = ree_arena_alloc_array(lower->arena, scan->n_scan + 1, sizeof *scan->items);
    return scan->in && scan->made && scan->items ? REE_OK : ree_lower_no_memory(lower);
}

static enum ree_status check_state(struct ree_lower *lower, const struct ree_view *before,
                                   const struct ree_view *after, const char *name) {
    bool same =
        before->kind == after->kind && before->dtype == after->dtype && before->rank == after->rank;
    for (uint32_t i = 0; same && i < before->rank; i++)
        same = before->dims[i] == after->dims[i];
    char text[128], other[128];
    if (same) return REE_OK;
    return ree_lower_fail(
        lower, REE_INVALID, "state '%s' was %s and becomes %s; its type and shape must not change",
        name, ree_view_text(before, text, sizeof text), ree_view_text(after, other, sizeof other));
}

// Runs one position. scan->in must contain the position's slices.
static enum ree_status iterate(struct scan *scan) {
    struct ree_lower *lower = scan->lower;
    REE_TRY(ree_lower_graph(lower, scan->body, scan->in, scan->made));
    for (size_t i = 0; i < scan->n_state; i++) {
        REE_TRY(check_state(lower, scan->in[i], scan->made[i], scan->body->outputs[i]->name));
        scan->in[i] = scan->made[i];
    }
    for (size_t i = 0; i < scan->n_scan; i++)
        REE_TRY(ree_control_add_item(lower, &scan->items[i], scan->made[scan->n_state + i],
                                     scan->body->outputs[scan->n_state + i]->name));
    return REE_OK;
}

// Takes from inputs[n_scanned] the slices for position i of n.
static enum ree_status take_slices(struct scan *scan, struct ree_view *const *inputs,
                                   const uint32_t *axes, int64_t i, int64_t n) {
    for (size_t k = 0; k < scan->n_scanned; k++) {
        bool backward = scan->in_directions && scan->in_directions[k];
        REE_TRY(ree_control_pick(scan->lower, inputs[k], axes[k], backward ? n - 1 - i : i,
                                 &scan->in[scan->n_state + k]));
    }
    return REE_OK;
}

// Finds the length of the scan: inputs[n_scanned] along axes[n_scanned] must all have the same
// length, which is the number of iterations.
static enum ree_status scan_length(struct scan *scan, struct ree_view *const *inputs,
                                   const uint32_t *axes, int64_t *out) {
    *out = inputs[0]->dims[axes[0]];
    for (size_t k = 1; k < scan->n_scanned; k++)
        if (inputs[k]->dims[axes[k]] != *out)
            return ree_lower_fail(scan->lower, REE_INVALID,
                                  "scanned input %zu has the length %lld, but input %zu has %lld",
                                  scan->n_state + k, (long long)inputs[k]->dims[axes[k]],
                                  scan->n_state, (long long)*out);
    return ree_control_check_iterations(scan->lower, *out);
}

// Runs the first `steps` of n positions, starting from the state in scan->in.
static enum ree_status run(struct scan *scan, struct ree_view *const *inputs, const uint32_t *axes,
                           int64_t steps, int64_t n) {
    for (size_t i = 0; i < scan->n_scan; i++)
        scan->items[i] = (struct ree_control_items){0};
    for (int64_t i = 0; i < steps; i++) {
        REE_TRY(take_slices(scan, inputs, axes, i, n));
        if (iterate(scan) != REE_OK) return ree_control_fail_at(scan->lower, i);
    }
    return REE_OK;
}

// If there is no position, derives one item of each scan output by a trial, over slices without
// known contents.
static enum ree_status try_items(struct scan *scan, struct ree_view *const *inputs,
                                 const uint32_t *axes) {
    struct ree_lower *lower = scan->lower;
    for (size_t k = 0; k < scan->n_scanned; k++) {
        int64_t dims[REE_MAX_RANK];
        uint32_t rank = 0;
        for (uint32_t d = 0; d < inputs[k]->rank; d++)
            if (d != axes[k]) dims[rank++] = inputs[k]->dims[d];
        REE_TRY(ree_lower_new(lower, inputs[k]->dtype, rank, dims, &scan->in[scan->n_state + k]));
    }
    if (ree_lower_trial(lower, scan->body, scan->in, scan->made) == REE_OK) return REE_OK;
    return ree_fail_prefix(
        lower->err, "there is nothing to scan, so the shapes of the scan outputs are unknown");
}

static enum ree_status output(struct scan *scan, size_t k, struct ree_view **out) {
    struct ree_lower *lower = scan->lower;
    const struct ree_control_items *list = &scan->items[k];
    const struct ree_view *item = list->n ? list->items[0] : scan->made[scan->n_state + k];
    uint32_t axis = 0;
    if (scan->out_axes) REE_TRY(ree_lower_axis(lower, scan->out_axes[k], item->rank + 1, &axis));
    bool backward = scan->out_directions && scan->out_directions[k];
    if (!list->n) return ree_control_empty(lower, item, axis, out);
    return ree_control_stack(lower, list, axis, backward, out);
}

enum ree_status ree_lower_op_scan(struct ree_lower *lower, struct ree_view *const *in,
                                  struct ree_view **out) {
    struct scan scan = {.lower = lower};
    REE_TRY(ree_control_inputs(lower, in, 0));
    REE_TRY(start(&scan, lower->node->n_inputs));
    REE_TRY(read_list(lower, "scan_input_axes", scan.n_scanned, &scan.in_axes));
    REE_TRY(read_directions(lower, "scan_input_directions", scan.n_scanned, &scan.in_directions));
    REE_TRY(read_list(lower, "scan_output_axes", scan.n_scan, &scan.out_axes));
    REE_TRY(read_directions(lower, "scan_output_directions", scan.n_scan, &scan.out_directions));
    struct ree_view *const *inputs = in + scan.n_state;
    uint32_t *axes = ree_arena_alloc_array(lower->arena, scan.n_scanned, sizeof *axes);
    if (!axes) return ree_lower_no_memory(lower);
    for (size_t k = 0; k < scan.n_scanned; k++)
        REE_TRY(
            ree_lower_axis(lower, scan.in_axes ? scan.in_axes[k] : 0, inputs[k]->rank, &axes[k]));
    for (size_t i = 0; i < scan.n_state; i++)
        scan.in[i] = in[i];
    int64_t n;
    REE_TRY(scan_length(&scan, inputs, axes, &n));
    REE_TRY(run(&scan, inputs, axes, n, n));
    if (n == 0) REE_TRY(try_items(&scan, inputs, axes));
    for (size_t i = 0; i < lower->node->n_outputs; i++) {
        if (!lower->node->outputs[i]) continue;
        if (i < scan.n_state)
            out[i] = scan.in[i];
        else
            REE_TRY(output(&scan, i - scan.n_state, &out[i]));
    }
    return REE_OK;
}

// Opset 8

// Reads the length of each sequence of the batch.
static enum ree_status read_lengths(struct ree_lower *lower, struct ree_view *t, int64_t n_batch,
                                    int64_t n, const int64_t **out) {
    size_t count;
    REE_TRY(ree_lower_host_ints(lower, t, "sequence_lens", out, &count));
    if ((uint64_t)n_batch != count)
        return ree_lower_fail(lower, REE_INVALID, "sequence_lens has %zu entries, expected %lld",
                              count, (long long)n_batch);
    for (size_t i = 0; i < count; i++)
        if ((*out)[i] < 0 || (*out)[i] > n)
            return ree_lower_fail(lower, REE_INVALID,
                                  "sequence_lens has the entry %lld, expected 0 to %lld",
                                  (long long)(*out)[i], (long long)n);
    return REE_OK;
}

// Appends items of zeros to the scan outputs of one sequence, up to n items.
static enum ree_status pad_items(struct scan *scan, int64_t n) {
    struct ree_lower *lower = scan->lower;
    for (size_t k = 0; k < scan->n_scan; k++) {
        const struct ree_control_items *list = &scan->items[k];
        const struct ree_view *item = list->n ? list->items[0] : scan->made[scan->n_state + k];
        int64_t count = ree_view_count(item);
        void *zeros =
            ree_arena_alloc_array(lower->arena, (size_t)count + 1, ree_dtype_size(item->dtype));
        struct ree_view *blank;
        if (!zeros) return ree_lower_no_memory(lower);
        REE_TRY(ree_lower_literal(lower, item->dtype, item->rank, item->dims, zeros, &blank));
        while (list->n < (uint64_t)n)
            REE_TRY(ree_control_add_item(lower, &scan->items[k], blank,
                                         scan->body->outputs[scan->n_state + k]->name));
    }
    return REE_OK;
}

// Runs sequence b of the batch and appends its results to results[output].
static enum ree_status run_sequence(struct scan *scan, struct ree_view *const *in, int64_t b,
                                    int64_t steps, int64_t n, struct ree_control_items *results) {
    struct ree_lower *lower = scan->lower;
    struct ree_view **inputs = ree_arena_alloc_array(lower->arena, scan->n_scanned, sizeof *inputs);
    uint32_t *axes = ree_arena_alloc_array(lower->arena, scan->n_scanned, sizeof *axes); // all 0
    if (!inputs || !axes) return ree_lower_no_memory(lower);
    for (size_t i = 0; i < scan->n_state; i++)
        REE_TRY(ree_control_pick(lower, in[i], 0, b, &scan->in[i]));
    for (size_t k = 0; k < scan->n_scanned; k++)
        REE_TRY(ree_control_pick(lower, in[scan->n_state + k], 0, b, &inputs[k]));
    REE_TRY(run(scan, inputs, axes, steps, n));
    if (steps == 0) REE_TRY(try_items(scan, inputs, axes));
    if (steps < n) REE_TRY(pad_items(scan, n));
    for (size_t i = 0; i < scan->body->n_outputs; i++) {
        struct ree_view *result = scan->in[i];
        if (i >= scan->n_state) REE_TRY(output(scan, i - scan->n_state, &result));
        REE_TRY(ree_control_add_item(lower, &results[i], result, scan->body->outputs[i]->name));
    }
    return REE_OK;
}

enum ree_status ree_lower_op_scan_8(struct ree_lower *lower, struct ree_view *const *in,
                                    struct ree_view **out) {
    struct scan scan = {.lower = lower};
    REE_TRY(ree_control_inputs(lower, in, 1));
    REE_TRY(start(&scan, lower->node->n_inputs ? lower->node->n_inputs - 1 : 0));
    REE_TRY(read_directions(lower, "directions", scan.n_scanned, &scan.in_directions));
    struct ree_view *const *given = in + 1, *const *inputs = given + scan.n_state;
    char text[128];
    for (size_t i = 0; i < scan.n_state + scan.n_scanned; i++)
        if (given[i]->rank < (i < scan.n_state ? 1 : 2) || given[i]->dims[0] != given[0]->dims[0])
            return ree_lower_fail(lower, REE_INVALID, "input %zu is %s, expected a batch of %lld%s",
                                  i + 1, ree_view_text(given[i], text, sizeof text),
                                  given[0]->rank ? (long long)given[0]->dims[0] : 1LL,
                                  i < scan.n_state ? "" : " sequences");
    int64_t n_batch = given[0]->dims[0], n;
    uint32_t *axes = ree_arena_alloc_array(lower->arena, scan.n_scanned, sizeof *axes);
    struct ree_control_items *results =
        ree_arena_alloc_array(lower->arena, scan.body->n_outputs + 1, sizeof *results);
    if (!axes || !results) return ree_lower_no_memory(lower);
    for (size_t k = 0; k < scan.n_scanned; k++)
        axes[k] = 1;
    REE_TRY(scan_length(&scan, inputs, axes, &n));
    const int64_t *lengths = NULL;
    if (in[0]) REE_TRY(read_lengths(lower, in[0], n_batch, n, &lengths));
    if (n_batch == 0) return ree_lower_fail(lower, REE_UNSUPPORTED, "a batch without sequences");
    for (int64_t b = 0; b < n_batch; b++)
        if (run_sequence(&scan, given, b, lengths ? lengths[b] : n, n, results) != REE_OK)
            return ree_fail_prefix(lower->err, "sequence %lld", (long long)b);
    for (size_t i = 0; i < lower->node->n_outputs; i++)
        if (lower->node->outputs[i])
            REE_TRY(ree_control_stack(lower, &results[i], 0, false, &out[i]));
    return REE_OK;
}
