// Sequences: lists of tensors that are known at bind time, so building one needs no dispatch.
#include "graph/lower/ops/control/control.h"

#include <string.h>

static enum ree_status require_sequence(struct ree_lower *lower, const struct ree_view *t,
                                        size_t index) {
    char text[128];
    if (t->kind == REE_SEQUENCE) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "input %zu is %s, expected a sequence", index,
                          ree_view_text(t, text, sizeof text));
}

static enum ree_status require_tensor(struct ree_lower *lower, const struct ree_view *t,
                                      size_t index) {
    char text[128];
    if (t->kind == REE_TENSOR) return REE_OK;
    return ree_lower_fail(lower, REE_INVALID, "input %zu is %s, expected a tensor", index,
                          ree_view_text(t, text, sizeof text));
}

// Reads a position in [-n, last]; negative positions count from the end. If the input is omitted,
// the position is `fallback`.
static enum ree_status read_position(struct ree_lower *lower, struct ree_view *t, size_t n,
                                     int64_t last, int64_t fallback, size_t *out) {
    const int64_t *values;
    size_t count;
    int64_t position = fallback;
    if (t) {
        REE_TRY(require_tensor(lower, t, lower->node->n_inputs - 1));
        REE_TRY(ree_lower_host_ints(lower, t, "the position", &values, &count));
        if (count != 1)
            return ree_lower_fail(lower, REE_INVALID, "the position has %zu elements, expected 1",
                                  count);
        position = values[0];
    }
    if (position < -(int64_t)n || position > last)
        return ree_lower_fail(lower, REE_INVALID,
                              "position %lld is outside a sequence of %zu items",
                              (long long)position, n);
    *out = (size_t)(position < 0 ? position + (int64_t)n : position);
    return REE_OK;
}

enum ree_status ree_lower_op_sequenceconstruct(struct ree_lower *lower, struct ree_view *const *in,
                                               struct ree_view **out) {
    size_t n = lower->node->n_inputs;
    REE_TRY(ree_control_inputs(lower, in, 0));
    for (size_t i = 0; i < n; i++) {
        REE_TRY(require_tensor(lower, in[i], i));
        if (in[i]->dtype != in[0]->dtype)
            return ree_lower_fail(lower, REE_INVALID,
                                  "input %zu has type %s, but input 0 has type %s", i,
                                  ree_dtype_name(in[i]->dtype), ree_dtype_name(in[0]->dtype));
    }
    return ree_lower_sequence(lower, in[0]->dtype, n, in, &out[0]);
}

enum ree_status ree_lower_op_sequenceempty(struct ree_lower *lower, struct ree_view *const *in,
                                           struct ree_view **out) {
    (void)in;
    int64_t dtype = ree_rule_int(lower, "dtype", REE_F32);
    if (dtype < 1 || dtype > 64 || !ree_dtype_size((enum ree_dtype)dtype))
        return ree_lower_fail(lower, REE_UNSUPPORTED, "attribute 'dtype' is %lld (%s)",
                              (long long)dtype, ree_onnx_type_name(dtype));
    return ree_lower_sequence(lower, (enum ree_dtype)dtype, 0, NULL, &out[0]);
}

enum ree_status ree_lower_op_sequenceinsert(struct ree_lower *lower, struct ree_view *const *in,
                                            struct ree_view **out) {
    const struct ree_view *list = in[0];
    REE_TRY(require_sequence(lower, list, 0));
    REE_TRY(require_tensor(lower, in[1], 1));
    size_t n = list->n_items, at;
    if (in[1]->dtype != list->dtype)
        return ree_lower_fail(lower, REE_INVALID, "cannot insert %s into a sequence of %s",
                              ree_dtype_name(in[1]->dtype), ree_dtype_name(list->dtype));
    REE_TRY(read_position(lower, ree_rule_input(lower, in, 2), n, (int64_t)n, (int64_t)n, &at));
    struct ree_view **items = ree_arena_alloc_array(lower->arena, n + 1, sizeof *items);
    if (!items) return ree_lower_no_memory(lower);
    for (size_t i = 0; i < n; i++)
        items[i < at ? i : i + 1] = list->items[i];
    items[at] = in[1];
    return ree_lower_sequence(lower, list->dtype, n + 1, items, &out[0]);
}

enum ree_status ree_lower_op_sequenceerase(struct ree_lower *lower, struct ree_view *const *in,
                                           struct ree_view **out) {
    const struct ree_view *list = in[0];
    REE_TRY(require_sequence(lower, list, 0));
    size_t n = list->n_items, at;
    REE_TRY(read_position(lower, ree_rule_input(lower, in, 1), n, (int64_t)n - 1, -1, &at));
    struct ree_view **items = ree_arena_alloc_array(lower->arena, n, sizeof *items);
    if (!items) return ree_lower_no_memory(lower);
    for (size_t i = 0; i + 1 < n; i++)
        items[i] = list->items[i < at ? i : i + 1];
    return ree_lower_sequence(lower, list->dtype, n - 1, items, &out[0]);
}

enum ree_status ree_lower_op_sequenceat(struct ree_lower *lower, struct ree_view *const *in,
                                        struct ree_view **out) {
    REE_TRY(require_sequence(lower, in[0], 0));
    size_t n = in[0]->n_items, at;
    REE_TRY(read_position(lower, in[1], n, (int64_t)n - 1, 0, &at));
    out[0] = in[0]->items[at];
    return REE_OK;
}

enum ree_status ree_lower_op_sequencelength(struct ree_lower *lower, struct ree_view *const *in,
                                            struct ree_view **out) {
    REE_TRY(require_sequence(lower, in[0], 0));
    int64_t n = (int64_t)in[0]->n_items;
    return ree_lower_literal(lower, REE_I64, 0, NULL, &n, &out[0]);
}

// Reads the sizes of the parts, from a list, or from one size for all parts but the last.
static enum ree_status part_sizes(struct ree_lower *lower, struct ree_view *split, int64_t dim,
                                  const int64_t **out, size_t *out_n) {
    size_t n;
    const int64_t *given;
    REE_TRY(require_tensor(lower, split, 1));
    REE_TRY(ree_lower_host_ints(lower, split, "split", &given, &n));
    if (split->rank == 1) {
        int64_t total = 0;
        bool fits = true;
        for (size_t i = 0; fits && i < n; i++)
            fits = given[i] >= 0 && !__builtin_add_overflow(total, given[i], &total);
        if (!fits || total != dim)
            return ree_lower_fail(lower, REE_INVALID,
                                  "the sizes in split do not add up to %lld, the size of the axis",
                                  (long long)dim);
        *out = given;
        *out_n = n;
        return REE_OK;
    }
    if (split->rank != 0 || given[0] < 1)
        return ree_lower_fail(lower, REE_INVALID,
                              "split must be a list of sizes or one size of at least 1");
    n = (size_t)(dim / given[0] + (dim % given[0] != 0));
    int64_t *sizes = ree_arena_alloc_array(lower->arena, n + 1, sizeof *sizes);
    if (!sizes) return ree_lower_no_memory(lower);
    for (size_t i = 0; i < n; i++)
        sizes[i] = i + 1 < n ? given[0] : dim - (int64_t)(n - 1) * given[0];
    *out = sizes;
    *out_n = n;
    return REE_OK;
}

enum ree_status ree_lower_op_splittosequence(struct ree_lower *lower, struct ree_view *const *in,
                                             struct ree_view **out) {
    struct ree_view *t = in[0], *split = ree_rule_input(lower, in, 1);
    REE_TRY(require_tensor(lower, t, 0));
    uint32_t axis;
    REE_TRY(ree_lower_axis(lower, ree_rule_int(lower, "axis", 0), t->rank, &axis));
    // Without the input split, each item is a single slice. Only such items may drop the axis.
    bool drop = !split && !ree_rule_int(lower, "keepdims", 1);
    const int64_t *sizes = NULL;
    size_t n = (size_t)t->dims[axis];
    if (split) REE_TRY(part_sizes(lower, split, t->dims[axis], &sizes, &n));
    // Each item takes host memory, even if the input is one repeated element.
    if (n > REE_LOWER_MAX_ITERATIONS)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "a sequence of %zu items; at most %u are supported", n,
                              REE_LOWER_MAX_ITERATIONS);
    struct ree_view **items = ree_arena_alloc_array(lower->arena, n + 1, sizeof *items);
    if (!items) return ree_lower_no_memory(lower);
    int64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t size = sizes ? sizes[i] : 1;
        if (drop)
            REE_TRY(ree_control_pick(lower, t, axis, at, &items[i]));
        else
            REE_TRY(ree_lower_slice(lower, t, axis, size ? at : 0, 1, size, &items[i]));
        at += size;
    }
    return ree_lower_sequence(lower, t->dtype, n, items, &out[0]);
}

static enum ree_status concatenate(struct ree_lower *lower, const struct ree_view *list,
                                   uint32_t axis, struct ree_view **out) {
    const struct ree_view *first = list->items[0];
    int64_t dims[REE_MAX_RANK], at = 0;
    memcpy(dims, first->dims, sizeof dims);
    for (size_t i = 1; i < list->n_items; i++) {
        const struct ree_view *t = list->items[i];
        bool fits = t->rank == first->rank;
        for (uint32_t d = 0; fits && d < t->rank; d++)
            fits = d == axis || t->dims[d] == first->dims[d];
        char text[128], other[128];
        if (!fits || __builtin_add_overflow(dims[axis], t->dims[axis], &dims[axis]))
            return ree_lower_fail(lower, REE_INVALID,
                                  "cannot concatenate item %zu, %s, to %s along axis %u", i,
                                  ree_view_text(t, text, sizeof text),
                                  ree_view_text(first, other, sizeof other), axis);
    }
    struct ree_view *joined, *part;
    REE_TRY(ree_lower_new(lower, list->dtype, first->rank, dims, &joined));
    for (size_t i = 0; i < list->n_items; i++) {
        int64_t size = list->items[i]->dims[axis];
        if (size == 0) continue;
        REE_TRY(ree_lower_slice(lower, joined, axis, at, 1, size, &part));
        REE_TRY(ree_lower_copy_into(lower, list->items[i], part));
        at += size;
    }
    *out = joined;
    return REE_OK;
}

enum ree_status ree_lower_op_concatfromsequence(struct ree_lower *lower, struct ree_view *const *in,
                                                struct ree_view **out) {
    const struct ree_view *list = in[0];
    REE_TRY(require_sequence(lower, list, 0));
    if (!list->n_items)
        return ree_lower_fail(lower, REE_INVALID, "an empty sequence cannot be concatenated");
    if (!ree_node_attr(lower->node, "axis"))
        return ree_lower_fail(lower, REE_INVALID, "attribute 'axis' is missing");
    bool new_axis = ree_rule_int(lower, "new_axis", 0) != 0;
    uint32_t axis;
    REE_TRY(ree_lower_axis(lower, ree_rule_int(lower, "axis", 0), list->items[0]->rank + new_axis,
                           &axis));
    if (!new_axis) return concatenate(lower, list, axis, &out[0]);
    struct ree_control_items items = {0};
    for (size_t i = 0; i < list->n_items; i++)
        REE_TRY(ree_control_add_item(lower, &items, list->items[i], "the sequence"));
    return ree_control_stack(lower, &items, axis, false, &out[0]);
}

// The type of the items that a body would return, without running it: that of the value of an
// enclosing graph that it returns, or else the one that it declares for its output, if any.
static enum ree_status empty_map_dtype(struct ree_lower *lower, const struct ree_graph *body,
                                       size_t i, enum ree_dtype *out) {
    struct ree_view *outer;
    REE_TRY(ree_lower_outer_output(lower, body, i, &outer));
    if (outer) REE_TRY(require_tensor(lower, outer, i));
    *out = outer ? outer->dtype : body->output_types ? body->output_types[i].dtype : REE_DTYPE_NONE;
    return REE_OK;
}

// Applies the body to each item of the first sequence, together with the items at the same position
// of the other sequences. Input tensors are the same for all items.
enum ree_status ree_lower_op_sequencemap(struct ree_lower *lower, struct ree_view *const *in,
                                         struct ree_view **out) {
    size_t n_in = lower->node->n_inputs, n_out = lower->node->n_outputs;
    const struct ree_graph *body;
    REE_TRY(ree_control_inputs(lower, in, 0));
    REE_TRY(require_sequence(lower, in[0], 0));
    REE_TRY(ree_control_graph(lower, "body", n_in, n_out, &body));
    size_t n = in[0]->n_items;
    REE_TRY(ree_control_check_iterations(lower, (int64_t)n));
    for (size_t i = 1; i < n_in; i++)
        if (in[i]->kind == REE_SEQUENCE && in[i]->n_items != n)
            return ree_lower_fail(lower, REE_INVALID,
                                  "input %zu is a sequence of %zu items, but input 0 has %zu", i,
                                  in[i]->n_items, n);
    struct ree_view **given = ree_arena_alloc_array(lower->arena, n_in, sizeof *given);
    struct ree_view **made = ree_arena_alloc_array(lower->arena, body->n_outputs + 1, sizeof *made);
    struct ree_view **lists = ree_arena_alloc_array(lower->arena, n * n_out + 1, sizeof *lists);
    if (!given || !made || !lists) return ree_lower_no_memory(lower);
    for (size_t k = 0; k < n; k++) {
        for (size_t i = 0; i < n_in; i++)
            given[i] = in[i]->kind == REE_SEQUENCE ? in[i]->items[k] : in[i];
        if (ree_lower_graph(lower, body, given, made) != REE_OK)
            return ree_control_fail_at(lower, (int64_t)k);
        for (size_t i = 0; i < n_out; i++) {
            REE_TRY(require_tensor(lower, made[i], i));
            if (k && made[i]->dtype != lists[i * n]->dtype)
                return ree_lower_fail(
                    lower, REE_INVALID, "output %zu was %s before and is %s for item %zu", i,
                    ree_dtype_name(lists[i * n]->dtype), ree_dtype_name(made[i]->dtype), k);
            lists[i * n + k] = made[i];
        }
    }
    for (size_t i = 0; i < n_out; i++) {
        enum ree_dtype dtype = REE_DTYPE_NONE;
        if (n)
            dtype = lists[i * n]->dtype;
        else
            REE_TRY(empty_map_dtype(lower, body, i, &dtype));
        REE_TRY(ree_lower_sequence(lower, dtype, n, &lists[i * n], &out[i]));
    }
    return REE_OK;
}

// Optional values: present, represented by the value itself, or absent.

enum ree_status ree_lower_op_optional(struct ree_lower *lower, struct ree_view *const *in,
                                      struct ree_view **out) {
    out[0] = ree_rule_input(lower, in, 0);
    if (out[0]) return REE_OK;
    const struct ree_attr *type = ree_node_attr(lower->node, "type");
    if (!type || type->kind != REE_ATTR_TYPE)
        return ree_lower_fail(lower, REE_INVALID,
                              "has neither an input nor the attribute 'type' of the absent value");
    return ree_lower_absent(lower, type->tensor->dtype, &out[0]);
}

enum ree_status ree_lower_op_optionalhaselement(struct ree_lower *lower, struct ree_view *const *in,
                                                struct ree_view **out) {
    const struct ree_view *t = ree_rule_input(lower, in, 0);
    uint8_t there = t && t->kind != REE_ABSENT;
    return ree_lower_literal(lower, REE_BOOL, 0, NULL, &there, &out[0]);
}

enum ree_status ree_lower_op_optionalgetelement(struct ree_lower *lower, struct ree_view *const *in,
                                                struct ree_view **out) {
    if (in[0]->kind == REE_ABSENT)
        return ree_lower_fail(lower, REE_INVALID, "the optional value is absent");
    out[0] = in[0];
    return REE_OK;
}
