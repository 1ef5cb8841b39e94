// out[i] = expr(i), NUMERICS.md section 2.
#include "device/cpu/expr.h"

enum ree_status ree_cpu_map(const struct ree_cpu_context *ctx, const struct ree_map_params *p,
                            void *const *operands, struct ree_error *err) {
    const struct ree_expr *expr = &p->expr;
    uint32_t n_tensors = 0;
    for (uint32_t k = 0; k < expr->n_operands; k++)
        n_tensors += expr->operands[k].kind == REE_EXPR_TENSOR;
    void *out = operands[n_tensors];
    uint32_t n = expr->n_elements;
    if (n == 0) return REE_OK;

    struct ree_cpu_expr_plan plan;
    ree_cpu_expr_plan(&plan, expr, operands, false, ctx->isa);
    uint32_t n_blocks = (n + REE_CPU_EXPR_BLOCK - 1) / REE_CPU_EXPR_BLOCK;
    uint32_t n_threads = ree_cpu_threads_for(ctx, n_blocks * plan.cost);
    if (n_blocks == 1) n_threads = 1;
    size_t size = ree_cpu_expr_slots_size(&plan, n < REE_CPU_EXPR_BLOCK ? n : REE_CPU_EXPR_BLOCK);
    for (uint32_t t = 0; t < n_threads; t++)
        if (!ree_cpu_scratch_get(ctx, t, 0, size)) return ree_cpu_no_memory(err, size);
#pragma omp parallel for num_threads(n_threads) if (n_threads > 1) schedule(static)
    for (uint32_t t = 0; t < n_threads; t++) {
        REE_FLOAT_ENV_WORKER();
        uint64_t begin, end;
        ree_cpu_split(n, REE_CPU_EXPR_BLOCK, t, n_threads, &begin, &end);
        ree_cpu_expr_run(&plan, NULL, (uint32_t)begin, (uint32_t)(end - begin), out,
                         REE_CPU_EXPR_BLOCK, ree_cpu_scratch_get(ctx, t, 0, size));
    }
    return REE_OK;
}
