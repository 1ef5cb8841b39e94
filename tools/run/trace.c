// ree-run trace: describes the run that a trace belongs to.
#include <cjson/cJSON.h>
#include <string.h>

#include "commands.h"
#include "start.h"
#include "json.h"
#include "paths.h"

struct options {
    const char *path;
    bool json;
};

#define AT(field) offsetof(struct options, field)

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run trace FILE [--json]: show what a trace contains\n"
  "\n"
  "FILE was written by --trace of 'run', 'generate' or 'train'. trace checks the whole file: the\n"
  "printed values belong to the content that the root commits to.\n"
  "\n"},
    {.name = "FILE", .kind = ROW_POSITIONAL, .at = AT(path), .path = CLI_READS},
    {.name = "--json", .kind = ROW_FLAG, .at = AT(json),
     .help = "print one JSON object instead of text"},
    CLI_START_ROW_PLAIN,
    {.kind = ROW_TEXT, .help =
  "\n"
  "exit status: 0 success, 1 failure, 2 wrong usage, 124 --timeout\n"},
    // clang-format on
};
const struct cli_option_table ree_run_trace_options = CLI_OPTION_TABLE(rows);

static void report_text(const struct ree_trace_info *h, struct strbuf *out) {
    strbuf_printf(out, "root           %s\nsteps          %llu\n", h->root,
                  (unsigned long long)h->n_steps);
    strbuf_printf(out,
                  "model graph    %s\nmodel weights  %s\nnodes          %u\n"
                  "inputs         %u, of which caches %u\nconstants      %u\n",
                  h->graph_sha256, h->weights_sha256, h->n_nodes, h->n_inputs, h->n_caches,
                  h->n_constants);
    strbuf_printf(out, "numerics       ");
    cli_append_name(out, h->numerics);
    strbuf_printf(out, "\noperation set  ");
    cli_append_name(out, h->operation_set);
    if (h->prefill_chunk) strbuf_printf(out, "\nprefill chunk  %u tokens", h->prefill_chunk);
    strbuf_printf(out, "\n");
}

static void report_json(const struct ree_trace *t, const struct ree_trace_info *h,
                        struct strbuf *out) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "root", h->root);
    cJSON_AddNumberToObject(object, "n_steps", (double)h->n_steps);
    cJSON_AddStringToObject(object, "graph_sha256", h->graph_sha256);
    cJSON_AddStringToObject(object, "weights_sha256", h->weights_sha256);
    cJSON_AddStringToObject(object, "numerics", h->numerics);
    cJSON_AddStringToObject(object, "operation_set", h->operation_set);
    cJSON_AddNumberToObject(object, "prefill_chunk", h->prefill_chunk);
    cJSON_AddNumberToObject(object, "n_inputs", h->n_inputs);
    cJSON_AddNumberToObject(object, "n_caches", h->n_caches);
    cJSON_AddNumberToObject(object, "n_constants", h->n_constants);
    cJSON *nodes = cJSON_AddArrayToObject(object, "nodes");
    for (uint32_t i = 0; i < h->n_nodes; i++) {
        struct ree_node_info info = {.size = sizeof info};
        cJSON *node = cJSON_CreateObject();
        ree_trace_node(t, i, &info, NULL);
        cJSON_AddStringToObject(node, "name", info.name);
        cJSON_AddStringToObject(node, "domain", info.domain);
        cJSON_AddStringToObject(node, "op_type", info.op_type);
        cJSON_AddNumberToObject(node, "opset", (double)info.opset);
        cJSON_AddNumberToObject(node, "n_outputs", info.n_outputs);
        json_put(nodes, node);
    }
    if (!(nodes && (uint32_t)cJSON_GetArraySize(nodes) == h->n_nodes)) out->failed = true;
    cli_append_json(out, object, false);
}

int ree_run_trace(int argc, char **argv) {
    struct cli cli;
    struct ree_error err;
    struct strbuf text;
    struct options o = {0};
    strbuf_init(&text);
    if (cli_wants_help(argc, argv)) return cli_options_help(&ree_run_trace_options);
    cli_init(&cli, argc, argv);
    cli_options_parse(&cli, &ree_run_trace_options, &o);
    if (!cli.failed && !o.path) cli_usage(&cli, "no trace given");
    if (cli.failed) return CLI_USAGE;
    int code = cli_start(&(struct cli_start){0});
    if (code) return code;
    struct ree_trace *trace;
    struct ree_trace_info info = {.size = sizeof info};
    if (ree_trace_load(o.path, &trace, &err) != REE_OK) return cli_fail(&err);
    ree_trace_info(trace, &info, NULL);
    if (o.json)
        report_json(trace, &info, &text);
    else
        report_text(&info, &text);
    ree_trace_destroy(trace);
    return cli_print(&text);
}
