// ree-run bench: speed of single RepOps and of whole models.
#include "inputs.h"
#include "paths.h"
#include "commands.h"
#include "option_groups.h"
#include "quantize.h"
#include "start.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "json.h"
#include "ree/bench.h"

#define N_SLOWEST 5 // number of dispatches that are listed

struct bench {
    struct cli_device options;
    const char *what, *model; // model: for the benchmark "model"
    const char *size;         // value of --size; NULL: not given, run a selection of sizes
    uint64_t n_runs, filters, kernel, stride, groups;
    struct run_inputs inputs;
    struct cli_quantize quantize; // of the model
    bool json;
    struct ree_device *device;
    double load_seconds; // time to load the model
    // The same device opened with other operation sets, which use the vendor's library (cuBLAS).
    struct ree_bench_peer peers[REE_BENCH_MAX_PEERS];
    uint32_t n_peers;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_cpu(const struct bench *bench) {
    return !bench->options.spec || strcmp(bench->options.spec, "cpu") == 0;
}

static void print_text(const struct bench *bench, const struct ree_bench_report *report,
                       struct strbuf *out) {
    cli_append_name(out, ree_device_name(bench->device));
    strbuf_printf(out, ", %llu runs each\n", (unsigned long long)bench->n_runs);
    int width = 0;
    for (size_t i = 0; i < report->n_results; i++) {
        int length = (int)strlen(report->results[i].name);
        if (length > width) width = length;
    }
    for (size_t i = 0; i < report->n_results; i++) {
        const struct ree_bench_result *r = &report->results[i];
        strbuf_printf(out, "  %-*s %9.2f %-7s (middle half %.2f to %.2f)", width, r->name, r->rate,
                      r->unit, r->rate_lower_quartile, r->rate_upper_quartile);
        if (r->baseline)
            strbuf_printf(out, "  %.2fx of %s (%.2f)", r->rate / r->baseline_rate, r->baseline,
                          r->baseline_rate);
        strbuf_append(out, "\n", 1);
    }
    if (is_cpu(bench) && !report->has_openblas)
        strbuf_printf(
            out,
            "  OpenBLAS was not found, nothing to compare with (Debian: libopenblas0-pthread)\n");
}

static void print_json(const struct bench *bench, const struct ree_bench_report *report,
                       struct strbuf *out) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "device", ree_device_name(bench->device));
    cJSON_AddNumberToObject(root, "runs", (double)bench->n_runs);
    cJSON *list = cJSON_AddArrayToObject(root, "results");
    for (size_t i = 0; i < report->n_results; i++) {
        const struct ree_bench_result *r = &report->results[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", r->name);
        cJSON_AddStringToObject(item, "unit", r->unit);
        cJSON_AddNumberToObject(item, "rate", r->rate);
        cJSON_AddNumberToObject(item, "rate_lower_quartile", r->rate_lower_quartile);
        cJSON_AddNumberToObject(item, "rate_upper_quartile", r->rate_upper_quartile);
        cJSON_AddNumberToObject(item, "seconds", r->seconds);
        if (r->baseline) {
            cJSON_AddStringToObject(item, "baseline", r->baseline);
            cJSON_AddNumberToObject(item, "baseline_rate", r->baseline_rate);
            cJSON_AddNumberToObject(item, "ratio", r->rate / r->baseline_rate);
        }
        json_put(list, item);
    }
    cli_append_json(out, root, true);
}

// Reports of models

static double rate_of(double amount, double seconds) {
    return seconds > 0 ? 1e-9 * amount / seconds : 0;
}

static void print_profile(const struct ree_bench_model_report *r, struct strbuf *out) {
    const double all = r->profile_seconds;
    strbuf_printf(out, "  measured one at a time, %.3f ms in total\n", 1e3 * all);
    strbuf_printf(out, "    %-10s %6s %11s %7s %9s %9s\n", "RepOp", "number", "time", "share",
                  "GFLOP/s", "GB/s");
    for (size_t i = 0; i < r->n_repops; i++) {
        const struct ree_bench_cost *cost = &r->repops[i];
        strbuf_printf(out, "    %-10s %6u %8.3f ms %5.1f %%", cost->repop, cost->n,
                      1e3 * cost->seconds, all > 0 ? 100 * cost->seconds / all : 0);
        if (cost->flops > 0)
            strbuf_printf(out, " %9.2f", rate_of(cost->flops, cost->seconds));
        else
            strbuf_printf(out, " %9s", "-");
        strbuf_printf(out, " %9.2f\n", rate_of(cost->bytes, cost->seconds));
    }
    strbuf_printf(out, "  slowest\n");
    for (size_t i = 0; i < r->n_dispatches && i < N_SLOWEST; i++) {
        strbuf_printf(out, "    %8.3f ms  %-9s ", 1e3 * r->dispatches[i].seconds,
                      r->dispatches[i].repop);
        cli_append_name(out, r->dispatches[i].node);
        strbuf_append(out, "\n", 1);
    }
}

static void print_model_text(const struct bench *bench, const struct ree_bench_model_report *r,
                             struct strbuf *out) {
    const double median = r->sets[0].seconds;
    cli_append_name(out, bench->model);
    strbuf_printf(out, " on ");
    cli_append_name(out, ree_device_name(bench->device));
    strbuf_printf(out, ", %llu runs\n", (unsigned long long)bench->n_runs);
    strbuf_printf(out, "  loading    %10.3f ms\n", 1e3 * bench->load_seconds);
    for (size_t i = 0; i < r->n_sets; i++) {
        const struct ree_bench_set *set = &r->sets[i];
        strbuf_printf(out, "  first run  %10.3f ms  (of which %.3f ms binding)  %s\n",
                      1e3 * set->first_seconds, 1e3 * set->bind_seconds, set->name);
        strbuf_printf(out, "  run        %10.3f ms  (middle half %.3f to %.3f)  %s",
                      1e3 * set->seconds, 1e3 * set->seconds_lower_quartile,
                      1e3 * set->seconds_upper_quartile, set->name);
        if (i > 0 && set->seconds > 0)
            strbuf_printf(out, "; reproducible takes %.2fx as long", median / set->seconds);
        strbuf_append(out, "\n", 1);
    }
    if (r->flops > 0)
        strbuf_printf(out, "  products   %10.3f GFLOP, %.2f GFLOP/s\n", 1e-9 * r->flops,
                      rate_of(r->flops, median));
    double weights = (double)r->stats.weight_bytes;
    strbuf_printf(out, "  weights    %10.3f MB, %.2f GB/s", 1e-6 * weights,
                  rate_of(weights, median));
    if (r->memory)
        strbuf_printf(out, ", %.2fx of %s (%.2f)", rate_of(weights, median) / r->memory_rate,
                      r->memory, r->memory_rate);
    strbuf_printf(out, "\n  RepOps     %10llu, %.3f MB of intermediate results\n",
                  (unsigned long long)r->stats.n_dispatches, 1e-6 * (double)r->stats.arena_bytes);
    if (r->has_profile)
        print_profile(r, out);
    else
        strbuf_printf(out, "  this device cannot measure single RepOps\n");
}

static void json_profile(const struct ree_bench_model_report *r, cJSON *root) {
    cJSON *list = cJSON_AddArrayToObject(root, "repops");
    for (size_t i = 0; i < r->n_repops; i++) {
        const struct ree_bench_cost *cost = &r->repops[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", cost->repop);
        cJSON_AddNumberToObject(item, "number", cost->n);
        cJSON_AddNumberToObject(item, "seconds", cost->seconds);
        cJSON_AddNumberToObject(item, "flops", cost->flops);
        cJSON_AddNumberToObject(item, "bytes", cost->bytes);
        json_put(list, item);
    }
    list = cJSON_AddArrayToObject(root, "dispatches"); // slowest first
    for (size_t i = 0; i < r->n_dispatches; i++) {
        const struct ree_bench_cost *cost = &r->dispatches[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "repop", cost->repop);
        cJSON_AddStringToObject(item, "node", cost->node);
        cJSON_AddNumberToObject(item, "seconds", cost->seconds);
        cJSON_AddNumberToObject(item, "flops", cost->flops);
        cJSON_AddNumberToObject(item, "bytes", cost->bytes);
        json_put(list, item);
    }
}

static void print_model_json(const struct bench *bench, const struct ree_bench_model_report *r,
                             struct strbuf *out) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "model", bench->model);
    cJSON_AddStringToObject(root, "device", ree_device_name(bench->device));
    cJSON_AddNumberToObject(root, "runs", (double)bench->n_runs);
    cJSON_AddNumberToObject(root, "load_seconds", bench->load_seconds);
    cJSON_AddNumberToObject(root, "weight_bytes", (double)r->stats.weight_bytes);
    cJSON_AddNumberToObject(root, "arena_bytes", (double)r->stats.arena_bytes);
    cJSON_AddNumberToObject(root, "dispatch_count", (double)r->stats.n_dispatches);
    cJSON_AddNumberToObject(root, "flops", r->flops);
    cJSON *sets = cJSON_AddArrayToObject(root, "sets");
    for (size_t i = 0; i < r->n_sets; i++) {
        const struct ree_bench_set *set = &r->sets[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", set->name);
        cJSON_AddNumberToObject(item, "bind_seconds", set->bind_seconds);
        cJSON_AddNumberToObject(item, "first_seconds", set->first_seconds);
        cJSON_AddNumberToObject(item, "seconds", set->seconds);
        cJSON_AddNumberToObject(item, "seconds_lower_quartile", set->seconds_lower_quartile);
        cJSON_AddNumberToObject(item, "seconds_upper_quartile", set->seconds_upper_quartile);
        json_put(sets, item);
    }
    if (r->memory) {
        cJSON_AddStringToObject(root, "memory", r->memory);
        cJSON_AddNumberToObject(root, "memory_rate", r->memory_rate);
    }
    if (r->has_profile) json_profile(r, root);
    cli_append_json(out, root, true);
}

// Opens cuBLAS on the same CUDA device, if it is installed.
static void open_peers(struct bench *bench) {
    static const char *const names[REE_BENCH_MAX_PEERS] = {"cuBLAS, binary32", "cuBLAS, TF32"};
    if (!bench->options.spec || strncmp(bench->options.spec, "cuda", 4) != 0 ||
        bench->options.options.operation_set != REE_REPRODUCIBLE)
        return;
    for (int i = 0; i < REE_BENCH_MAX_PEERS; i++) {
        struct cli_device options = bench->options;
        struct ree_device *device;
        options.options.operation_set = i == 0 ? REE_DETERMINISTIC : REE_DEFAULT;
        if (cli_device_open(&options, &device, NULL) != REE_OK) continue;
        bench->peers[bench->n_peers].name = names[i];
        bench->peers[bench->n_peers++].device = device;
    }
}

#define AT(field) offsetof(struct bench, field)

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run bench matmul|conv|map|rows|attention|ceilings [options]\n"
  "ree-run bench model MODEL [options]: measure how fast this machine computes\n"
  "\n"
  "Runs one operator many times. Prints the median rate and the middle half of the rates, and\n"
  "compares them with a limit of the same machine. The runs of both alternate in the same\n"
  "minute.\n"
  "\n"
  "  matmul  GFLOP/s (2*M*N*K per product), compared with OpenBLAS's sgemm with the same number\n"
  "          of threads. A product with a single row is limited by memory: GB/s, compared with\n"
  "          reading memory. \"packed\": the second matrix is constant and was packed in\n"
  "          advance. Also: products of bytes and of bfloat16, compared with packed float32;\n"
  "          a row times float16, bfloat16 and blockwise weights, in GB/s of the weights,\n"
  "          compared with reading memory (the weights alternate and do not fit into the caches);\n"
  "          \"arithmetic only\": the same kernel on weights that stay in the cache (CPU only)\n"
  "  conv    GFLOP/s, compared with a 1024 x 1024 x 1024 matmul on the same device.\n"
  "          int8: uint8 by int8 in int32, compared with such a matmul and with float32\n"
  "  map     GB/s (bytes read and written), compared with copying memory\n"
  "  rows    softmax and layer normalisation: GB/s (bytes read and written), compared with\n"
  "          copying memory\n"
  "  attention  one token: GB/s of keys and values read, compared with reading memory; a prompt\n"
  "          of up to 1024 tokens: GFLOP/s, compared with a 1024 x 1024 x 1024 matmul\n"
  "  ceilings  what limits every RepOp on this device: copying its memory, copies from and to\n"
  "          the host, and fma in registers (2 operations each; a lower bound)\n"
  "\n"
  "  model   whole runs of an ONNX model, including the transfer of inputs and outputs;\n"
  "          the first run, which uploads the weights and compiles what it needs;\n"
  "          the weights' bytes per second, compared with reading memory, which limits\n"
  "          language models; and each kind of RepOp, measured one at a time: time, GFLOP/s of\n"
  "          products, and GB/s of its operands\n"
  "\n"
  "On a GPU, rates of memory are compared with copying the device's own memory. With --device\n"
  "cuda, matmul and model also run with cuBLAS, in binary32 and in TF32, if it is installed.\n"
  "\n"},
    {.name = "BENCHMARK", .kind = ROW_POSITIONAL, .at = AT(what),
     .choices = CLI_CHOICES("matmul", "conv", "map", "rows", "attention", "ceilings", "model")},
    {.name = "MODEL", .kind = ROW_POSITIONAL, .at = AT(model), .path = CLI_READS_BESIDE},
    {.name = "--size", .value = "SIZE", .kind = ROW_STRING, .at = AT(size),
     .help = "matmul: MxNxK; conv: NxCxHxW; map, ceilings: number of elements (default: 2^23, 2^26); "
             "rows: ROWSxCOLUMNS (default 4096x4096); attention: HEADSxKVHEADSxDIMxPOSITIONS (default "
             "32x8x128x8192)"},
    {.name = "--filters", .value = "M", .kind = ROW_NUMBER, .at = AT(filters), .min = 1, .max = 1 << 16,
     .help = "conv: number of filters (default 64)"},
    {.name = "--kernel", .value = "K", .kind = ROW_NUMBER, .at = AT(kernel), .min = 1, .max = 1 << 10,
     .help = "conv: height and width of the kernel (default 3)"},
    {.name = "--stride", .value = "S", .kind = ROW_NUMBER, .at = AT(stride), .min = 1, .max = 1 << 10,
     .help = "conv: stride (default 1)"},
    {.name = "--groups", .value = "G", .kind = ROW_NUMBER, .at = AT(groups), .min = 1, .max = 1 << 16,
     .help = "conv: number of groups (default 1)"},
    {.kind = ROW_GROUP, .group = &cli_inputs_group, .at = AT(inputs), .help =
  "  --input NAME=FILE, --dim NAME=SIZE\n"
  "                       model: as in 'ree-run help run'. Without --input, inputs are random and\n"
  "                       symbolic dimensions are 1\n"},
    {.name = "--seed", .value = "N", .kind = ROW_NUMBER, .at = AT(inputs.seed), .max = UINT64_MAX,
     .help = "model: seed of the random inputs (default 1)"},
    {.kind = ROW_GROUP, .group = &cli_quantize_group, .at = AT(quantize), .help =
  "  --quantize BITS, --block N, --quantize-table BITS, --activations TYPE\n"
  "                       model: of a checkpoint's folder; see 'ree-run help export'\n"},
    {.name = "--runs", .value = "N", .kind = ROW_NUMBER, .at = AT(n_runs), .min = 1, .max = REE_BENCH_MAX_RUNS,
     .help = "number of runs of each measurement (default 21)"},
    {.name = "--json", .kind = ROW_FLAG, .at = AT(json),
     .help = "print one JSON object instead of text"},
    {.kind = ROW_TEXT, .help = "\ndevices\n"},
    {.kind = ROW_GROUP, .group = &cli_device_group, .at = AT(options), .help =
  "  --device DEVICE      cpu, cuda, vulkan, cuda:INDEX, vulkan:NAME, ... (default cpu)\n"
  "  --threads N          CPU threads, also of OpenBLAS (default: one per core)\n"
  "  --cpu-isa ISA        avx512, avx2, neon, portable (default: the best available)\n"
  "  --form, --validation, --operation-set\n"
  "                       see 'ree-run help run'\n"},
    {.kind = ROW_TEXT, .help =
  "\n"
  "Other programs and the clock of the processor make results vary: look at the middle half,\n"
  "and compare only results of alternating runs. OpenBLAS is loaded as libopenblas.so.0\n"
  "(Debian: libopenblas0-pthread). Without it, no ratio is printed.\n"},
    CLI_START_ROW_PLAIN,
    {.kind = ROW_TEXT, .help =
  "\n"
  "examples\n"
  "  ree-run bench matmul --threads 1\n"
  "  ree-run bench matmul --size 1x4096x4096\n"
  "  ree-run bench conv --size 1x128x28x28 --filters 128 --device vulkan\n"
  "  ree-run bench model gpt2.onnx --dim batch=1 --dim sequence=128 --device cuda\n"
  "\n"
  "exit status: 0 success, 1 failure, 2 wrong usage, 124 --timeout\n"},
    // clang-format on
};
const struct cli_option_table ree_run_bench_options = CLI_OPTION_TABLE(rows);

static void parse(struct cli *cli, struct bench *a) {
    cli_options_parse(cli, &ree_run_bench_options, a);
    if (cli->failed) return;
    cli_quantize_check(cli, &a->quantize);
    const char *const names = "matmul, conv, map, rows, attention, ceilings and model";
    if (!a->what)
        cli_usage(cli, "which benchmark: matmul, conv, map, rows, attention, ceilings or model?");
    else if (strcmp(a->what, "model") == 0 && !a->model)
        cli_usage(cli, "bench model: no model given");
    else if (strcmp(a->what, "model") != 0 && !ree_benchmark_has(a->what))
        cli_usage(cli, "unknown benchmark '%s'; expected one of %s", a->what, names);
    else if (strcmp(a->what, "model") != 0 && a->model)
        cli_usage(cli, "bench %s does not accept '%s'", a->what, a->model);
}

static enum ree_status run_repop(struct ree_benchmark *benchmark, const struct bench *bench,
                                 struct strbuf *text, struct ree_error *err) {
    const struct ree_bench_report *report;
    enum ree_status status = ree_benchmark_repop(benchmark, bench->what, &report, err);
    cli_progress_end();
    if (status == REE_OK && bench->json)
        print_json(bench, report, text);
    else if (status == REE_OK)
        print_text(bench, report, text);
    return status;
}

static enum ree_status run_model(struct ree_benchmark *benchmark, const struct bench *bench,
                                 struct ree_model *model, struct strbuf *text,
                                 struct ree_error *err) {
    const struct ree_bench_model_report *report;
    enum ree_status status = ree_benchmark_model(benchmark, model, bench->inputs.tensors,
                                                 bench->inputs.n_tensors, &report, err);
    cli_progress_end();
    if (status == REE_OK && bench->json)
        print_model_json(bench, report, text);
    else if (status == REE_OK)
        print_model_text(bench, report, text);
    return status;
}

// Loads the model and its inputs. Inputs without a file are generated from the seed.
static int load_model(struct bench *bench, struct ree_model **out) {
    struct ree_error err;
    struct ree_model_options options = {.size = sizeof options, .progress = cli_reports};
    cli_quantize_model(&bench->quantize, &options);
    double before = now();
    if (ree_model_load(bench->model, &options, out, &err) != REE_OK) return cli_fail(&err);
    bench->load_seconds = now() - before;
    bench->inputs.random = true;
    return run_inputs_load(&bench->inputs, *out);
}

// Opens the device and its peers and runs the requested benchmark; returns an exit code.
static int run(struct bench *bench, struct ree_model *model) {
    struct ree_error err;
    struct ree_benchmark *benchmark = NULL;
    struct strbuf text;
    strbuf_init(&text);
    if (cli_device_open(&bench->options, &bench->device, &err) != REE_OK) return cli_fail(&err);
    open_peers(bench);
    const struct ree_benchmark_options options = {.size = sizeof options,
                                                  .n_runs = (uint32_t)bench->n_runs,
                                                  .n_threads = (uint32_t)bench->options.n_threads,
                                                  .n_peers = bench->n_peers,
                                                  .peers = bench->peers,
                                                  .use_openblas = !model,
                                                  .shape = bench->size,
                                                  .filters = (uint32_t)bench->filters,
                                                  .kernel = (uint32_t)bench->kernel,
                                                  .stride = (uint32_t)bench->stride,
                                                  .groups = (uint32_t)bench->groups,
                                                  .progress = cli_reports};
    enum ree_status status = ree_benchmark_create(bench->device, &options, &benchmark, &err);
    if (status == REE_OK) status = sandbox_close(&err);
    if (status == REE_OK)
        status = model ? run_model(benchmark, bench, model, &text, &err)
                       : run_repop(benchmark, bench, &text, &err);
    ree_benchmark_destroy(benchmark);
    for (uint32_t i = 0; i < bench->n_peers; i++)
        ree_device_destroy(bench->peers[i].device);
    ree_device_destroy(bench->device);
    if (status == REE_OK) return cli_print(&text);
    strbuf_finish(&text);
    cli_fail(&err);
    return status == REE_INVALID && !model ? CLI_USAGE : CLI_FAILED; // invalid: a wrong --size
}

int ree_run_bench(int argc, char **argv) {
    struct bench bench = {
        .n_runs = 21, .filters = 64, .kernel = 3, .stride = 1, .groups = 1, .inputs.seed = 1};
    struct ree_model *model = NULL;
    struct cli cli;
    int code = CLI_FAILED;
    if (cli_wants_help(argc, argv)) return cli_options_help(&ree_run_bench_options);
    cli_init(&cli, argc, argv);
    if (run_inputs_init(&bench.inputs, argc)) {
        parse(&cli, &bench);
        const struct cli_start start = {.uses = sandbox_uses(bench.options.spec)};
        code = cli.failed ? CLI_USAGE : cli_start(&start);
        if (!code && bench.model) code = load_model(&bench, &model);
        if (!code) code = run(&bench, model);
    }
    run_inputs_finish(&bench.inputs);
    ree_model_destroy(model);
    return code;
}
