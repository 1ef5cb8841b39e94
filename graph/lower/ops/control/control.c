#include "graph/lower/ops/control/control.h"

#include <string.h>

enum ree_status ree_control_graph(struct ree_lower *lower, const char *name, size_t n_inputs,
                                  size_t min_outputs, const struct ree_graph **out) {
    const struct ree_attr *attr = ree_node_attr(lower->node, name);
    if (!attr) return ree_lower_fail(lower, REE_INVALID, "attribute '%s' is missing", name);
    if (attr->kind != REE_ATTR_GRAPH)
        return ree_lower_fail(lower, REE_INVALID, "attribute '%s' is not a graph", name);
    if (attr->graph->n_inputs != n_inputs)
        return ree_lower_fail(lower, REE_INVALID,
                              "attribute '%s': the graph has %zu inputs, expected %zu", name,
                              attr->graph->n_inputs, n_inputs);
    if (attr->graph->n_outputs < min_outputs)
        return ree_lower_fail(lower, REE_INVALID,
                              "attribute '%s': the graph has %zu outputs, expected at least %zu",
                              name, attr->graph->n_outputs, min_outputs);
    *out = attr->graph;
    return REE_OK;
}

enum ree_status ree_control_inputs(struct ree_lower *lower, struct ree_view *const *in,
                                   size_t first) {
    for (size_t i = first; i < lower->node->n_inputs; i++)
        if (!in[i]) return ree_lower_fail(lower, REE_INVALID, "input %zu is omitted", i);
    return REE_OK;
}

enum ree_status ree_control_bool(struct ree_lower *lower, struct ree_view *t, const char *what,
                                 bool *out) {
    char text[128];
    if (t->kind != REE_TENSOR || t->dtype != REE_BOOL || ree_view_count(t) != 1)
        return ree_lower_fail(lower, REE_INVALID, "%s is %s, expected one bool", what,
                              ree_view_text(t, text, sizeof text));
    const void *bytes;
    REE_TRY(ree_lower_host(lower, t, &bytes));
    *out = *(const uint8_t *)bytes != 0;
    return REE_OK;
}

enum ree_status ree_control_check_iterations(struct ree_lower *lower, int64_t n) {
    if (n <= REE_LOWER_MAX_ITERATIONS) return REE_OK;
    return ree_lower_fail(lower, REE_UNSUPPORTED, "runs more than %u iterations",
                          REE_LOWER_MAX_ITERATIONS);
}

enum ree_status ree_control_fail_at(struct ree_lower *lower, int64_t iteration) {
    return ree_fail_prefix(lower->err, "iteration %lld", (long long)iteration);
}

enum ree_status ree_control_add_item(struct ree_lower *lower, struct ree_control_items *list,
                                     struct ree_view *item, const char *what) {
    char text[128], other[128];
    if (item->kind != REE_TENSOR)
        return ree_lower_fail(lower, REE_INVALID, "scan output '%s' is %s, expected a tensor", what,
                              ree_view_text(item, text, sizeof text));
    if (list->n) {
        const struct ree_view *first = list->items[0];
        bool same = item->dtype == first->dtype && item->rank == first->rank;
        for (uint32_t i = 0; same && i < first->rank; i++)
            same = item->dims[i] == first->dims[i];
        if (!same)
            return ree_lower_fail(lower, REE_INVALID, "scan output '%s' is %s, but was %s before",
                                  what, ree_view_text(item, text, sizeof text),
                                  ree_view_text(first, other, sizeof other));
    }
    if (list->n == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 16;
        struct ree_view **grown = ree_arena_alloc_array(lower->arena, capacity, sizeof *grown);
        if (!grown) return ree_lower_no_memory(lower);
        if (list->n) memcpy(grown, list->items, list->n * sizeof *grown);
        list->items = grown;
        list->capacity = capacity;
    }
    list->items[list->n++] = item;
    return REE_OK;
}

// Computes the dims of n items that are stacked along a new axis.
static enum ree_status stacked_dims(struct ree_lower *lower, const struct ree_view *item,
                                    uint32_t axis, int64_t n, int64_t dims[REE_MAX_RANK]) {
    if (item->rank == REE_MAX_RANK)
        return ree_lower_fail(lower, REE_UNSUPPORTED,
                              "a scan output of rank %d; at most %d is supported", REE_MAX_RANK + 1,
                              REE_MAX_RANK);
    for (uint32_t i = 0; i <= item->rank; i++)
        dims[i] = i == axis ? n : item->dims[i < axis ? i : i - 1];
    return REE_OK;
}

enum ree_status ree_control_stack(struct ree_lower *lower, const struct ree_control_items *list,
                                  uint32_t axis, bool reverse, struct ree_view **out) {
    const struct ree_view *first = list->items[0];
    int64_t n = (int64_t)list->n, dims[REE_MAX_RANK];
    REE_TRY(stacked_dims(lower, first, axis, n, dims));
    struct ree_view *all;
    REE_TRY(ree_lower_new(lower, first->dtype, first->rank + 1, dims, &all));
    for (int64_t i = 0; i < n && ree_view_count(first); i++) {
        // Views the item with the new axis, which has size 1.
        struct ree_view *part, *item = ree_lower_view(lower, list->items[reverse ? n - 1 - i : i]);
        if (!item) return ree_lower_no_memory(lower);
        for (uint32_t d = item->rank; d > axis; d--) {
            item->dims[d] = item->dims[d - 1];
            item->strides[d] = item->strides[d - 1];
        }
        item->dims[axis] = 1;
        item->strides[axis] = 0;
        item->rank++;
        REE_TRY(ree_lower_slice(lower, all, axis, i, 1, 1, &part));
        REE_TRY(ree_lower_copy_into(lower, item, part));
    }
    *out = all;
    return REE_OK;
}

enum ree_status ree_control_empty(struct ree_lower *lower, const struct ree_view *item,
                                  uint32_t axis, struct ree_view **out) {
    int64_t dims[REE_MAX_RANK];
    REE_TRY(stacked_dims(lower, item, axis, 0, dims));
    return ree_lower_new(lower, item->dtype, item->rank + 1, dims, out);
}

enum ree_status ree_control_pick(struct ree_lower *lower, struct ree_view *t, uint32_t axis,
                                 int64_t i, struct ree_view **out) {
    struct ree_view *view;
    REE_TRY(ree_lower_slice(lower, t, axis, i, 1, 1, &view));
    view = ree_lower_view(lower, view);
    if (!view) return ree_lower_no_memory(lower);
    view->rank--;
    for (uint32_t d = axis; d < view->rank; d++) {
        view->dims[d] = view->dims[d + 1];
        view->strides[d] = view->strides[d + 1];
    }
    *out = view;
    return REE_OK;
}
