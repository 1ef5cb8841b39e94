// Shared by the rules for control flow (If, Loop, Scan). These rules run at bind time: they bring
// conditions and iteration counts to the host, and lower a body once per iteration.
#ifndef REE_GRAPH_LOWER_OPS_CONTROL_CONTROL_H
#define REE_GRAPH_LOWER_OPS_CONTROL_CONTROL_H

#include "graph/lower/ops/rules.h"

// Reads the attribute `name` of the node, a graph. Fails unless it has n_inputs inputs and at least
// min_outputs outputs.
enum ree_status ree_control_graph(struct ree_lower *lower, const char *name, size_t n_inputs,
                                  size_t min_outputs, const struct ree_graph **out);
// Fails if one of the inputs from index `first` on is omitted.
enum ree_status ree_control_inputs(struct ree_lower *lower, struct ree_view *const *in,
                                   size_t first);
// Reads the single element of a bool tensor on the host. `what` names the tensor in messages.
enum ree_status ree_control_bool(struct ree_lower *lower, struct ree_view *t, const char *what,
                                 bool *out);
// Fails with REE_UNSUPPORTED if n, the number of iterations of the node, exceeds the limit.
enum ree_status ree_control_check_iterations(struct ree_lower *lower, int64_t n);
// Puts "iteration 3: ", the iteration that failed, before the error message. Returns the status of
// the error.
enum ree_status ree_control_fail_at(struct ree_lower *lower, int64_t iteration);

// A list of the tensors that the iterations append to one scan output.
struct ree_control_items {
    size_t n, capacity;
    struct ree_view **items;
};
// Appends an item. Fails unless it is a tensor with the type and shape of the items before it.
// `what` names the scan output in messages.
enum ree_status ree_control_add_item(struct ree_lower *lower, struct ree_control_items *list,
                                     struct ree_view *item, const char *what);
// Stacks the items of a list along a new axis `axis`, in reverse order if `reverse` is set. The
// list must not be empty.
enum ree_status ree_control_stack(struct ree_lower *lower, const struct ree_control_items *list,
                                  uint32_t axis, bool reverse, struct ree_view **out);
// Views element i of t along `axis`: t[..., i, ...], without this axis.
enum ree_status ree_control_pick(struct ree_lower *lower, struct ree_view *t, uint32_t axis,
                                 int64_t i, struct ree_view **out);
// Makes the scan output of zero iterations: the type and shape of `item` with a new axis `axis` of
// size 0.
enum ree_status ree_control_empty(struct ree_lower *lower, const struct ree_view *item,
                                  uint32_t axis, struct ree_view **out);

#endif
