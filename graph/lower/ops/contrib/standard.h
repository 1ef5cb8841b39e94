// Shared by the rules of the domain com.microsoft. Most of these operators are sequences of
// standard operators. The rule of the standard operator lowers each step, so the bits are equal
// to those of the graph before these standard operators were fused.
#ifndef REE_GRAPH_LOWER_OPS_CONTRIB_STANDARD_H
#define REE_GRAPH_LOWER_OPS_CONTRIB_STANDARD_H

#include "graph/lower/ops/rules.h"

#define REE_STANDARD_SLOTS 5 // maximum number of inputs, and of outputs
#define REE_STANDARD_ATTRS 4

// One standard operator as a step. If the row of that operator has REE_NARROW_WIDEN, the caller
// must widen narrow inputs to float32.
struct ree_standard {
    const char *type;
    int64_t opset;
    struct ree_view *in[REE_STANDARD_SLOTS];   // NULL: omitted
    struct ree_attr attrs[REE_STANDARD_ATTRS]; // ends at the first entry whose name is NULL
};
#define REE_INT_ATTR(attr, value)                                                                  \
    { .name = (attr), .kind = REE_ATTR_INT, .i = (value) }
#define REE_FLOAT_ATTR(attr, value)                                                                \
    { .name = (attr), .kind = REE_ATTR_FLOAT, .f = (value) }
#define REE_STRING_ATTR(attr, value)                                                               \
    { .name = (attr), .kind = REE_ATTR_STRING, .s = (value) }

// Lowers the step on behalf of lower->node. Bit i of `wanted` is set if the step must compute
// output i, which is then written to out[i].
enum ree_status ree_standard_step(struct ree_lower *lower, const struct ree_standard *step,
                                  uint32_t wanted, struct ree_view **out);

// Applies the activation of a fused operator to x. `name` is the name of a standard operator; if it
// is NULL or "", *out is x. `params` are its n parameters in the order of the operator's
// attributes; missing ones have the standard's defaults.
enum ree_status ree_contrib_activation(struct ree_lower *lower, const char *name, size_t n,
                                       const float *params, struct ree_view *x,
                                       struct ree_view **out);

// Makes x + y, broadcast. If y is NULL, *out is x.
enum ree_status ree_contrib_add(struct ree_lower *lower, struct ree_view *x, struct ree_view *y,
                                struct ree_view **out);
// Widens float16 and bfloat16 to float32; for other types, *out is t. For rules that accept several
// float types and decide themselves to which type each output is rounded.
enum ree_status ree_contrib_widen(struct ree_lower *lower, struct ree_view *t,
                                  struct ree_view **out);
// Sets *out to in[i]; fails if the input is missing ("input gamma is required but omitted").
enum ree_status ree_contrib_required(struct ree_lower *lower, struct ree_view *const *in,
                                     uint32_t i, const char *name, struct ree_view **out);
// Checks that t is a vector of n elements and has the dtype of `as`; fails with "input bias is
// float32[3], expected 4 elements". A missing optional input (t NULL) passes.
enum ree_status ree_contrib_check_vector(struct ree_lower *lower, const struct ree_view *t,
                                         const char *name, const struct ree_view *as, int64_t n);

#endif
