// Runs one dispatch with the kernel of its RepOp.
#include "device/cpu/execute.h"

#include "base/memory.h"
#include "device/cpu/selftest.h"

#include <omp.h>
#include <unistd.h>

enum ree_status ree_cpu_run_dispatch(const struct ree_cpu_context *ctx,
                                     const struct ree_dispatch *dispatch, void *const *operands,
                                     struct ree_error *err) {
    const union ree_params *params = &dispatch->params;
    switch (dispatch->op) {
    case REE_REPOP_COPY: return ree_cpu_copy(ctx, &params->copy, operands, err);
    case REE_REPOP_MAP: return ree_cpu_map(ctx, &params->map, operands, err);
    case REE_REPOP_REDUCE: return ree_cpu_reduce(ctx, &params->reduce, operands, err);
    case REE_REPOP_MATMUL: return ree_cpu_matmul(ctx, &params->matmul, operands, err);
    case REE_REPOP_CONV: return ree_cpu_conv(ctx, &params->conv, operands, err);
    case REE_REPOP_POOL: return ree_cpu_pool(ctx, &params->pool, operands, err);
    case REE_REPOP_SOFTMAX: return ree_cpu_softmax(ctx, &params->softmax, operands, err);
    case REE_REPOP_NORM: return ree_cpu_norm(ctx, &params->norm, operands, err);
    case REE_REPOP_GATHER: return ree_cpu_gather(ctx, &params->gather, operands, err);
    case REE_REPOP_SCATTER: return ree_cpu_scatter(ctx, &params->scatter, operands, err);
    case REE_REPOP_TOPK: return ree_cpu_topk(ctx, &params->topk, operands, err);
    case REE_REPOP_SCAN: return ree_cpu_scan(ctx, &params->scan, operands, err);
    case REE_REPOP_RESIZE: return ree_cpu_resize(ctx, &params->resize, operands, err);
    case REE_REPOP_ATTENTION: return ree_cpu_attention(ctx, &params->attention, operands, err);
    case REE_N_REPOPS: break;
    }
    return ree_fail(err, REE_INTERNAL, "cpu: RepOp %d does not exist", (int)dispatch->op);
}

static enum ree_status execute(const struct ree_dispatch *dispatch, void *const *operands,
                               struct ree_cpu_scratch *scratch, uint32_t n_threads,
                               struct ree_error *err) {
    REE_FLOAT_ENV_WORKER();
    enum ree_cpu_isa isa;
    REE_TRY(ree_cpu_isa_select_any(&isa, err));
    struct ree_cpu_context ctx = {
        .n_threads = n_threads,
        .isa = isa,
        .scratch = scratch,
        .pairs = REE_CPU_PAIRS_IF_FASTER,
    };
    enum ree_status status = ree_cpu_run_dispatch(&ctx, dispatch, operands, err);
    for (uint32_t t = 0; t < n_threads; t++)
        ree_cpu_scratch_finish(&scratch[t]);
    return status;
}

enum ree_status ree_cpu_execute(const struct ree_dispatch *dispatch, void *const *operands,
                                struct ree_error *err) {
    struct ree_cpu_scratch scratch = {0};
    return execute(dispatch, operands, &scratch, 1, err);
}

void ree_cpu_execute_soon(void) {
    REE_FLOAT_ENV_WORKER();
    enum ree_cpu_isa isa;
    struct ree_error err;
    ree_cpu_isa_select_any(&isa, &err);
}

// Problems that are computed here are small, and each thread's stack counts as memory.
#define MAX_THREADS 16

static pid_t loaded_in;
__attribute__((constructor)) static void note_process(void) {
    loaded_in = getpid();
}

// Returns the number of threads to use where n_threads are allowed. In a forked process, GCC's
// OpenMP may wait forever for the threads of its parent, and LLVM's creates a file that the sandbox
// may forbid, so neither is called.
static uint32_t usable_threads(uint32_t n_threads) {
    if (getpid() != loaded_in) return 1;
    const uint32_t n_processors = (uint32_t)omp_get_num_procs();
    if (n_threads == 0 || n_threads > n_processors) n_threads = n_processors;
    return n_threads < MAX_THREADS ? n_threads : MAX_THREADS;
}

enum ree_status ree_cpu_execute_threads(const struct ree_dispatch *dispatch, void *const *operands,
                                        uint32_t n_threads, struct ree_error *err) {
    n_threads = usable_threads(n_threads);
    struct ree_cpu_scratch *scratch = ree_alloc_zeroed(n_threads, sizeof *scratch);
    if (!scratch) return ree_fail(err, REE_NO_MEMORY, "no memory for %u threads", n_threads);
    enum ree_status status = execute(dispatch, operands, scratch, n_threads, err);
    ree_free(scratch);
    return status;
}
