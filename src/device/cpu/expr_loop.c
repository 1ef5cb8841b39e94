// Evaluates all elements of an expression, divided among threads.
#include "device/cpu/expr.h"

struct job {
    const struct ree_cpu_expr_plan *plan;
    void *out;
};

static void run_elements(const void *user, const struct ree_cpu_range *range) {
    const struct job *job = user;
    ree_cpu_expr_run(job->plan, NULL, (uint32_t)range->begin, (uint32_t)(range->end - range->begin),
                     job->out, REE_CPU_EXPR_BLOCK, range->scratch[0]);
}

enum ree_status ree_cpu_expr_run_all(const struct ree_cpu_context *ctx,
                                     const struct ree_cpu_expr_plan *plan, void *out,
                                     struct ree_error *err) {
    uint32_t n = plan->expr->n_elements;
    uint32_t n_blocks = (n + REE_CPU_EXPR_BLOCK - 1) / REE_CPU_EXPR_BLOCK;
    uint32_t n_threads = ree_cpu_threads_for(ctx, n_blocks * plan->cost);
    if (n_blocks == 1) n_threads = 1;
    const struct job job = {.plan = plan, .out = out};
    REE_TRY(ree_cpu_scratch_reserve(
        ctx, n_threads, 0,
        ree_cpu_expr_slots_size(plan, n < REE_CPU_EXPR_BLOCK ? n : REE_CPU_EXPR_BLOCK), err));
    const struct ree_cpu_loop loop = {
        .n = n,
        .grain = REE_CPU_EXPR_BLOCK,
        .n_threads = n_threads,
        .body = run_elements,
        .job = &job,
    };
    ree_cpu_run_loop(ctx, &loop);
    return REE_OK;
}
