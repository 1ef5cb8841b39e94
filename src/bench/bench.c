// Implements the public interface of the benchmarks; model.c implements its function for models.
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "bench/bench_internal.h"

// Decides by the device's facts: a Vulkan driver reports its type, and CUDA devices have a compute
// capability.
static bool is_gpu(const struct ree_device *device) {
    const struct ree_device_fact *facts;
    size_t n = ree_device_facts(device, &facts);
    for (size_t i = 0; i < n; i++)
        if ((strcmp(facts[i].name, "type") == 0 && strstr(facts[i].value, "GPU")) ||
            strcmp(facts[i].name, "compute capability") == 0)
            return true;
    return false;
}

static uint32_t or_default(uint32_t value, uint32_t standard) {
    return value ? value : standard;
}

enum ree_status ree_benchmark_create(struct ree_device *device,
                                     const struct ree_benchmark_options *requested,
                                     struct ree_benchmark **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_benchmark_options o;
    *out = NULL;
    REE_TRY(ree_options_read(&o, sizeof o, requested, "ree_benchmark_options", err));
    if (o.n_runs > REE_BENCH_MAX_RUNS)
        return ree_fail(err, REE_INVALID, "n_runs is %u; the maximum is %d", o.n_runs,
                        REE_BENCH_MAX_RUNS);
    if (o.n_peers > REE_BENCH_MAX_PEERS)
        return ree_fail(err, REE_INVALID, "n_peers is %zu; the maximum is %d", o.n_peers,
                        REE_BENCH_MAX_PEERS);
    struct ree_benchmark *b = ree_alloc_zeroed(1, sizeof *b);
    if (!b) return ree_no_memory(err);
    b->device = device;
    b->is_cpu = device->is_cpu;
    b->is_gpu = is_gpu(device);
    b->n_runs = or_default(o.n_runs, 21);
    b->n_threads = or_default(o.n_threads, (uint32_t)omp_get_num_procs());
    b->size = o.shape;
    b->filters = or_default(o.filters, 64);
    b->kernel = or_default(o.kernel, 3);
    b->stride = or_default(o.stride, 1);
    b->groups = or_default(o.groups, 1);
    b->n_peers = (uint32_t)o.n_peers;
    for (size_t i = 0; i < o.n_peers; i++)
        b->peers[i] = o.peers[i];
    b->progress = o.progress;
    if (b->is_cpu && o.use_openblas) ree_bench_openblas_open(&b->blas, b->n_threads);
    *out = b;
    return REE_OK;
}

void ree_benchmark_destroy(struct ree_benchmark *b) {
    REE_FLOAT_ENV_API();
    if (!b) return;
    ree_bench_model_destroy(b->model);
    ree_bench_openblas_close(&b->blas);
    ree_free(b);
}

void ree_bench_report(struct ree_benchmark *b, const struct ree_bench_measured *result) {
    if (b->n_results < REE_BENCH_MAX_RESULTS) b->results[b->n_results++] = *result;
}

// Returns the benchmark of one RepOp; NULL if there is none with this name.
typedef enum ree_status run_repop(struct ree_benchmark *bench, struct ree_error *err);
static run_repop *find_repop(const char *name) {
    static const struct {
        const char *name;
        run_repop *run;
    } list[] = {{"matmul", ree_bench_matmul},
                {"conv", ree_bench_conv},
                {"map", ree_bench_map},
                {"rows", ree_bench_rows},
                {"attention", ree_bench_attention},
                {"ceilings", ree_bench_ceilings}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (strcmp(name, list[i].name) == 0) return list[i].run;
    return NULL;
}

bool ree_benchmark_has(const char *name) {
    return find_repop(name) != NULL;
}

// Returns the rate at quantile q of the times, in billions of operations or bytes per second.
static double rate(const struct ree_bench_measured *m, double q) {
    double seconds = ree_bench_quantile(&m->times, q);
    return seconds > 0 ? 1e-9 * m->amount / seconds : 0;
}

enum ree_status ree_benchmark_repop(struct ree_benchmark *b, const char *name,
                                    const struct ree_bench_report **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    run_repop *run = find_repop(name);
    *out = NULL;
    if (!run) return ree_fail(err, REE_INVALID, "there is no benchmark '%s'", name);
    b->n_results = 0;
    REE_TRY(run(b, err));
    for (uint32_t i = 0; i < b->n_results; i++) {
        const struct ree_bench_measured *m = &b->results[i];
        b->reported[i] = (struct ree_bench_result){.name = m->name,
                                                   .unit = m->unit,
                                                   .rate = rate(m, 0.5),
                                                   .rate_lower_quartile = rate(m, 0.75),
                                                   .rate_upper_quartile = rate(m, 0.25),
                                                   .seconds = ree_bench_quantile(&m->times, 0.5),
                                                   .baseline = m->baseline,
                                                   .baseline_rate = m->baseline_rate};
    }
    b->report = (struct ree_bench_report){b->n_results, b->reported, b->blas.library != NULL};
    *out = &b->report;
    return REE_OK;
}
