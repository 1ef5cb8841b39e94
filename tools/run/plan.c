// ree-run plan: where a model is divided into stages, and why.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"
#include "start.h"
#include "graph/ir/mapping.h"
#include "graph/partition/notes.h"
#include "graph/partition/plan_file.h"
#include "model_plan.h"
#include "paths.h"

struct options {
    const char *model, *devices, *out, *write;
    uint64_t context;
    struct model_plan_options plan;
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
    {.name = "--n-partitions", .value = "N", .kind = ROW_NUMBER, .at = AT(plan.n_stages), .min = 1, .max = REE_MAX_STAGES,
     .help = "the number of stages"},
    {.name = "--device", .value = "A,B,...", .kind = ROW_STRING, .at = AT(devices), .choices = CLI_DEVICE_CHOICES,
     .help = "the devices, assigned to the stages in turn; without --n-partitions, at least one "
             "stage per device"},
    {.name = "--processes", .value = "N", .kind = ROW_NUMBER, .at = AT(plan.n_ranks), .min = 1, .max = REE_MAX_STAGES,
     .help = "plan for N processes, each with these devices; without --n-partitions, at least one "
             "stage per process and device"},
    {.name = "--max-device-memory", .value = "SIZE", .kind = ROW_SIZE, .at = AT(plan.memory),
     .help = "maximum bytes on a device (600M, 2G; powers of 1024): the weights of the stage that "
             "runs, the caches of all its stages, and a sixteenth for intermediate results; "
             "without --n-partitions, as few stages as possible"},
    {.name = "--micro-batches", .value = "N", .kind = ROW_NUMBER, .at = AT(plan.n_cache_slots), .min = 1, .max = 256,
     .help = "with --max-device-memory: count the caches of N groups of prompts"},
    {.name = "--plan", .value = "FILE", .kind = ROW_STRING, .at = AT(plan.plan_path), .path = CLI_READS,
     .help = "use a plan that -o wrote; its ends may have been edited"},
    {.kind = ROW_TEXT, .help =
  "  none of these        use the stages that the nodes of an ONNX file name (pipeline_stage in\n"
  "                       device_configurations or in their metadata), if they do\n"},
    {.name = "--context", .value = "TOKENS", .kind = ROW_NUMBER, .at = AT(plan.context), .min = 1, .max = 1 << 30,
     .help = "length of the text for which caches are counted (default 1024, as in runs)"},

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
    if (o->plan.plan_path && o->plan.n_stages)
        cli_usage(cli, "--plan and --n-partitions exclude each other");
    if (o->devices) o->plan.n_devices = cli_count_devices(o->devices);
    if (o->devices && !o->devices[0])
        cli_usage(cli, "--device requires devices separated by commas");
    if (o->plan.n_stages && o->plan.n_devices > o->plan.n_stages)
        cli_usage(cli, "--device names %llu devices, but --n-partitions %llu gives fewer stages",
                  (unsigned long long)o->plan.n_devices, (unsigned long long)o->plan.n_stages);
}

// The table

static void append_device(const struct options *o, size_t stage, struct ree_strbuf *out) {
    if (!o->devices) return;
    const char *device = o->devices;
    for (size_t i = stage % (size_t)o->plan.n_devices; i > 0; i--)
        device = next_device(device);
    char name[256];
    size_t n = cli_first_device(device);
    snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : (int)sizeof name, device);
    cli_append_name(out, name);
}

static void append_stage(const struct options *o, const struct model_plan *p, size_t i,
                         double total, const char *contents, int width, struct ree_strbuf *out) {
    const struct ree_stage_cost *cost = &p->partition.costs[i];
    struct ree_strbuf device;
    ree_strbuf_init(&device);
    append_device(o, i, &device);
    out->failed = out->failed || device.failed;
    ree_strbuf_printf(out, "%5zu  %-*s%6zu %13llu %9llu %14llu %5.1f%%  ", i, width,
                      device.data ? device.data : "", cost->n_nodes,
                      (unsigned long long)cost->weight_bytes,
                      (unsigned long long)cost->kv_cache_bytes, (unsigned long long)cost->flops,
                      total > 0 ? 100 * (double)cost->work / total : 0.0);
    cli_append_name(out, contents);
    ree_strbuf_printf(out, "\n");
    ree_strbuf_finish(&device);
}

// Lists the branches of merged decoders, which have one for each phase.
static void append_branches(const struct ree_graph *graph, struct ree_strbuf *out) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct ree_node *node = graph->nodes[i];
        for (size_t k = 0; k < node->n_attrs; k++) {
            const struct ree_attr *branch = &node->attrs[k];
            if (!branch->graph) continue;
            uint32_t phases = ree_branch_phases(graph, node, branch);
            if (phases == (REE_PHASE_PREFILL | REE_PHASE_DECODE)) continue;
            char label[320];
            ree_strbuf_printf(out, "phase     %s: %s of ", ree_phases_name(phases), branch->name);
            cli_append_name(out, ree_node_label(node, label, sizeof label));
            ree_strbuf_printf(out, "\n");
        }
    }
}

static void report(const struct options *o, const struct model_plan *p, const char *const *contents,
                   struct ree_strbuf *out) {
    const struct ree_partition *plan = &p->partition;
    double total = 0;
    int width = 0;
    for (size_t i = 0; i < plan->n_stages; i++)
        total += (double)plan->costs[i].work;
    for (const char *at = o->devices; at; at = next_device(at)) {
        size_t n = cli_first_device(at);
        if (n < 60 && (int)n + 2 > width) width = (int)n + 2;
    }
    if (width && width < 8) width = 8;
    ree_strbuf_printf(out, "graph     %s\nstages    %zu, %s\n", p->graph_sha256, plan->n_stages,
                      p->origin);
    if (p->options.n_kv_caches)
        ree_strbuf_printf(out, "caches    %zu, counted for %llu tokens\n", p->options.n_kv_caches,
                          (unsigned long long)p->partition.context);
    else
        ree_strbuf_printf(out, "caches    none%s\n",
                          p->is_language_model ? "" : " (not a language model)");
    if (p->options.n_kv_caches) append_branches(p->model->graph, out);
    ree_strbuf_printf(out, "\nstage  %-*s%6s %13s %9s %14s %6s  contents\n", width,
                      width ? "device" : "", "nodes", "weights", "state", "flops", "share");
    for (size_t i = 0; i < plan->n_stages; i++)
        append_stage(o, p, i, total, contents[i], width, out);
    if (plan->n_stages > 1) ree_strbuf_printf(out, "\n");
    for (size_t i = 0; i + 1 < plan->n_stages; i++) {
        ree_strbuf_printf(out, "cut %zu|%zu  ", i, i + 1);
        cli_append_name(out, plan->cuts[i].reason);
        ree_strbuf_printf(out, "\n");
    }
}

// The annotated file

static bool has_external_data(const struct ree_graph *graph) {
    for (const struct ree_mapping *m = graph->mappings; m; m = m->next)
        if (m->is_file) return true;
    return false;
}

static bool folder_of(const char *path, struct stat *out) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    bool found = folder && stat(folder, out) == 0;
    free(folder);
    return found;
}

static enum ree_status check_folder(const struct model_plan *p, const char *out,
                                    struct ree_error *err) {
    struct stat here, there;
    if (stat(p->model_path, &here) == 0 && S_ISDIR(here.st_mode))
        return ree_fail(err, REE_INVALID,
                        "%s is a checkpoint's folder: export it with 'ree-run export', then use "
                        "--write with the ONNX file",
                        p->model_path);
    if (!has_external_data(p->model->graph)) return REE_OK;
    bool same = folder_of(p->model_path, &here) && folder_of(out, &there) &&
                here.st_dev == there.st_dev && here.st_ino == there.st_ino;
    if (same) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "%s: must be in the folder of %s, whose weights are in files of that folder",
                    out, p->model_path);
}

static enum ree_status write_notes(const struct model_plan *p, const char *path,
                                   const struct ree_file_nodes *file, struct ree_error *err) {
    struct ree_arena arena;
    ree_arena_init(&arena);
    struct ree_node_notes *notes = ree_arena_alloc_array(&arena, file->n + 1, sizeof *notes);
    enum ree_status status =
        notes ? REE_OK : ree_fail(err, REE_NO_MEMORY, "%s: out of memory", path);
    if (status == REE_OK)
        status = ree_partition_notes(p->model->graph, &p->partition, &p->annotations, file, &arena,
                                     notes, err);
    if (status == REE_OK)
        status = ree_file_nodes_write(path, file, notes, REE_PIPELINE_CONFIGURATION,
                                      (uint32_t)p->partition.n_stages, err);
    ree_arena_finish(&arena);
    return status;
}

static enum ree_status write_model(const struct model_plan *p, const char *path,
                                   struct ree_error *err) {
    struct ree_mapping *file;
    struct ree_file_nodes nodes;
    REE_TRY(check_folder(p, path, err));
    REE_TRY(ree_mapping_of_path(p->model_path, &file, err));
    enum ree_status status = ree_file_nodes_find(file->data, file->size, &nodes, err);
    if (status == REE_OK) {
        status = write_notes(p, path, &nodes, err);
        ree_file_nodes_finish(&nodes);
    } else {
        ree_fail_prefix(err, "%s", p->model_path);
    }
    ree_mapping_destroy(file);
    return status;
}

// All results

static enum ree_status write_results(const struct options *o, const struct model_plan *p,
                                     const char *const *contents, struct ree_strbuf *text,
                                     struct ree_error *err) {
    struct ree_plan_file plan = {.graph = p->model->graph,
                                 .partition = &p->partition,
                                 .graph_sha256 = p->graph_sha256,
                                 .context = p->partition.context,
                                 .contents = contents};
    if (o->out) REE_TRY(ree_plan_file_write(o->out, &plan, err));
    if (o->write) REE_TRY(write_model(p, o->write, err));
    if (o->json) return ree_plan_file_print(&plan, text, err);
    report(o, p, contents, text);
    return REE_OK;
}

static int run(const struct options *o) {
    struct ree_error err;
    struct model_plan p;
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    char **contents = NULL;
    enum ree_status status = model_plan_make(o->model, &o->plan, &p, &err);
    cli_progress_end();
    if (status == REE_OK) {
        contents = calloc(p.partition.n_stages, sizeof *contents);
        if (!contents) status = ree_fail(&err, REE_NO_MEMORY, "out of memory");
    }
    for (size_t i = 0; status == REE_OK && i < p.partition.n_stages; i++) {
        struct ree_strbuf buf;
        ree_strbuf_init(&buf);
        ree_stage_contents(p.model->graph, &p.annotations, &p.partition, i, &buf);
        contents[i] = ree_strbuf_take(&buf);
        if (!contents[i]) status = ree_fail(&err, REE_NO_MEMORY, "out of memory");
    }
    if (status == REE_OK) status = write_results(o, &p, (const char *const *)contents, &text, &err);
    for (size_t i = 0; contents && i < p.partition.n_stages; i++)
        free(contents[i]);
    free(contents);
    model_plan_finish(&p);
    if (status == REE_OK) return cli_print(&text);
    ree_strbuf_finish(&text);
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
