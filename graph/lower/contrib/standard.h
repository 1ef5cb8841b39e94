// What the rules of the domain com.microsoft share. Most of these operators are sequences of the
// standard's: a standard operator's own rule does each step, so that the bits are those of the
// graph that was fused.
#ifndef REE_GRAPH_LOWER_CONTRIB_STANDARD_H
#define REE_GRAPH_LOWER_CONTRIB_STANDARD_H

#include "graph/lower/rules.h"

#define REE_STANDARD_SLOTS 5 // inputs, and outputs
#define REE_STANDARD_ATTRS 4

// One standard operator as a step. Its inputs are float32 where the operator widens.
struct ree_standard {
    const char *type;
    int64_t opset;
    struct ree_tval *in[REE_STANDARD_SLOTS];   // NULL: omitted
    struct ree_attr attrs[REE_STANDARD_ATTRS]; // up to the first without a name
};
#define REE_INT_ATTR(attr, value)                                                                  \
    { .name = (attr), .kind = REE_ATTR_INT, .i = (value) }
#define REE_FLOAT_ATTR(attr, value)                                                                \
    { .name = (attr), .kind = REE_ATTR_FLOAT, .f = (value) }
#define REE_STRING_ATTR(attr, value)                                                               \
    { .name = (attr), .kind = REE_ATTR_STRING, .s = (value) }

// Lowers the step on behalf of lower->node. The operator is asked for its outputs whose bit is set
// in `wanted`, which go to out[0 ... ].
enum ree_status ree_standard_step(struct ree_lower *lower, const struct ree_standard *step,
                                  uint32_t wanted, struct ree_tval **out);

// The activation of a fused operator, by its standard name, with its parameters in the order of
// their attributes; the standard's defaults serve for those beyond n. NULL or "": x itself.
enum ree_status ree_contrib_activation(struct ree_lower *lower, const char *name, size_t n,
                                       const float *params, struct ree_tval *x,
                                       struct ree_tval **out);

// x + y, broadcast; y NULL: x.
enum ree_status ree_contrib_add(struct ree_lower *lower, struct ree_tval *x, struct ree_tval *y,
                                struct ree_tval **out);
// float16 and bfloat16 as float32, anything else as it is: for rules that take several float types
// and say themselves what each output rounds to.
enum ree_status ree_contrib_widen(struct ree_lower *lower, struct ree_tval *t,
                                  struct ree_tval **out);
// in[i]; fails where it is missing ("input gamma is required but omitted").
enum ree_status ree_contrib_required(struct ree_lower *lower, struct ree_tval *const *in,
                                     uint32_t i, const char *name, struct ree_tval **out);
// "input bias is float32[3], expected 4 elements", also for a missing optional one (fine).
enum ree_status ree_contrib_check_vector(struct ree_lower *lower, const struct ree_tval *t,
                                         const char *name, const struct ree_tval *as, int64_t n);

#endif
