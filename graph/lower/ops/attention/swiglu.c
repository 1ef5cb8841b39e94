// SwiGLU: (a * sigmoid(alpha * a)) * b.
#include "graph/lower/ops/rules.h"

enum ree_status ree_lower_op_swiglu(struct ree_lower *lower, struct ree_view *const *in,
                                    struct ree_view **out) {
    struct ree_view *a = in[0], *b = in[1];
    char ta[128], tb[128];
    REE_TRY(ree_rule_require_f32(lower, a));
    REE_TRY(ree_rule_same_type(lower, b, "B", a, "A"));
    bool fits = a->rank == b->rank;
    for (uint32_t i = 0; fits && i < a->rank; i++)
        fits = a->dims[i] == b->dims[i];
    if (!fits)
        return ree_lower_fail(lower, REE_INVALID, "input B is %s, expected the shape of A, %s",
                              ree_view_text(b, tb, sizeof tb), ree_view_text(a, ta, sizeof ta));
    float alpha = ree_node_float(lower->node, "alpha", 1);
    struct ree_expr_builder e;
    ree_expr_init(&e, lower, a->rank, a->dims);
    int gate = ree_expr_tensor(&e, a), value = ree_expr_tensor(&e, b), scaled = gate;
    if (alpha != 1) scaled = ree_expr_op2(&e, REE_MAP_mul_f32, ree_expr_f32(&e, alpha), gate);
    int swish =
        ree_expr_op2(&e, REE_MAP_mul_f32, gate, ree_expr_op1(&e, REE_MAP_sigmoid_f32, scaled));
    return ree_lower_map(&e, ree_expr_op2(&e, REE_MAP_mul_f32, swish, value), REE_F32, &out[0]);
}
