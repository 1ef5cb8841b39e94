// ree-run plan: where a model is divided into stages, and why.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "option_groups.h"
#include "quantize.h"
#include "start.h"
#include "paths.h"
#include "status.h"

struct options {
    const char *model, *devices, *out, *write;
    uint64_t n_partitions, n_devices, n_processes, n_cache_slots;
    struct ree_plan_options plan;
    struct cli_quantize quantize;
    bool json;
};

#define AT(field) offsetof(struct options, field)

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run plan MODEL --n-partitions N [options]: show how and why a model is divided into "
  "stages\n"
  "\n"
  "A model may run as N stages, one after the other, each on its own device or in its own\n"
  "process. The bits do not change: a plan decides where nodes run, never what they compute.\n"
  "MODEL is any ONNX file, or a folder with a language model. plan runs nothing and opens no\n"
  "device. A run with the same options uses the same plan.\n"
  "\n"
  "A stage is a contiguous range of one order of the nodes, which follows only from the graph.\n"
  "Costs also follow from the graph: bytes of weights that one row (a token) reads, bytes of\n"
  "caches, floating point operations. So everybody gets the same plan. Columns for each stage:\n"
  "  nodes     without control nodes (masks, positions, sizes), of which each stage has a copy\n"
  "  weights   bytes; a tensor that two stages read counts in both\n"
  "  state     bytes of caches for each token of a sequence\n"
  "  flops     for each token\n"
  "  share     of the work of all stages; a plan makes the largest share as small as possible,\n"
  "            and prefers cuts that a single tensor crosses\n"
  "  contents  layers and what surrounds them, found from the graph's structure\n"
  "For each cut: the tensors that cross it, and their bytes per token.\n"
  "\n"
  "number of stages\n"},
    {.name = "MODEL", .kind = ROW_POSITIONAL, .at = AT(model), .path = CLI_READS_BESIDE},
    {.name = "--n-partitions", .value = "N", .kind = ROW_NUMBER, .at = AT(n_partitions), .min = 1, .max = REE_MAX_STAGES,
     .help = "the number of stages"},
    {.name = "--device", .value = "A,B,...", .kind = ROW_STRING, .at = AT(devices), .choices = CLI_DEVICE_CHOICES,
     .help = "the devices, assigned to the stages in turn; without --n-partitions, at least one "
             "stage per device"},
    {.name = "--processes", .value = "N", .kind = ROW_NUMBER, .at = AT(n_processes), .min = 1, .max = REE_MAX_STAGES,
     .help = "plan for N processes, each with these devices; without --n-partitions, at least one "
             "stage per process, and at least one per device of a process"},
    {.name = "--max-device-memory", .value = "SIZE", .kind = ROW_SIZE, .at = AT(plan.max_device_memory),
     .help = "maximum bytes on a device (600M, 2G; powers of 1024): the weights of the stage that "
             "runs, the caches of all its stages, and a sixteenth for intermediate results; "
             "without --n-partitions, as few stages as possible"},
    {.name = "--micro-batches", .value = "N", .kind = ROW_NUMBER, .at = AT(n_cache_slots), .min = 1, .max = 256,
     .help = "with --max-device-memory: count the caches of N groups of prompts"},
    {.name = "--plan", .value = "FILE", .kind = ROW_STRING, .at = AT(plan.plan_path), .path = CLI_READS,
     .help = "use a plan that -o wrote; its ends may have been edited"},
    {.kind = ROW_TEXT, .help =
  "  none of these        use the stages that the nodes of an ONNX file name (pipeline_stage in\n"
  "                       device_configurations or in their metadata), if they do\n"},
    {.name = "--context", .value = "TOKENS", .kind = ROW_NUMBER, .at = AT(plan.context), .min = 1, .max = 1 << 30,
     .help = "length of the text for which caches are counted (default 1024, as in runs)"},

    {.kind = ROW_TEXT, .help = "\nweights\n"},
    {.kind = ROW_GROUP, .group = &cli_quantize_group, .at = AT(quantize), .help = CLI_QUANTIZE_HELP},

    {.kind = ROW_TEXT, .help = "\nresults\n"},
    {.name = "-o", .value = "PLAN.json", .kind = ROW_STRING, .at = AT(out), .path = CLI_WRITES,
     .help = "write the plan to a file. Readers use only \"ends_with\" of each stage (the name of "
             "the value that its last node computes) and the hash of the graph, which must be the "
             "model's"},
    {.name = "--write", .value = "OUT.onnx", .kind = ROW_STRING, .at = AT(write), .path = CLI_WRITES,
     .help = "write the model again, unchanged except for notes on its nodes: ree.role, "
             "ree.layer, ree.phase, ree.values (the kind of each input) and pipeline_stage as "
             "metadata, and pipeline_stage as a device configuration. For ree it is the same "
             "model, with the same hashes. If the weights are in other files, OUT must be in "
             "MODEL's folder"},
    {.name = "--json", .kind = ROW_FLAG, .at = AT(json),
     .help = "print the content of the file of -o instead of the table"},
    CLI_START_ROW_PLAIN,
    {.kind = ROW_TEXT, .help =
  "\n"
  "examples\n"
  "  ree-run plan tools/sample/stories --n-partitions 3\n"
  "  ree-run plan model.onnx --device cuda:0,cuda:1 -o plan.json\n"
  "  ree-run plan ./Qwen2.5-0.5B --max-device-memory 600M --context 4096\n"
  "\n"
  "exit status: 0 success, 1 failure, 2 wrong usage, 124 --timeout\n"},
    // clang-format on
};
const struct cli_option_table ree_run_plan_options = CLI_OPTION_TABLE(rows);

static const char *next_device(const char *list) {
    list += cli_first_device(list);
    return *list ? list + 1 : NULL;
}

static void parse(struct cli *cli, struct options *o) {
    cli_options_parse(cli, &ree_run_plan_options, o);
    if (cli->failed) return;
    if (!o->model) cli_usage(cli, "no model given");
    cli_quantize_check(cli, &o->quantize);
    if (o->plan.plan_path && o->n_partitions)
        cli_usage(cli, "--plan and --n-partitions exclude each other");
    if (o->devices) o->n_devices = cli_count_devices(o->devices);
    if (o->devices && !o->devices[0])
        cli_usage(cli, "--device requires devices separated by commas");
    if (o->n_partitions && o->n_devices > o->n_partitions)
        cli_usage(cli, "--device names %llu devices, but --n-partitions %llu gives fewer stages",
                  (unsigned long long)o->n_devices, (unsigned long long)o->n_partitions);
}

// The table

static void append_device(const struct options *o, size_t stage, struct strbuf *out) {
    if (!o->devices) return;
    const char *device = o->devices;
    for (size_t i = stage % (size_t)o->n_devices; i > 0; i--)
        device = next_device(device);
    char name[256];
    size_t n = cli_first_device(device);
    snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : (int)sizeof name, device);
    cli_append_name(out, name);
}

static void append_stage(const struct options *o, const struct ree_plan_stage *stage, size_t i,
                         double total, int width, struct strbuf *out) {
    struct strbuf device;
    strbuf_init(&device);
    append_device(o, i, &device);
    out->failed = out->failed || device.failed;
    strbuf_printf(out, "%5zu  %-*s%6zu %13llu %9llu %14llu %5.1f%%  ", i, width,
                  device.data ? device.data : "", stage->n_nodes,
                  (unsigned long long)stage->weight_bytes,
                  (unsigned long long)stage->kv_cache_bytes, (unsigned long long)stage->flops,
                  total > 0 ? 100 * (double)stage->work / total : 0.0);
    cli_append_name(out, stage->contents);
    strbuf_printf(out, "\n");
    strbuf_finish(&device);
}

// Appends the branches of merged decoders, which have one for each phase.
static enum ree_status append_branches(const struct ree_plan *p, size_t n, struct strbuf *out,
                                       struct ree_error *err) {
    for (size_t i = 0; i < n; i++) {
        struct ree_plan_branch branch = {.size = sizeof branch};
        TRY(ree_plan_branch(p, i, &branch, err));
        strbuf_printf(out, "phase     %s: %s of ", branch.phases, branch.branch);
        cli_append_name(out, branch.node);
        strbuf_printf(out, "\n");
    }
    return REE_OK;
}

static void append_stages(const struct options *o, const struct ree_plan_stage *stages, size_t n,
                          int width, struct strbuf *out) {
    double total = 0;
    for (size_t i = 0; i < n; i++)
        total += (double)stages[i].work;
    strbuf_printf(out, "\nstage  %-*s%6s %13s %9s %14s %6s  contents\n", width,
                  width ? "device" : "", "nodes", "weights", "state", "flops", "share");
    for (size_t i = 0; i < n; i++)
        append_stage(o, &stages[i], i, total, width, out);
    if (n > 1) strbuf_printf(out, "\n");
    for (size_t i = 0; i + 1 < n; i++) {
        strbuf_printf(out, "cut %zu|%zu  ", i, i + 1);
        cli_append_name(out, stages[i].cut_reason);
        strbuf_printf(out, "\n");
    }
}

static enum ree_status report(const struct options *o, const struct ree_plan *p, struct strbuf *out,
                              struct ree_error *err) {
    struct ree_plan_info info = {.size = sizeof info};
    int width = 0;
    TRY(ree_plan_info(p, &info, err));
    for (const char *at = o->devices; at; at = next_device(at)) {
        size_t n = cli_first_device(at);
        if (n < 60 && (int)n + 2 > width) width = (int)n + 2;
    }
    if (width && width < 8) width = 8;
    strbuf_printf(out, "graph     %s\nstages    %zu, %s\n", info.graph_sha256, info.n_stages,
                  info.origin);
    if (info.n_kv_caches)
        strbuf_printf(out, "caches    %zu, counted for %llu tokens\n", info.n_kv_caches,
                      (unsigned long long)info.context);
    else
        strbuf_printf(out, "caches    none%s\n",
                      info.is_language_model ? "" : " (not a language model)");
    TRY(append_branches(p, info.n_branches, out, err));
    struct ree_plan_stage *stages = calloc(info.n_stages, sizeof *stages);
    if (!stages) return memory_error(err);
    enum ree_status status = REE_OK;
    for (size_t i = 0; i < info.n_stages && status == REE_OK; i++) {
        stages[i].size = sizeof *stages;
        status = ree_plan_stage(p, i, &stages[i], err);
    }
    if (status == REE_OK) append_stages(o, stages, info.n_stages, width, out);
    free(stages);
    return status;
}

// All results

static enum ree_status write_results(const struct options *o, const struct ree_plan *p,
                                     struct strbuf *text, struct ree_error *err) {
    if (o->out) TRY(ree_plan_save(p, o->out, err));
    if (o->write) TRY(ree_plan_write_model(p, o->write, err));
    if (!o->json) return report(o, p, text, err);
    char *json;
    TRY(ree_plan_json(p, &json, err));
    strbuf_append(text, json, strlen(json));
    free(json);
    return REE_OK;
}

static int run(struct options *o) {
    struct ree_error err;
    struct ree_plan *p;
    struct strbuf text;
    strbuf_init(&text);
    o->plan.size = sizeof o->plan;
    o->plan.n_partitions = (uint32_t)o->n_partitions;
    o->plan.n_devices = (uint32_t)o->n_devices;
    o->plan.n_processes = (uint32_t)o->n_processes;
    o->plan.n_cache_slots = (uint32_t)o->n_cache_slots;
    o->plan.progress = cli_reports;
    struct ree_model_options model = {.size = sizeof model};
    cli_quantize_model(&o->quantize, &model);
    o->plan.model = &model;
    enum ree_status status = ree_plan_create(o->model, &o->plan, &p, &err);
    cli_progress_end();
    if (status == REE_OK) status = write_results(o, p, &text, &err);
    ree_plan_destroy(p);
    if (status == REE_OK) return cli_print(&text);
    strbuf_finish(&text);
    return cli_fail(&err);
}

int ree_run_plan(int argc, char **argv) {
    struct cli cli;
    struct options o = {0};
    if (cli_wants_help(argc, argv)) return cli_options_help(&ree_run_plan_options);
    cli_init(&cli, argc, argv);
    parse(&cli, &o);
    int code = cli.failed ? CLI_USAGE : cli_start(&(struct cli_start){0});
    return code ? code : run(&o);
}
