// If: the condition selects a branch at bind time; only that branch is lowered.
#include "graph/lower/ops/control/control.h"

enum ree_status ree_lower_op_if(struct ree_lower *lower, struct ree_view *const *in,
                                struct ree_view **out) {
    bool condition;
    REE_TRY(ree_control_bool(lower, in[0], "the condition", &condition));
    const char *name = condition ? "then_branch" : "else_branch";
    const struct ree_graph *taken, *other;
    size_t n = lower->node->n_outputs;
    // Check both branches, so that a malformed model fails whatever its input is.
    REE_TRY(ree_control_graph(lower, condition ? "else_branch" : "then_branch", 0, n, &other));
    REE_TRY(ree_control_graph(lower, name, 0, n, &taken));
    struct ree_view **results =
        ree_arena_alloc_array(lower->arena, taken->n_outputs + 1, sizeof *results);
    if (!results) return ree_lower_fail(lower, REE_NO_MEMORY, "out of memory");
    if (ree_lower_graph(lower, taken, NULL, results) != REE_OK)
        return ree_fail_prefix(lower->err, "%s", name);
    for (size_t i = 0; i < n; i++)
        out[i] = results[i];
    return REE_OK;
}
