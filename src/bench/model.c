// Measures whole runs of a model, the time of each RepOp and dispatch in them, and the memory
// bandwidth that limits them.
#include "bench/bench_internal.h"

#include "base/clock.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/status.h"
#include "session/profile.h"

#include <stdlib.h>
#include <string.h>

// Memory is only measured for weights of at least this many bytes. Smaller weights may fit into
// caches, so their speed says nothing about memory.
#define MIN_WEIGHTS ((uint64_t)16 << 20)
#define MAX_PROFILES 5 // runs in which RepOps are measured one by one
// bytes of a region; regions are read in turn, so that no cache holds them
#define MEMORY_BYTES ((uint64_t)64 << 20)
#define N_REGIONS 3

// The model on one device with one operation set.
struct contender {
    const char *name; // name of the operation set, or of the library that implements it
    struct ree_session *session;
    struct ree_bench_times times; // whole runs, including copies of inputs and outputs
    double bind_seconds, first_seconds;
};

struct inputs {
    const struct ree_tensor *tensors;
    size_t n;
};

struct repop_sum {
    uint32_t n;
    struct ree_cost cost;
    struct ree_bench_times times; // sum over all dispatches of the RepOp in one run
};

struct ree_bench_model {
    struct ree_bench_model_report report;
    struct ree_bench_set sets[1 + REE_BENCH_MAX_PEERS];
    struct ree_bench_cost repops[REE_N_REPOPS];
    struct ree_bench_cost *dispatches;
    struct ree_model *model;
    struct ree_tensor *outputs;
    struct contender contenders[1 + REE_BENCH_MAX_PEERS];
    uint32_t n_contenders;
    struct ree_session_stats stats; // statistics of the first contender
    struct ree_bench_memory memory;
    bool has_memory;
    // Profile of the first contender's dispatches.
    bool has_profile;
    uint32_t n_entries, capacity, at;
    // entries of the first profile, each with its minimum time over all profiles; their nodes are
    // copies, because a model whose shapes depend on its data loses its labels with each run
    struct ree_profile_entry *entries;
    struct repop_sum sums[REE_N_REPOPS];
    struct ree_cost total;
};

// Running

static enum ree_status run_once(struct ree_bench_model *r, struct contender *c,
                                const struct inputs *inputs, double *out_seconds,
                                struct ree_error *err) {
    double before = ree_clock();
    REE_TRY(ree_session_run(c->session, inputs->tensors, inputs->n, r->outputs, err));
    *out_seconds = ree_clock() - before;
    for (size_t i = 0; i < ree_model_n_outputs(r->model); i++)
        ree_tensor_finish(&r->outputs[i]);
    return REE_OK;
}

static enum ree_status first_run(struct ree_benchmark *bench, struct ree_bench_model *r,
                                 struct ree_device *device, const char *name,
                                 const struct inputs *inputs, struct ree_error *err) {
    struct contender *c = &r->contenders[r->n_contenders++];
    struct ree_session_stats stats = {.size = sizeof stats};
    const struct ree_session_options options = {.size = sizeof options,
                                                .progress = bench->progress};
    c->name = name;
    REE_TRY(ree_session_create(r->model, device, &options, &c->session, err));
    REE_TRY(run_once(r, c, inputs, &c->first_seconds, err));
    REE_TRY(ree_session_stats(c->session, &stats, err));
    c->bind_seconds = stats.bind_seconds;
    return REE_OK;
}

static enum ree_status timed_runs(struct ree_benchmark *bench, struct ree_bench_model *r,
                                  const struct inputs *inputs, struct ree_error *err) {
    for (uint64_t i = 0; i < bench->n_runs; i++) {
        REE_TRY(ree_progress_report(&bench->progress, "model", i, bench->n_runs, err));
        for (uint32_t c = 0; c < r->n_contenders; c++) {
            double seconds;
            if (bench->is_cpu) ree_bench_rest();
            REE_TRY(run_once(r, &r->contenders[c], inputs, &seconds, err));
            ree_bench_times_add(&r->contenders[c].times, seconds);
        }
        if (r->has_memory) REE_TRY(ree_bench_memory_run(bench, &r->memory, i, err));
    }
    return REE_OK;
}

// Profiling: callbacks of ree_session_profile.

struct profile {
    struct ree_bench_model *report;
    double seconds[REE_N_REPOPS];
    bool is_first, failed;
};

static void add_entry(void *user, const struct ree_profile_entry *entry) {
    struct profile *profile = user;
    struct ree_bench_model *r = profile->report;
    struct repop_sum *sum = &r->sums[entry->op];
    profile->seconds[entry->op] += entry->seconds;
    if (!profile->is_first) {
        // With shapes that depend on data, a run may have other dispatches than the first one.
        struct ree_profile_entry *known = r->at < r->n_entries ? &r->entries[r->at++] : NULL;
        if (known && entry->seconds < known->seconds) known->seconds = entry->seconds;
        return;
    }
    sum->n++;
    sum->cost.flops += entry->cost.flops;
    sum->cost.bytes += entry->cost.bytes;
    r->total.flops += entry->cost.flops;
    r->total.bytes += entry->cost.bytes;
    if (r->n_entries == r->capacity) {
        uint32_t capacity = r->capacity ? 2 * r->capacity : 64;
        struct ree_profile_entry *grown = ree_realloc(r->entries, capacity * sizeof *grown);
        profile->failed = profile->failed || !grown;
        if (!grown) return;
        r->entries = grown;
        r->capacity = capacity;
    }
    char *node = entry->node ? ree_strdup(entry->node) : NULL;
    profile->failed = profile->failed || (entry->node && !node);
    if (profile->failed) return;
    r->entries[r->n_entries] = *entry;
    r->entries[r->n_entries++].node = node;
}

static enum ree_status profile_runs(struct ree_benchmark *bench, struct ree_bench_model *r,
                                    const struct inputs *inputs, struct ree_error *err) {
    struct contender *c = &r->contenders[0];
    uint64_t n = bench->n_runs < MAX_PROFILES ? bench->n_runs : MAX_PROFILES;
    enum ree_status status = REE_OK;
    double seconds;
    ree_session_measure(c->session, true);
    // The first run is not recorded: it prepares the measurement.
    status = run_once(r, c, inputs, &seconds, err);
    for (uint64_t i = 0; i < n && status == REE_OK; i++) {
        struct profile profile = {.report = r, .is_first = i == 0};
        status = run_once(r, c, inputs, &seconds, err);
        if (status != REE_OK) break;
        r->at = 0;
        r->has_profile = ree_session_profile(c->session, add_entry, &profile);
        if (profile.failed) status = ree_no_memory(err);
        if (!r->has_profile) break;
        for (int op = 0; op < REE_N_REPOPS; op++)
            ree_bench_times_add(&r->sums[op].times, profile.seconds[op]);
    }
    ree_session_measure(c->session, false);
    return status;
}

// Reporting

static int slower_first(const void *a, const void *b) {
    double x = ((const struct ree_profile_entry *)a)->seconds;
    double y = ((const struct ree_profile_entry *)b)->seconds;
    return (x < y) - (x > y);
}

static double measured_seconds(const struct ree_bench_model *r) {
    double sum = 0;
    for (int op = 0; op < REE_N_REPOPS; op++)
        sum += r->sums[op].n ? ree_bench_quantile(&r->sums[op].times, 0.5) : 0;
    return sum;
}

// Sorts the RepOps by time, slowest first; returns the number of RepOps that occur.
static int order_repops(const struct ree_bench_model *r, int *order) {
    int n = 0;
    for (int op = 0; op < REE_N_REPOPS; op++) {
        if (!r->sums[op].n) continue;
        int at = n++;
        double seconds = ree_bench_quantile(&r->sums[op].times, 0.5);
        for (; at > 0 && ree_bench_quantile(&r->sums[order[at - 1]].times, 0.5) < seconds; at--)
            order[at] = order[at - 1];
        order[at] = op;
    }
    return n;
}

static void report_costs(struct ree_bench_model *r) {
    struct ree_bench_model_report *out = &r->report;
    int order[REE_N_REPOPS], n = order_repops(r, order);
    for (int i = 0; i < n; i++) {
        const struct repop_sum *sum = &r->sums[order[i]];
        r->repops[i] = (struct ree_bench_cost){.repop = ree_repop_name(order[i]),
                                               .n = sum->n,
                                               .seconds = ree_bench_quantile(&sum->times, 0.5),
                                               .flops = sum->cost.flops,
                                               .bytes = sum->cost.bytes};
    }
    qsort(r->entries, r->n_entries, sizeof *r->entries, slower_first);
    for (uint32_t i = 0; i < r->n_entries; i++) {
        const struct ree_profile_entry *entry = &r->entries[i];
        r->dispatches[i] = (struct ree_bench_cost){.repop = ree_repop_name(entry->op),
                                                   .node = entry->node,
                                                   .n = 1,
                                                   .seconds = entry->seconds,
                                                   .flops = entry->cost.flops,
                                                   .bytes = entry->cost.bytes};
    }
    out->has_profile = true;
    out->profile_seconds = measured_seconds(r);
    out->n_repops = (size_t)n;
    out->repops = r->repops;
    out->n_dispatches = r->n_entries;
    out->dispatches = r->dispatches;
}

static enum ree_status describe(struct ree_bench_model *r, struct ree_error *err) {
    struct ree_bench_model_report *out = &r->report;
    for (uint32_t i = 0; i < r->n_contenders; i++) {
        const struct contender *c = &r->contenders[i];
        r->sets[i] =
            (struct ree_bench_set){.name = c->name,
                                   .first_seconds = c->first_seconds,
                                   .bind_seconds = c->bind_seconds,
                                   .seconds = ree_bench_quantile(&c->times, 0.5),
                                   .seconds_lower_quartile = ree_bench_quantile(&c->times, 0.25),
                                   .seconds_upper_quartile = ree_bench_quantile(&c->times, 0.75)};
    }
    *out = (struct ree_bench_model_report){
        .n_sets = r->n_contenders, .sets = r->sets, .stats = r->stats, .flops = r->total.flops};
    if (r->has_memory) {
        out->memory = r->memory.name;
        out->memory_rate = ree_bench_memory_rate(&r->memory);
    }
    if (!r->has_profile) return REE_OK;
    r->dispatches = ree_alloc_zeroed((size_t)r->n_entries + 1, sizeof *r->dispatches);
    if (!r->dispatches) return ree_no_memory(err);
    report_costs(r);
    return REE_OK;
}

void ree_bench_model_destroy(struct ree_bench_model *r) {
    if (!r) return;
    for (uint32_t i = 0; i < r->n_contenders; i++)
        ree_session_destroy(r->contenders[i].session);
    ree_bench_memory_destroy(&r->memory);
    ree_free(r->outputs);
    for (uint32_t i = 0; i < r->n_entries; i++)
        ree_free((char *)(uintptr_t)r->entries[i].node);
    ree_free(r->entries);
    ree_free(r->dispatches);
    ree_free(r);
}

static enum ree_status measure(struct ree_benchmark *bench, struct ree_bench_model *r,
                               const struct inputs *inputs, struct ree_error *err) {
    r->outputs = ree_alloc_zeroed(ree_model_n_outputs(r->model) + 1, sizeof *r->outputs);
    if (!r->outputs) return ree_no_memory(err);
    REE_TRY(first_run(bench, r, bench->device, ree_operation_set_name(bench->device->operation_set),
                      inputs, err));
    for (uint32_t i = 0; i < bench->n_peers; i++)
        REE_TRY(first_run(bench, r, bench->peers[i].device, bench->peers[i].name, inputs, err));
    r->stats.size = sizeof r->stats;
    REE_TRY(ree_session_stats(r->contenders[0].session, &r->stats, err));
    r->has_memory = r->stats.weight_bytes >= MIN_WEIGHTS;
    if (r->has_memory)
        REE_TRY(ree_bench_memory_create(bench, MEMORY_BYTES, N_REGIONS, false, &r->memory, err));
    REE_TRY(timed_runs(bench, r, inputs, err));
    return profile_runs(bench, r, inputs, err);
}

enum ree_status ree_benchmark_model(struct ree_benchmark *bench, struct ree_model *model,
                                    const struct ree_tensor *inputs, size_t n_inputs,
                                    const struct ree_bench_model_report **out,
                                    struct ree_error *err) {
    REE_FLOAT_ENV_API();
    const struct inputs given = {inputs, n_inputs};
    *out = NULL;
    ree_bench_model_destroy(bench->model);
    bench->model = ree_alloc_zeroed(1, sizeof *bench->model);
    if (!bench->model) return ree_no_memory(err);
    bench->model->model = model;
    REE_TRY(measure(bench, bench->model, &given, err));
    REE_TRY(describe(bench->model, err));
    *out = &bench->model->report;
    return REE_OK;
}
