// `ree-run bench model`: whole runs of an ONNX model, where their time is spent, and what limits
// them.
#include "bench.h"

#include "base/json.h"
#include "base/status.h"
#include "session/profile.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

// Smaller weights may fit into caches, so their speed says nothing about memory.
#define MIN_WEIGHTS ((uint64_t)16 << 20)
#define MAX_PROFILES 5 // runs in which RepOps are measured one by one
#define N_SLOWEST 5
// size of a region; regions are read in turn, so that no cache holds them
#define MEMORY_BYTES ((uint64_t)64 << 20)
#define N_REGIONS 3

// The model on one device with one operation set.
struct contender {
    const char *name; // name of the operation set, or of the library that implements it
    struct ree_session *session;
    struct bench_times times; // whole runs, including copies of inputs and outputs
    double bind_seconds, first_seconds;
};

struct repop_sum {
    uint32_t n;
    struct ree_cost cost;
    struct bench_times times; // sum over all dispatches of the RepOp in one run
};

struct report {
    const char *path;
    struct ree_model *model;
    struct ree_tensor *outputs;
    double load_seconds;
    struct contender contenders[1 + BENCH_MAX_PEERS];
    uint32_t n_contenders;
    struct ree_session_stats stats; // statistics of the first contender
    struct bench_memory memory;
    bool has_memory;
    // Profile of the first contender's dispatches.
    bool has_profile;
    uint32_t n_entries, capacity, at;
    // entries of the first profile, each with its minimum time over all profiles
    struct ree_profile_entry *entries;
    struct repop_sum sums[REE_N_REPOPS];
    struct ree_cost total;
};

// Running

static enum ree_status run_once(struct report *r, struct contender *c,
                                const struct run_inputs *inputs, double *out_seconds,
                                struct ree_error *err) {
    double before = bench_now();
    REE_TRY(ree_session_run(c->session, inputs->tensors, inputs->n_tensors, r->outputs, err));
    *out_seconds = bench_now() - before;
    for (size_t i = 0; i < ree_model_n_outputs(r->model); i++)
        ree_tensor_finish(&r->outputs[i]);
    return REE_OK;
}

static enum ree_status first_run(struct report *r, struct ree_device *device, const char *name,
                                 const struct run_inputs *inputs, struct ree_error *err) {
    struct contender *c = &r->contenders[r->n_contenders++];
    struct ree_session_stats stats = {.size = sizeof stats};
    const struct ree_session_options options = {.size = sizeof options,
                                                .progress = {.report = cli_progress}};
    c->name = name;
    REE_TRY(ree_session_create(r->model, device, &options, &c->session, err));
    REE_TRY(run_once(r, c, inputs, &c->first_seconds, err));
    REE_TRY(ree_session_stats(c->session, &stats, err));
    c->bind_seconds = stats.bind_seconds;
    return REE_OK;
}

static enum ree_status timed_runs(struct bench *bench, struct report *r,
                                  const struct run_inputs *inputs, struct ree_error *err) {
    for (uint64_t i = 0; i < bench->n_runs; i++) {
        cli_progress(NULL, "model", i, bench->n_runs);
        for (uint32_t c = 0; c < r->n_contenders; c++) {
            double seconds;
            if (bench->is_cpu) bench_rest();
            REE_TRY(run_once(r, &r->contenders[c], inputs, &seconds, err));
            bench_times_add(&r->contenders[c].times, seconds);
        }
        if (r->has_memory) REE_TRY(bench_memory_run(bench, &r->memory, i, err));
    }
    return REE_OK;
}

// Profiling: callbacks of ree_session_profile.

struct profile {
    struct report *report;
    double seconds[REE_N_REPOPS];
    bool is_first, failed;
};

static void add_entry(void *user, const struct ree_profile_entry *entry) {
    struct profile *profile = user;
    struct report *r = profile->report;
    struct repop_sum *sum = &r->sums[entry->op];
    profile->seconds[entry->op] += entry->seconds;
    if (!profile->is_first) {
        struct ree_profile_entry *known = &r->entries[r->at++];
        if (entry->seconds < known->seconds) known->seconds = entry->seconds;
        return;
    }
    sum->n++;
    sum->cost.flops += entry->cost.flops;
    sum->cost.bytes += entry->cost.bytes;
    r->total.flops += entry->cost.flops;
    r->total.bytes += entry->cost.bytes;
    if (r->n_entries == r->capacity) {
        uint32_t capacity = r->capacity ? 2 * r->capacity : 64;
        struct ree_profile_entry *grown = realloc(r->entries, capacity * sizeof *grown);
        profile->failed = profile->failed || !grown;
        if (!grown) return;
        r->entries = grown;
        r->capacity = capacity;
    }
    r->entries[r->n_entries++] = *entry;
}

static enum ree_status profile_runs(struct bench *bench, struct report *r,
                                    const struct run_inputs *inputs, struct ree_error *err) {
    struct contender *c = &r->contenders[0];
    uint64_t n = bench->n_runs < MAX_PROFILES ? bench->n_runs : MAX_PROFILES;
    enum ree_status status = REE_OK;
    double seconds;
    ree_session_measure(c->session, true);
    // A first run, not counted: it prepares the measurement.
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
            bench_times_add(&r->sums[op].times, profile.seconds[op]);
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

static double measured_seconds(const struct report *r) {
    double sum = 0;
    for (int op = 0; op < REE_N_REPOPS; op++)
        sum += r->sums[op].n ? bench_quantile(&r->sums[op].times, 0.5) : 0;
    return sum;
}

// Sorts the RepOps by time, slowest first; returns the number of RepOps that occur.
static int order_repops(const struct report *r, int *order) {
    int n = 0;
    for (int op = 0; op < REE_N_REPOPS; op++) {
        if (!r->sums[op].n) continue;
        int at = n++;
        double seconds = bench_quantile(&r->sums[op].times, 0.5);
        for (; at > 0 && bench_quantile(&r->sums[order[at - 1]].times, 0.5) < seconds; at--)
            order[at] = order[at - 1];
        order[at] = op;
    }
    return n;
}

static double rate_of(double amount, double seconds) {
    return seconds > 0 ? 1e-9 * amount / seconds : 0;
}

static void print_profile(struct report *r, struct ree_strbuf *out) {
    int order[REE_N_REPOPS], n = order_repops(r, order);
    const double all = measured_seconds(r);
    ree_strbuf_printf(out, "  measured one at a time, %.3f ms in total\n", 1e3 * all);
    ree_strbuf_printf(out, "    %-10s %6s %11s %7s %9s %9s\n", "RepOp", "number", "time", "share",
                      "GFLOP/s", "GB/s");
    for (int i = 0; i < n; i++) {
        const struct repop_sum *sum = &r->sums[order[i]];
        double seconds = bench_quantile(&sum->times, 0.5);
        ree_strbuf_printf(out, "    %-10s %6u %8.3f ms %5.1f %%", ree_repop_name(order[i]), sum->n,
                          1e3 * seconds, all > 0 ? 100 * seconds / all : 0);
        if (sum->cost.flops > 0)
            ree_strbuf_printf(out, " %9.2f", rate_of(sum->cost.flops, seconds));
        else
            ree_strbuf_printf(out, " %9s", "-");
        ree_strbuf_printf(out, " %9.2f\n", rate_of(sum->cost.bytes, seconds));
    }
    qsort(r->entries, r->n_entries, sizeof *r->entries, slower_first);
    ree_strbuf_printf(out, "  slowest\n");
    for (uint32_t i = 0; i < r->n_entries && i < N_SLOWEST; i++) {
        ree_strbuf_printf(out, "    %8.3f ms  %-9s ", 1e3 * r->entries[i].seconds,
                          ree_repop_name(r->entries[i].op));
        cli_append_name(out, r->entries[i].node);
        ree_strbuf_append(out, "\n", 1);
    }
}

static void print_text(const struct bench *bench, struct report *r, struct ree_strbuf *out) {
    const double median = bench_quantile(&r->contenders[0].times, 0.5);
    cli_append_name(out, r->path);
    ree_strbuf_printf(out, " on ");
    cli_append_name(out, ree_device_name(bench->device));
    ree_strbuf_printf(out, ", %llu runs\n", (unsigned long long)bench->n_runs);
    ree_strbuf_printf(out, "  loading    %10.3f ms\n", 1e3 * r->load_seconds);
    for (uint32_t i = 0; i < r->n_contenders; i++) {
        const struct contender *c = &r->contenders[i];
        double seconds = bench_quantile(&c->times, 0.5);
        ree_strbuf_printf(out, "  first run  %10.3f ms  (of which %.3f ms binding)  %s\n",
                          1e3 * c->first_seconds, 1e3 * c->bind_seconds, c->name);
        ree_strbuf_printf(out, "  run        %10.3f ms  (middle half %.3f to %.3f)  %s",
                          1e3 * seconds, 1e3 * bench_quantile(&c->times, 0.25),
                          1e3 * bench_quantile(&c->times, 0.75), c->name);
        if (i > 0 && seconds > 0)
            ree_strbuf_printf(out, "; reproducible takes %.2fx as long", median / seconds);
        ree_strbuf_append(out, "\n", 1);
    }
    if (r->total.flops > 0)
        ree_strbuf_printf(out, "  products   %10.3f GFLOP, %.2f GFLOP/s\n", 1e-9 * r->total.flops,
                          rate_of(r->total.flops, median));
    ree_strbuf_printf(out, "  weights    %10.3f MB, %.2f GB/s", 1e-6 * r->stats.weight_bytes,
                      rate_of((double)r->stats.weight_bytes, median));
    if (r->has_memory)
        ree_strbuf_printf(out, ", %.2fx of %s (%.2f)",
                          rate_of((double)r->stats.weight_bytes, median) /
                              bench_memory_rate(&r->memory),
                          r->memory.name, bench_memory_rate(&r->memory));
    ree_strbuf_printf(out, "\n  RepOps     %10llu, %.3f MB of intermediate results\n",
                      (unsigned long long)r->stats.n_dispatches, 1e-6 * r->stats.arena_bytes);
    if (r->has_profile)
        print_profile(r, out);
    else
        ree_strbuf_printf(out, "  this device cannot measure single RepOps\n");
}

static void json_profile(struct report *r, cJSON *root) {
    int order[REE_N_REPOPS], n = order_repops(r, order);
    cJSON *list = cJSON_AddArrayToObject(root, "repops");
    for (int i = 0; i < n; i++) {
        const struct repop_sum *sum = &r->sums[order[i]];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", ree_repop_name(order[i]));
        cJSON_AddNumberToObject(item, "number", sum->n);
        cJSON_AddNumberToObject(item, "seconds", bench_quantile(&sum->times, 0.5));
        cJSON_AddNumberToObject(item, "flops", sum->cost.flops);
        cJSON_AddNumberToObject(item, "bytes", sum->cost.bytes);
        ree_json_put(list, item);
    }
    qsort(r->entries, r->n_entries, sizeof *r->entries, slower_first);
    list = cJSON_AddArrayToObject(root, "dispatches"); // slowest first
    for (uint32_t i = 0; i < r->n_entries; i++) {
        const struct ree_profile_entry *entry = &r->entries[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "repop", ree_repop_name(entry->op));
        cJSON_AddStringToObject(item, "node", entry->node);
        cJSON_AddNumberToObject(item, "seconds", entry->seconds);
        cJSON_AddNumberToObject(item, "flops", entry->cost.flops);
        cJSON_AddNumberToObject(item, "bytes", entry->cost.bytes);
        ree_json_put(list, item);
    }
}

static void print_json(const struct bench *bench, struct report *r, struct ree_strbuf *out) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "model", r->path);
    cJSON_AddStringToObject(root, "device", ree_device_name(bench->device));
    cJSON_AddNumberToObject(root, "runs", (double)bench->n_runs);
    cJSON_AddNumberToObject(root, "load_seconds", r->load_seconds);
    cJSON_AddNumberToObject(root, "weight_bytes", (double)r->stats.weight_bytes);
    cJSON_AddNumberToObject(root, "arena_bytes", (double)r->stats.arena_bytes);
    cJSON_AddNumberToObject(root, "dispatch_count", (double)r->stats.n_dispatches);
    cJSON_AddNumberToObject(root, "flops", r->total.flops);
    cJSON *sets = cJSON_AddArrayToObject(root, "sets");
    for (uint32_t i = 0; i < r->n_contenders; i++) {
        const struct contender *c = &r->contenders[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", c->name);
        cJSON_AddNumberToObject(item, "bind_seconds", c->bind_seconds);
        cJSON_AddNumberToObject(item, "first_seconds", c->first_seconds);
        cJSON_AddNumberToObject(item, "seconds", bench_quantile(&c->times, 0.5));
        cJSON_AddNumberToObject(item, "seconds_lower_quartile", bench_quantile(&c->times, 0.25));
        cJSON_AddNumberToObject(item, "seconds_upper_quartile", bench_quantile(&c->times, 0.75));
        ree_json_put(sets, item);
    }
    if (r->has_memory) {
        cJSON_AddStringToObject(root, "memory", r->memory.name);
        cJSON_AddNumberToObject(root, "memory_rate", bench_memory_rate(&r->memory));
    }
    if (r->has_profile) json_profile(r, root);
    cli_append_json(out, root, true);
}

static void report_finish(struct report *r) {
    for (uint32_t i = 0; i < r->n_contenders; i++)
        ree_session_destroy(r->contenders[i].session);
    bench_memory_destroy(&r->memory);
    free(r->outputs);
    free(r->entries);
}

static enum ree_status measure(struct bench *bench, struct report *r,
                               const struct run_inputs *inputs, struct ree_error *err) {
    r->outputs = calloc(ree_model_n_outputs(r->model) + 1, sizeof *r->outputs);
    if (!r->outputs) return ree_no_memory(err);
    REE_TRY(first_run(r, bench->device,
                      ree_operation_set_name(bench->options.options.operation_set), inputs, err));
    for (uint32_t i = 0; i < bench->n_peers; i++)
        REE_TRY(first_run(r, bench->peers[i].device, bench->peers[i].name, inputs, err));
    r->stats.size = sizeof r->stats;
    REE_TRY(ree_session_stats(r->contenders[0].session, &r->stats, err));
    r->has_memory = r->stats.weight_bytes >= MIN_WEIGHTS;
    if (r->has_memory)
        REE_TRY(bench_memory_create(bench, MEMORY_BYTES, N_REGIONS, false, &r->memory, err));
    REE_TRY(timed_runs(bench, r, inputs, err));
    return profile_runs(bench, r, inputs, err);
}

int bench_model_load(struct bench *bench, const char *path, struct run_inputs *inputs,
                     struct ree_model **out) {
    struct ree_error err;
    const struct ree_model_options options = {.size = sizeof options,
                                              .progress = {.report = cli_progress}};
    double before = bench_now();
    if (ree_model_load(path, &options, out, &err) != REE_OK) return cli_fail(&err);
    bench->load_seconds = bench_now() - before;
    inputs->random = true;
    return run_inputs_load(inputs, *out);
}

enum ree_status bench_model(struct bench *bench, const char *path, struct ree_model *model,
                            const struct run_inputs *inputs, bool json, struct ree_strbuf *out,
                            struct ree_error *err) {
    static struct report r;
    r.path = path;
    r.model = model;
    r.load_seconds = bench->load_seconds;
    enum ree_status status = measure(bench, &r, inputs, err);
    cli_progress_end();
    if (status == REE_OK && json)
        print_json(bench, &r, out);
    else if (status == REE_OK)
        print_text(bench, &r, out);
    report_finish(&r);
    return status;
}
