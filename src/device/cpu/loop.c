// Runs the loop of a kernel on one or more threads.
//
// With one thread, the caller runs the loop itself, outside of any OpenMP region: with GCC's
// library, opening a region costs an allocation and a system call even for a team of one, and a
// step of generation with a small model has more than 60 loops.
#include "device/cpu/cpu_internal.h"

#include <omp.h>

static void run_one(const struct ree_cpu_context *ctx, const struct ree_cpu_loop *loop) {
    struct ree_cpu_range all = {.end = loop->n, .scratch = ctx->scratch[0].data};
    loop->body(loop->job, &all);
}

// The team may be smaller than n_threads, so a thread may run several ranges.
static void run_ranges(const struct ree_cpu_context *ctx, const struct ree_cpu_loop *loop) {
#pragma omp parallel for num_threads(loop->n_threads) schedule(static)
    for (uint32_t t = 0; t < loop->n_threads; t++) {
        REE_FLOAT_ENV_WORKER();
        struct ree_cpu_range range = {.thread = t, .scratch = ctx->scratch[t].data};
        ree_cpu_split(loop->n, loop->grain, t, loop->n_threads, &range.begin, &range.end);
        loop->body(loop->job, &range);
    }
}

static void run_dynamic(const struct ree_cpu_context *ctx, const struct ree_cpu_loop *loop) {
#pragma omp parallel num_threads(loop->n_threads)
    {
        REE_FLOAT_ENV_WORKER();
        struct ree_cpu_range range = {.thread = (uint32_t)omp_get_thread_num()};
        range.scratch = ctx->scratch[range.thread].data;
#pragma omp for schedule(dynamic) nowait
        for (uint64_t i = 0; i < loop->n; i++) {
            range.begin = i;
            range.end = i + 1;
            loop->body(loop->job, &range);
        }
    }
}

void ree_cpu_run_loop(const struct ree_cpu_context *ctx, const struct ree_cpu_loop *loop) {
    if (loop->n_threads == 1)
        run_one(ctx, loop);
    else if (loop->grain)
        run_ranges(ctx, loop);
    else
        run_dynamic(ctx, loop);
}
