// Shared by the rules for control flow. These rules run at bind time: they bring conditions and
// iteration counts to the host, and lower a body once per iteration.
#ifndef REE_GRAPH_LOWER_OPS_CONTROL_CONTROL_H
#define REE_GRAPH_LOWER_OPS_CONTROL_CONTROL_H

#include "graph/lower/ops/rules.h"

// Returns the attribute `name` of the node: a graph with n_inputs inputs and at least min_outputs
// outputs.
enum ree_status ree_control_graph(struct ree_lower *lower, const char *name, size_t n_inputs,
                                  size_t min_outputs, const struct ree_graph **out);
// Fails if an input from index `first` on is omitted.
enum ree_status ree_control_inputs(struct ree_lower *lower, struct ree_view *const *in,
                                   size_t first);
// Brings the single element of a bool tensor to the host.
enum ree_status ree_control_bool(struct ree_lower *lower, struct ree_view *t, const char *what,
                                 bool *out);
// Prefixes the message with "iteration 3", the iteration that failed.
enum ree_status ree_control_fail_at(struct ree_lower *lower, int64_t iteration);

// The tensors that the iterations append to one scan output.
struct ree_control_items {
    size_t n, capacity;
    struct ree_view **items;
};
// Appends an item. All items must have the same type and shape. `what` names the output.
enum ree_status ree_control_add_item(struct ree_lower *lower, struct ree_control_items *list,
                                     struct ree_view *item, const char *what);
// Stacks the items along a new axis `axis`, in reverse order if `reverse`. n must be > 0.
enum ree_status ree_control_stack(struct ree_lower *lower, const struct ree_control_items *list,
                                  uint32_t axis, bool reverse, struct ree_view **out);
// t[..., i, ...] along `axis`; the axis is removed.
enum ree_status ree_control_pick(struct ree_lower *lower, struct ree_view *t, uint32_t axis,
                                 int64_t i, struct ree_view **out);
// A scan output without iterations: the shape of `item` with a new axis of size 0.
enum ree_status ree_control_empty(struct ree_lower *lower, const struct ree_view *item,
                                  uint32_t axis, struct ree_view **out);

#endif
