// ree-run trace: describes the run that a trace belongs to.
#include <cjson/cJSON.h>
#include <string.h>

#include "start.h"
#include "base/json.h"
#include "trace/trace.h"
#include "paths.h"

static const char help[] =
    "ree-run trace FILE [--json]: show what a trace contains\n"
    "\n"
    "FILE was written by --trace of 'run' or 'generate'. trace checks the whole file: the printed\n"
    "values belong to the content that the root commits to.\n"
    "\n"
    "  --json      print one JSON object instead of text\n" CLI_START_HELP_PLAIN "\n"
    "exit status: 0 success, 1 failure, 2 wrong usage, 124 --timeout\n";

static uint64_t n_caches(const struct ree_trace_header *h) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < h->n_inputs; i++)
        n += h->inputs[i].cache_axis >= 0;
    return n;
}

static void report_text(const struct ree_trace *t, struct ree_strbuf *out) {
    const struct ree_trace_header *h = &t->header;
    char root[65];
    ree_hex(t->root, root);
    ree_strbuf_printf(out, "root           %s\nsteps          %llu\n", root,
                      (unsigned long long)t->n_steps);
    ree_strbuf_printf(out,
                      "model graph    %s\nmodel weights  %s\nnodes          %u\n"
                      "inputs         %u, of which caches %llu\nconstants      %u\n",
                      h->graph_sha256, h->weights_sha256, h->n_nodes, h->n_inputs,
                      (unsigned long long)n_caches(h), h->n_constants);
    ree_strbuf_printf(out, "numerics       ");
    cli_append_name(out, h->numerics);
    ree_strbuf_printf(out, "\noperation set  ");
    cli_append_name(out, h->operation_set);
    if (h->prefill_chunk) ree_strbuf_printf(out, "\nprefill chunk  %u tokens", h->prefill_chunk);
    ree_strbuf_printf(out, "\n");
}

static void report_json(const struct ree_trace *t, struct ree_strbuf *out) {
    const struct ree_trace_header *h = &t->header;
    char root[65];
    ree_hex(t->root, root);
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "root", root);
    cJSON_AddNumberToObject(object, "n_steps", (double)t->n_steps);
    cJSON_AddStringToObject(object, "graph_sha256", h->graph_sha256);
    cJSON_AddStringToObject(object, "weights_sha256", h->weights_sha256);
    cJSON_AddStringToObject(object, "numerics", h->numerics);
    cJSON_AddStringToObject(object, "operation_set", h->operation_set);
    cJSON_AddNumberToObject(object, "prefill_chunk", h->prefill_chunk);
    cJSON_AddNumberToObject(object, "n_inputs", h->n_inputs);
    cJSON_AddNumberToObject(object, "n_caches", (double)n_caches(h));
    cJSON_AddNumberToObject(object, "n_constants", h->n_constants);
    cJSON *nodes = cJSON_AddArrayToObject(object, "nodes");
    for (uint32_t i = 0; i < h->n_nodes; i++) {
        cJSON *node = cJSON_CreateObject();
        cJSON_AddStringToObject(node, "name", h->nodes[i].name);
        cJSON_AddStringToObject(node, "domain", h->nodes[i].domain);
        cJSON_AddStringToObject(node, "op_type", h->nodes[i].op_type);
        cJSON_AddNumberToObject(node, "opset", (double)h->nodes[i].opset);
        cJSON_AddNumberToObject(node, "n_outputs", h->nodes[i].n_outputs);
        ree_json_put(nodes, node);
    }
    if (!(nodes && (uint32_t)cJSON_GetArraySize(nodes) == h->n_nodes)) out->failed = true;
    cli_append_json(out, object, false);
}

int ree_run_trace(int argc, char **argv) {
    struct cli cli;
    struct ree_error err;
    struct ree_strbuf text;
    const char *path = NULL;
    bool json = false;
    ree_strbuf_init(&text);
    cli_init(&cli, argc, argv);
    while (cli_next(&cli)) {
        if (cli_flag(&cli, "--help")) return cli_print_text(help);
        if (cli_flag(&cli, "--json"))
            json = true;
        else if (!cli_positional_path(&cli, CLI_READS, &path))
            cli_unknown(&cli);
    }
    if (!cli.failed && !path) cli_usage(&cli, "no trace given");
    if (cli.failed) return CLI_USAGE;
    int code = cli_start(&(struct cli_start){0});
    if (code) return code;
    struct ree_trace *trace;
    if (ree_trace_load(path, &trace, &err) != REE_OK) return cli_fail(&err);
    if (json)
        report_json(trace, &text);
    else
        report_text(trace, &text);
    ree_trace_destroy(trace);
    return cli_print(&text);
}
