// Unique of com.microsoft: the standard operator for a vector, in the order of first occurrence.
#include "graph/lower/ops/contrib/standard.h"

enum ree_status ree_lower_op_ms_unique(struct ree_lower *lower, struct ree_view *const *in,
                                       struct ree_view **out) {
    enum { VALUES, FIRSTS, INVERSE, COUNTS, N };
    struct ree_view *all[N];
    REE_TRY(ree_rule_require_rank(lower, in[0], "x", 1, 1));
    struct ree_standard step = {
        .type = "Unique", .opset = 11, .in = {in[0]}, .attrs = {REE_INT_ATTR("sorted", 0)}};
    REE_TRY(ree_standard_step(lower, &step, 1u << VALUES | 1u << INVERSE | 1u << COUNTS, all));
    out[0] = all[VALUES];
    if (ree_rule_wants(lower, 1)) out[1] = all[INVERSE];
    if (ree_rule_wants(lower, 2)) out[2] = all[COUNTS];
    return REE_OK;
}
