// Shared by the rules of the domain com.microsoft. Most of these operators are sequences of
// standard operators. The standard operator's own rule lowers each step, so that the bits are those
// of the original graph, which was fused into the operator.
#ifndef REE_GRAPH_LOWER_OPS_CONTRIB_STANDARD_H
#define REE_GRAPH_LOWER_OPS_CONTRIB_STANDARD_H

#include "graph/lower/ops/rules.h"

#define REE_STANDARD_SLOTS 5 // maximum number of inputs, and of outputs
#define REE_STANDARD_ATTRS 4

// One standard operator as a step. If that operator widens narrow inputs, the inputs given here
// must already be float32.
struct ree_standard {
    const char *type;
    int64_t opset;
    struct ree_view *in[REE_STANDARD_SLOTS];   // NULL: omitted
    struct ree_attr attrs[REE_STANDARD_ATTRS]; // ends at the first attribute without a name
};
#define REE_INT_ATTR(attr, value)                                                                  \
    { .name = (attr), .kind = REE_ATTR_INT, .i = (value) }
#define REE_FLOAT_ATTR(attr, value)                                                                \
    { .name = (attr), .kind = REE_ATTR_FLOAT, .f = (value) }
#define REE_STRING_ATTR(attr, value)                                                               \
    { .name = (attr), .kind = REE_ATTR_STRING, .s = (value) }

// Lowers the step on behalf of lower->node. `wanted` has a bit for each output that the operator
// must compute; these outputs go to out[0], out[1], ... in order.
enum ree_status ree_standard_step(struct ree_lower *lower, const struct ree_standard *step,
                                  uint32_t wanted, struct ree_view **out);

// Applies the activation of a fused operator, given by its standard name. `params` are its
// parameters in the order of the operator's attributes; missing ones have the standard's defaults.
// NULL or "" as `name` returns x itself.
enum ree_status ree_contrib_activation(struct ree_lower *lower, const char *name, size_t n,
                                       const float *params, struct ree_view *x,
                                       struct ree_view **out);

// x + y, broadcast. If y is NULL: x.
enum ree_status ree_contrib_add(struct ree_lower *lower, struct ree_view *x, struct ree_view *y,
                                struct ree_view **out);
// Widens float16 and bfloat16 to float32; returns other types unchanged. For rules that accept
// several float types and decide themselves to which type each output is rounded.
enum ree_status ree_contrib_widen(struct ree_lower *lower, struct ree_view *t,
                                  struct ree_view **out);
// Returns in[i]; fails if it is missing ("input gamma is required but omitted").
enum ree_status ree_contrib_required(struct ree_lower *lower, struct ree_view *const *in,
                                     uint32_t i, const char *name, struct ree_view **out);
// Checks that t is a vector of n elements and has the dtype of `as`; fails with "input bias is
// float32[3], expected 4 elements". A missing optional input (t NULL) passes.
enum ree_status ree_contrib_check_vector(struct ree_lower *lower, const struct ree_view *t,
                                         const char *name, const struct ree_view *as, int64_t n);

#endif
