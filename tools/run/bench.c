// ree-run bench: speed of single RepOps and of whole models.
#include "bench.h"
#include "paths.h"
#include "commands.h"
#include "start.h"

#include <cjson/cJSON.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

void bench_report(struct bench *bench, const struct bench_result *result) {
    if (bench->n_results < sizeof bench->results / sizeof *bench->results)
        bench->results[bench->n_results++] = *result;
}

// Returns the rate at a quantile of the times, in billions per second.
static double rate(const struct bench_result *result, double q) {
    double seconds = bench_quantile(&result->times, q);
    return seconds > 0 ? 1e-9 * result->amount / seconds : 0;
}

static void print_text(const struct bench *bench, struct ree_strbuf *out) {
    cli_append_name(out, ree_device_name(bench->device));
    ree_strbuf_printf(out, ", %llu runs each\n", (unsigned long long)bench->n_runs);
    int width = 0;
    for (uint32_t i = 0; i < bench->n_results; i++) {
        int length = (int)strlen(bench->results[i].name);
        if (length > width) width = length;
    }
    for (uint32_t i = 0; i < bench->n_results; i++) {
        const struct bench_result *r = &bench->results[i];
        ree_strbuf_printf(out, "  %-*s %9.2f %-7s (middle half %.2f to %.2f)", width, r->name,
                          rate(r, 0.5), r->unit, rate(r, 0.75), rate(r, 0.25));
        if (r->baseline)
            ree_strbuf_printf(out, "  %.2fx of %s (%.2f)", rate(r, 0.5) / r->baseline_rate,
                              r->baseline, r->baseline_rate);
        ree_strbuf_append(out, "\n", 1);
    }
    if (bench->is_cpu && !bench->blas.library)
        ree_strbuf_printf(
            out,
            "  OpenBLAS was not found, nothing to compare with (Debian: libopenblas0-pthread)\n");
}

static void print_json(const struct bench *bench, struct ree_strbuf *out) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "device", ree_device_name(bench->device));
    cJSON_AddNumberToObject(root, "runs", (double)bench->n_runs);
    cJSON *list = cJSON_AddArrayToObject(root, "results");
    for (uint32_t i = 0; i < bench->n_results; i++) {
        const struct bench_result *r = &bench->results[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", r->name);
        cJSON_AddStringToObject(item, "unit", r->unit);
        cJSON_AddNumberToObject(item, "rate", rate(r, 0.5));
        cJSON_AddNumberToObject(item, "rate_lower_quartile", rate(r, 0.75));
        cJSON_AddNumberToObject(item, "rate_upper_quartile", rate(r, 0.25));
        cJSON_AddNumberToObject(item, "seconds", bench_quantile(&r->times, 0.5));
        if (r->baseline) {
            cJSON_AddStringToObject(item, "baseline", r->baseline);
            cJSON_AddNumberToObject(item, "baseline_rate", r->baseline_rate);
            cJSON_AddNumberToObject(item, "ratio", rate(r, 0.5) / r->baseline_rate);
        }
        ree_json_put(list, item);
    }
    cli_append_json(out, root, true);
}

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

// Opens cuBLAS on the same CUDA device, if it is installed.
static void open_peers(struct bench *bench) {
    static const char *const names[BENCH_MAX_PEERS] = {"cuBLAS, binary32", "cuBLAS, TF32"};
    if (!bench->options.spec || strncmp(bench->options.spec, "cuda", 4) != 0 ||
        bench->options.options.operation_set != REE_REPRODUCIBLE)
        return;
    for (int i = 0; i < BENCH_MAX_PEERS; i++) {
        struct cli_device options = bench->options;
        struct ree_device *device;
        options.options.operation_set = i == 0 ? REE_DETERMINISTIC : REE_DEFAULT;
        if (cli_device_open(&options, &device, NULL) != REE_OK) continue;
        bench->peers[bench->n_peers].name = names[i];
        bench->peers[bench->n_peers++].device = device;
    }
}

// Returns the benchmark of one RepOp; NULL if there is none with this name.
typedef enum ree_status bench_repop(struct bench *bench, struct ree_error *err);
static bench_repop *find_repop(const char *what) {
    static const struct {
        const char *name;
        bench_repop *run;
    } list[] = {{"matmul", bench_matmul},
                {"conv", bench_conv},
                {"map", bench_map},
                {"rows", bench_rows},
                {"attention", bench_attention}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (strcmp(what, list[i].name) == 0) return list[i].run;
    return NULL;
}

struct arguments {
    const char *what, *model; // model: for the benchmark "model"
    const char *size;
    uint64_t n_runs, filters, kernel, stride, groups;
    struct cli_device device;
    struct run_inputs inputs;
    bool json;
};

#define AT(field) offsetof(struct arguments, field)

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run bench matmul|conv|map|rows|attention [options]\n"
  "ree-run bench model MODEL [options]: measure how fast this machine computes\n"
  "\n"
  "Runs one operator many times. Prints the median rate and the middle half of the rates, and\n"
  "compares them with a limit of the same machine. The runs of both alternate in the same\n"
  "minute.\n"
  "\n"
  "  matmul  GFLOP/s (2*M*N*K per product), compared with OpenBLAS's sgemm with the same number\n"
  "          of threads. A product with a single row is limited by memory: GB/s, compared with\n"
  "          reading memory. \"packed\": the second matrix is constant and was packed in\n"
  "          advance. Also: products of bytes, compared with packed float32; a row times\n"
  "          float16, bfloat16 and blockwise weights, in GB/s of the weights, compared with\n"
  "          reading memory (the weights alternate and do not fit into the caches);\n"
  "          \"arithmetic only\": the same kernel on weights that stay in the cache (CPU only)\n"
  "  conv    GFLOP/s, compared with a 1024 x 1024 x 1024 matmul on the same device.\n"
  "          int8: uint8 by int8 in int32, compared with such a matmul and with float32\n"
  "  map     GB/s (bytes read and written), compared with copying memory\n"
  "  rows    softmax and layer normalisation: GB/s (bytes read and written), compared with\n"
  "          copying memory\n"
  "  attention  one token: GB/s of keys and values read, compared with reading memory; a prompt\n"
  "          of up to 1024 tokens: GFLOP/s, compared with a 1024 x 1024 x 1024 matmul\n"
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
     .choices = CLI_CHOICES("matmul", "conv", "map", "rows", "attention", "model")},
    {.name = "MODEL", .kind = ROW_POSITIONAL, .at = AT(model), .path = CLI_READS_BESIDE},
    {.name = "--size", .value = "SIZE", .kind = ROW_STRING, .at = AT(size),
     .help = "matmul: MxNxK; conv: NxCxHxW; map: number of elements (default: several); rows: "
             "ROWSxCOLUMNS (default 4096x4096); attention: HEADSxKVHEADSxDIMxPOSITIONS (default "
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
    {.name = "--runs", .value = "N", .kind = ROW_NUMBER, .at = AT(n_runs), .min = 1, .max = BENCH_MAX_RUNS,
     .help = "number of runs of each measurement (default 21)"},
    {.name = "--json", .kind = ROW_FLAG, .at = AT(json),
     .help = "print one JSON object instead of text"},
    {.kind = ROW_TEXT, .help = "\ndevices\n"},
    {.kind = ROW_GROUP, .group = &cli_device_group, .at = AT(device), .help =
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

static void parse(struct cli *cli, struct arguments *a) {
    cli_options_parse(cli, &ree_run_bench_options, a);
    if (cli->failed) return;
    const char *const names = "matmul, conv, map, rows, attention and model";
    if (!a->what)
        cli_usage(cli, "which benchmark: matmul, conv, map, rows, attention or model?");
    else if (strcmp(a->what, "model") == 0 && !a->model)
        cli_usage(cli, "bench model: no model given");
    else if (strcmp(a->what, "model") != 0 && !find_repop(a->what))
        cli_usage(cli, "unknown benchmark '%s'; expected one of %s", a->what, names);
    else if (strcmp(a->what, "model") != 0 && a->model)
        cli_usage(cli, "bench %s does not accept '%s'", a->what, a->model);
}

// Opens the device and its peers and runs the requested benchmark; returns an exit code.
static int run(struct bench *bench, const struct arguments *a, struct ree_model *model) {
    struct ree_error err;
    struct ree_strbuf text;
    if (cli_device_open(&bench->options, &bench->device, &err) != REE_OK) return cli_fail(&err);
    bench->is_cpu = !bench->options.spec || strcmp(bench->options.spec, "cpu") == 0;
    bench->n_threads = bench->options.n_threads ? (uint32_t)bench->options.n_threads
                                                : (uint32_t)omp_get_num_procs();
    bench->is_gpu = is_gpu(bench->device);
    if (bench->is_cpu && !model) bench_openblas_open(&bench->blas, bench->n_threads);
    open_peers(bench);
    if (sandbox_close(&err) != REE_OK) return cli_fail(&err);
    ree_strbuf_init(&text);
    enum ree_status status =
        model ? bench_model(bench, a->model, model, &a->inputs, a->json, &text, &err)
              : find_repop(a->what)(bench, &err);
    cli_progress_end();
    if (status == REE_OK && !model) {
        if (a->json)
            print_json(bench, &text);
        else
            print_text(bench, &text);
    }
    for (uint32_t i = 0; i < bench->n_peers; i++)
        ree_device_destroy(bench->peers[i].device);
    ree_device_destroy(bench->device);
    bench_openblas_close(&bench->blas);
    if (status == REE_OK) return cli_print(&text);
    ree_strbuf_finish(&text);
    cli_fail(&err);
    return status == REE_INVALID && !model ? CLI_USAGE : CLI_FAILED; // a wrong --size
}

int ree_run_bench(int argc, char **argv) {
    static struct bench bench;
    struct arguments a = {
        .inputs.seed = 1, .n_runs = 21, .filters = 64, .kernel = 3, .stride = 1, .groups = 1};
    struct ree_model *model = NULL;
    struct cli cli;
    int code = CLI_FAILED;
    if (cli_wants_help(argc, argv)) return cli_options_help(&ree_run_bench_options);
    cli_init(&cli, argc, argv);
    if (run_inputs_init(&a.inputs, argc)) {
        parse(&cli, &a);
        bench.options = a.device;
        bench.size = a.size;
        bench.n_runs = a.n_runs;
        bench.filters = a.filters;
        bench.kernel = a.kernel;
        bench.stride = a.stride;
        bench.groups = a.groups;
        const struct cli_start start = {.uses = sandbox_uses(bench.options.spec)};
        code = cli.failed ? CLI_USAGE : cli_start(&start);
        if (!code && a.model) code = bench_model_load(&bench, a.model, &a.inputs, &model);
        if (!code) code = run(&bench, &a, model);
    }
    run_inputs_finish(&a.inputs);
    ree_model_destroy(model);
    return code;
}
