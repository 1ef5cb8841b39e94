// What the rules for control flow share. They run while binding: a condition or a number of
// iterations is brought to the host, and a body is lowered once for each iteration.
#ifndef REE_GRAPH_LOWER_CONTROL_CONTROL_H
#define REE_GRAPH_LOWER_CONTROL_CONTROL_H

#include "graph/lower/rules.h"

// The attribute `name` of the node, a graph with n_inputs inputs and at least min_outputs outputs.
enum ree_status ree_control_graph(struct ree_lower *lower, const char *name, size_t n_inputs,
                                  size_t min_outputs, const struct ree_graph **out);
// Fails where an input from `first` on is omitted.
enum ree_status ree_control_inputs(struct ree_lower *lower, struct ree_tval *const *in,
                                   size_t first);
// The one element of a bool tensor, brought to the host.
enum ree_status ree_control_bool(struct ree_lower *lower, struct ree_tval *t, const char *what,
                                 bool *out);
// "iteration 3" in front of the message, for the iteration that failed.
enum ree_status ree_control_fail_at(struct ree_lower *lower, int64_t iteration);

// The tensors that the iterations add to one scan output.
struct ree_control_items {
    size_t n, capacity;
    struct ree_tval **items;
};
// Adds an item; all have one type and one shape. `what` names the output.
enum ree_status ree_control_add_item(struct ree_lower *lower, struct ree_control_items *list,
                                     struct ree_tval *item, const char *what);
// The items one after the other along a new axis `axis`, the last first when `reverse`. n > 0.
enum ree_status ree_control_stack(struct ree_lower *lower, const struct ree_control_items *list,
                                  uint32_t axis, bool reverse, struct ree_tval **out);
// t[..., i, ...] along `axis`, which is dropped.
enum ree_status ree_control_pick(struct ree_lower *lower, struct ree_tval *t, uint32_t axis,
                                 int64_t i, struct ree_tval **out);
// The output that no iteration has added to: `item` with a new axis of size 0.
enum ree_status ree_control_empty(struct ree_lower *lower, const struct ree_tval *item,
                                  uint32_t axis, struct ree_tval **out);

#endif
