// map: out[i] = expr(i), NUMERICS.md section 2.
#include "device/cpu/expr.h"

enum ree_status ree_cpu_map(const struct ree_cpu_context *ctx, const struct ree_map_params *p,
                            void *const *operands, struct ree_error *err) {
    const struct ree_expr *expr = &p->expr;
    if (expr->n_elements == 0) return REE_OK;
    uint32_t n_tensors = 0;
    for (uint32_t k = 0; k < expr->n_operands; k++)
        n_tensors += expr->operands[k].kind == REE_EXPR_TENSOR;
    struct ree_cpu_expr_plan plan;
    REE_TRY(ree_cpu_expr_prepare(ctx, expr, operands, false, &plan, err));
    return ree_cpu_expr_run_all(ctx, &plan, operands[n_tensors], err);
}
