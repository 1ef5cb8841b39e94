// Loop: lowers the body once per iteration, over the values that the previous iteration returned.
//
// The iteration count and the condition are host-known, or are brought to the host at bind time. If
// the device computes the condition, each iteration runs the program so far and reads the condition
// back.
#include "graph/lower/ops/control/control.h"

#include <string.h>

struct loop {
    struct ree_lower *lower;
    const struct ree_graph *body;
    size_t n_carried, n_scan;
    bool has_condition;     // false: the body's condition is ignored
    struct ree_view **in;   // inputs of the body: iteration number, condition, carried values
    struct ree_view **made; // outputs of the body: condition, carried values, scan outputs
    struct ree_control_items *scan;
};

static enum ree_status read_trip_count(struct ree_lower *lower, struct ree_view *t, int64_t *out) {
    const int64_t *values;
    size_t n;
    *out = INT64_MAX;
    if (!t) return REE_OK;
    REE_TRY(ree_lower_host_ints(lower, t, "the trip count", &values, &n));
    if (n != 1)
        return ree_lower_fail(lower, REE_INVALID, "the trip count has %zu elements, expected 1", n);
    *out = values[0];
    return REE_OK;
}

static enum ree_status start(struct loop *loop, struct ree_view *const *in) {
    struct ree_lower *lower = loop->lower;
    const struct ree_node *node = lower->node;
    loop->n_carried = node->n_inputs > 2 ? node->n_inputs - 2 : 0;
    REE_TRY(
        ree_control_graph(lower, "body", 2 + loop->n_carried, 1 + loop->n_carried, &loop->body));
    loop->n_scan = loop->body->n_outputs - 1 - loop->n_carried;
    if (node->n_outputs > loop->n_carried + loop->n_scan)
        return ree_lower_fail(
            lower, REE_INVALID,
            "has %zu outputs, but its body computes %zu (%zu carried, %zu scanned)",
            node->n_outputs, loop->n_carried + loop->n_scan, loop->n_carried, loop->n_scan);
    loop->in = ree_arena_alloc_array(lower->arena, loop->body->n_inputs, sizeof *loop->in);
    loop->made = ree_arena_alloc_array(lower->arena, loop->body->n_outputs, sizeof *loop->made);
    loop->scan = ree_arena_alloc_array(lower->arena, loop->n_scan + 1, sizeof *loop->scan);
    if (!loop->in || !loop->made || !loop->scan) return ree_lower_no_memory(lower);
    REE_TRY(ree_control_inputs(lower, in, 2));
    for (size_t i = 0; i < loop->n_carried; i++)
        loop->in[2 + i] = in[2 + i];
    loop->has_condition = ree_rule_input(lower, in, 1) != NULL;
    loop->in[1] = ree_rule_input(lower, in, 1);
    uint8_t yes = 1;
    if (!loop->in[1]) REE_TRY(ree_lower_literal(lower, REE_BOOL, 0, NULL, &yes, &loop->in[1]));
    return REE_OK;
}

static enum ree_status set_iteration(struct loop *loop, int64_t i) {
    return ree_lower_literal(loop->lower, REE_I64, 0, NULL, &i, &loop->in[0]);
}

static enum ree_status iterate(struct loop *loop) {
    struct ree_lower *lower = loop->lower;
    REE_TRY(ree_lower_graph(lower, loop->body, loop->in, loop->made));
    for (size_t i = 0; i < loop->n_carried; i++) {
        const struct ree_view *before = loop->in[2 + i], *after = loop->made[1 + i];
        bool absent = after->kind == REE_ABSENT || before->kind == REE_ABSENT;
        if (!absent && (after->dtype != before->dtype || after->kind != before->kind))
            return ree_lower_fail(
                lower, REE_INVALID,
                "carried value '%s' was %s and becomes %s; its type must not change",
                loop->body->outputs[1 + i]->name, ree_dtype_name(before->dtype),
                ree_dtype_name(after->dtype));
        loop->in[2 + i] = loop->made[1 + i];
    }
    for (size_t i = 0; i < loop->n_scan; i++) {
        size_t at = 1 + loop->n_carried + i;
        REE_TRY(ree_control_add_item(lower, &loop->scan[i], loop->made[at],
                                     loop->body->outputs[at]->name));
    }
    loop->in[1] = loop->made[0];
    return REE_OK;
}

// Returns whether the body declares the type and the whole shape of output `at`.
static bool is_declared(const struct ree_graph *body, size_t at, struct ree_view *out_item) {
    const struct ree_value *type = body->output_types ? &body->output_types[at] : NULL;
    if (!type || !type->has_shape || type->dtype == REE_DTYPE_NONE) return false;
    *out_item = (struct ree_view){.kind = type->kind, .dtype = type->dtype, .rank = type->rank};
    for (uint32_t d = 0; d < type->rank; d++) {
        out_item->dims[d] = type->dims[d];
        if (type->dims[d] < 0) return false;
    }
    return true;
}

// Makes a scan output after zero iterations. The item has the type and shape of the value that the
// body returns, if an enclosing graph has made it; or else those that the body declares for its
// output; or else those that a trial derives.
static enum ree_status empty_output(struct loop *loop, size_t i, struct ree_view **out) {
    struct ree_lower *lower = loop->lower;
    const size_t at = 1 + loop->n_carried + i;
    const char *name = loop->body->outputs[at]->name;
    struct ree_view *item, declared;
    char text[128];
    REE_TRY(ree_lower_outer_output(lower, loop->body, at, &item));
    if (!item && is_declared(loop->body, at, &declared)) item = &declared;
    if (!item) {
        REE_TRY(set_iteration(loop, 0));
        if (ree_lower_trial(lower, loop->body, loop->in, loop->made) != REE_OK)
            return ree_fail_prefix(
                lower->err,
                "the loop runs no iteration, so the shape of the scan output '%s' is unknown",
                name);
        item = loop->made[at];
    }
    if (item->kind != REE_TENSOR)
        return ree_lower_fail(lower, REE_INVALID, "scan output '%s' is %s, expected a tensor", name,
                              ree_view_text(item, text, sizeof text));
    return ree_control_empty(lower, item, 0, out);
}

enum ree_status ree_lower_op_loop(struct ree_lower *lower, struct ree_view *const *in,
                                  struct ree_view **out) {
    struct loop loop = {.lower = lower};
    int64_t count;
    bool condition = true;
    REE_TRY(start(&loop, in));
    REE_TRY(read_trip_count(lower, ree_rule_input(lower, in, 0), &count));
    // Without a condition, the number of iterations is known before the first one takes memory.
    if (!loop.has_condition) REE_TRY(ree_control_check_iterations(lower, count));
    for (int64_t i = 0; i < count; i++) {
        if (loop.has_condition)
            REE_TRY(ree_control_bool(lower, loop.in[1], "the condition", &condition));
        if (!condition) break;
        REE_TRY(ree_control_check_iterations(lower, i + 1));
        REE_TRY(set_iteration(&loop, i));
        if (iterate(&loop) != REE_OK) return ree_control_fail_at(lower, i);
    }
    for (size_t i = 0; i < lower->node->n_outputs; i++) {
        if (!lower->node->outputs[i]) continue;
        size_t k = i - loop.n_carried;
        if (i < loop.n_carried)
            out[i] = loop.in[2 + i];
        else if (loop.scan[k].n)
            REE_TRY(ree_control_stack(lower, &loop.scan[k], 0, false, &out[i]));
        else
            REE_TRY(empty_output(&loop, k, &out[i]));
    }
    return REE_OK;
}
