// ree-run inspect: a model's inputs, outputs and contents, and whether ree can run it.
#include "inspect.h"

#include "commands.h"
#include "start.h"
#include "inputs.h"
#include "paths.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

struct options {
    const char *path;
    struct run_inputs inputs;
    bool json, hash, passes;
};

#define AT(field) offsetof(struct options, field)

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run inspect MODEL [options]: show a model's inputs, outputs and operators\n"
  "\n"
  "MODEL is an ONNX file, or a folder with a Hugging Face checkpoint (ree-run help export).\n"
  "\n"
  "Lists the inputs and outputs with their types and shapes (a name in a shape is a symbolic\n"
  "dimension, chosen by each run), the operator sets, the size of the weights in bytes, and\n"
  "every operator with the number of its nodes. Operators that ree cannot run are marked, with\n"
  "the reason; so are nodes that cannot run with their types or shapes. A warning is printed if\n"
  "the file declares a shape that is wrong.\n"
  "\n"},
    {.name = "MODEL", .kind = ROW_POSITIONAL, .at = AT(path), .path = CLI_READS_BESIDE},
    {.name = "--json", .kind = ROW_FLAG, .at = AT(json),
     .help = "print one JSON object instead of text"},
    {.name = "--hash", .kind = ROW_FLAG, .at = AT(hash),
     .help = "also print the SHA-256 of the graph and of the weights, which receipts contain "
             "(NUMERICS.md, \"Hashes\"); reads all weights"},
    {.name = "--passes", .kind = ROW_FLAG, .at = AT(passes),
     .help = "print the graph after each pass of the compiler, one line per node; then the "
             "dispatches that run on a device, in order, and where their intermediate tensors are "
             "in memory"},
    {.kind = ROW_GROUP, .group = &cli_inputs_group, .at = AT(inputs), .help =
  "  --dim NAME=SIZE, --input NAME=FILE\n"
  "                       with --passes: the sizes of symbolic dimensions (default 1), and the\n"
  "                       inputs if shapes depend on their values; see 'ree-run help run'\n"},
    CLI_START_ROW_PLAIN,
    {.kind = ROW_TEXT, .help =
  "\n"
  "examples\n"
  "  ree-run inspect tools/sample/digits.onnx\n"
  "  ree-run inspect model.onnx --json | python3 -m json.tool\n"
  "  ree-run inspect model.onnx --passes --dim batch=4\n"
  "\n"
  "exit status: 0 the model was read (runnable or not), 1 failure, 2 wrong usage, 124 "
  "--timeout\n"},
    // clang-format on
};
const struct cli_option_table ree_run_inspect_options = CLI_OPTION_TABLE(rows);

static size_t count_unsupported(const struct ree_model *model) {
    const struct ree_op_count *counts = ree_model_op_counts(model);
    size_t n = 0;
    for (size_t i = 0; i < ree_model_n_op_counts(model); i++)
        n += !counts[i].supported;
    return n;
}

static size_t count_notes(const struct ree_model *model, bool problems) {
    const struct ree_model_note *notes;
    size_t n = ree_model_notes(model, &notes), matching = 0;
    for (size_t i = 0; i < n; i++)
        matching += notes[i].is_problem == problems;
    return matching;
}

static void append_notes(struct strbuf *out, const struct ree_model *model, bool problems) {
    const struct ree_model_note *notes;
    size_t n = ree_model_notes(model, &notes);
    for (size_t i = 0; i < n; i++) {
        if (notes[i].is_problem != problems) continue;
        strbuf_printf(out, "  ");
        cli_append_name(out, notes[i].text);
        strbuf_append(out, "\n", 1);
    }
}

static void append_ports(struct strbuf *out, const char *title, size_t n,
                         const struct ree_port *(*port_of)(const struct ree_model *, size_t),
                         const struct ree_model *model) {
    strbuf_printf(out, "%s\n", title);
    for (size_t i = 0; i < n; i++) {
        const struct ree_port *port = port_of(model, i);
        strbuf_printf(out, "  ");
        cli_append_name(out, port->name);
        strbuf_printf(out, "  ");
        cli_append_port(out, port);
        strbuf_printf(out, "%s\n", port->optional ? "  (optional)" : "");
    }
}

// Calls `visit` once for each operator domain that the model's nodes use, ONNX's own domain first.
static void each_domain(const struct ree_model *model,
                        void (*visit)(void *user, const char *domain, int64_t version),
                        void *user) {
    const struct ree_op_count *counts = ree_model_op_counts(model);
    int64_t version = ree_model_opset(model, "");
    if (version) visit(user, "", version);
    for (size_t i = 0; i < ree_model_n_op_counts(model); i++) {
        bool seen = counts[i].domain[0] == 0;
        for (size_t j = 0; j < i && !seen; j++)
            seen = strcmp(counts[i].domain, counts[j].domain) == 0;
        if (!seen) visit(user, counts[i].domain, ree_model_opset(model, counts[i].domain));
    }
}

static void append_opset(void *user, const char *domain, int64_t version) {
    struct strbuf *out = user;
    strbuf_printf(out, "  ");
    cli_append_name(out, domain[0] ? domain : "ai.onnx");
    strbuf_printf(out, " %lld\n", (long long)version);
}

struct hashes {
    bool wanted;
    char graph[65], weights[65];
};

static void report_text(const struct ree_model *model, const struct hashes *hashes,
                        struct strbuf *out) {
    append_ports(out, "inputs", ree_model_n_inputs(model), ree_model_input, model);
    append_ports(out, "outputs", ree_model_n_outputs(model), ree_model_output, model);
    strbuf_printf(out, "operator sets (IR version %lld)\n", (long long)ree_model_ir_version(model));
    each_domain(model, append_opset, out);
    strbuf_printf(out, "weights\n  %llu bytes\n",
                  (unsigned long long)ree_model_weight_bytes(model));
    if (hashes->wanted)
        strbuf_printf(out, "SHA-256\n  graph    %s\n  weights  %s\n", hashes->graph,
                      hashes->weights);
    strbuf_printf(out, "operators\n");
    const struct ree_op_count *counts = ree_model_op_counts(model);
    for (size_t i = 0; i < ree_model_n_op_counts(model); i++) {
        strbuf_printf(out, "  %6u  ", counts[i].count);
        if (counts[i].domain[0]) {
            cli_append_name(out, counts[i].domain);
            strbuf_append(out, ".", 1);
        }
        cli_append_name(out, counts[i].op_type);
        if (!counts[i].supported) {
            strbuf_printf(out, "  NOT SUPPORTED: ");
            cli_append_name(out, counts[i].reason ? counts[i].reason : "no reason recorded");
        }
        strbuf_append(out, "\n", 1);
    }
    if (count_notes(model, false)) {
        strbuf_printf(out, "warnings\n");
        append_notes(out, model, false);
    }
    size_t n_unsupported = count_unsupported(model);
    if (count_notes(model, true)) {
        strbuf_printf(out, "ree cannot run this model\n");
        append_notes(out, model, true);
    }
    if (n_unsupported)
        strbuf_printf(out, "ree cannot run this model: %zu operator%s not supported\n",
                      n_unsupported, n_unsupported == 1 ? " is" : "s are");
    else if (!count_notes(model, true))
        strbuf_printf(out, "every operator is supported\n");
}

static void add_ports_json(cJSON *root, const char *title, size_t n,
                           const struct ree_port *(*port_of)(const struct ree_model *, size_t),
                           const struct ree_model *model) {
    cJSON *ports = cJSON_AddArrayToObject(root, title);
    for (size_t i = 0; i < n; i++) {
        const struct ree_port *port = port_of(model, i);
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", port->name);
        cJSON_AddStringToObject(item, "type", ree_dtype_name(port->dtype));
        if (port->kind == REE_SEQUENCE) cJSON_AddStringToObject(item, "kind", "sequence");
        if (port->nullable) cJSON_AddBoolToObject(item, "nullable", true);
        // Sizes are numbers, symbols strings, unknown sizes null. A shape that is not declared is
        // null too.
        cJSON *shape = port->has_shape ? cJSON_AddArrayToObject(item, "shape")
                                       : cJSON_AddNullToObject(item, "shape");
        for (uint32_t j = 0; port->has_shape && j < port->rank; j++) {
            cJSON *dim = port->dims[j] >= 0 ? cJSON_CreateNumber((double)port->dims[j])
                         : port->symbols[j] ? cJSON_CreateString(port->symbols[j])
                                            : cJSON_CreateNull();
            json_put(shape, dim);
        }
        cJSON_AddBoolToObject(item, "optional", port->optional);
        json_put(ports, item);
    }
}

static void add_notes_json(cJSON *root, const char *title, const struct ree_model *model,
                           bool problems) {
    const struct ree_model_note *notes;
    size_t n = ree_model_notes(model, &notes);
    cJSON *list = cJSON_AddArrayToObject(root, title);
    for (size_t i = 0; i < n; i++)
        if (notes[i].is_problem == problems) json_put(list, cJSON_CreateString(notes[i].text));
}

static void add_opset_json(void *user, const char *domain, int64_t version) {
    cJSON_AddNumberToObject(user, domain, (double)version);
}

static void report_json(const struct ree_model *model, const struct hashes *hashes,
                        struct strbuf *out) {
    cJSON *root = cJSON_CreateObject();
    add_ports_json(root, "inputs", ree_model_n_inputs(model), ree_model_input, model);
    add_ports_json(root, "outputs", ree_model_n_outputs(model), ree_model_output, model);
    cJSON_AddNumberToObject(root, "ir_version", (double)ree_model_ir_version(model));
    cJSON *opsets = cJSON_AddObjectToObject(root, "opsets");
    each_domain(model, add_opset_json, opsets);
    cJSON_AddNumberToObject(root, "weight_bytes", (double)ree_model_weight_bytes(model));
    if (hashes->wanted) {
        cJSON_AddStringToObject(root, "graph_sha256", hashes->graph);
        cJSON_AddStringToObject(root, "weights_sha256", hashes->weights);
    }
    const struct ree_op_count *counts = ree_model_op_counts(model);
    cJSON *operators = cJSON_AddArrayToObject(root, "operators");
    for (size_t i = 0; i < ree_model_n_op_counts(model); i++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "domain", counts[i].domain);
        cJSON_AddStringToObject(item, "type", counts[i].op_type);
        cJSON_AddNumberToObject(item, "count", counts[i].count);
        cJSON_AddBoolToObject(item, "supported", counts[i].supported);
        if (counts[i].reason) cJSON_AddStringToObject(item, "reason", counts[i].reason);
        json_put(operators, item);
    }
    add_notes_json(root, "problems", model, true);
    add_notes_json(root, "warnings", model, false);
    cJSON_AddBoolToObject(root, "runnable",
                          count_unsupported(model) == 0 && count_notes(model, true) == 0);
    if (!operators) out->failed = true;
    cli_append_json(out, root, true);
}

static int inspect(const char *path, bool json, struct hashes *hashes) {
    struct strbuf text;
    struct ree_error err;
    struct ree_model *model;
    strbuf_init(&text);
    if (ree_model_inspect(path, &model, &err) != REE_OK) return cli_fail(&err);
    if (hashes->wanted &&
        (ree_model_graph_sha256(model, hashes->graph, &err) != REE_OK ||
         ree_model_weights_sha256(model, &cli_reports, hashes->weights, &err) != REE_OK)) {
        ree_model_destroy(model);
        return cli_fail(&err);
    }
    if (json)
        report_json(model, hashes, &text);
    else
        report_text(model, hashes, &text);
    ree_model_destroy(model);
    return cli_print(&text);
}

static int parse_and_run(struct cli *cli, struct options *o) {
    cli_options_parse(cli, &ree_run_inspect_options, o);
    if (!o->path) cli_usage(cli, "no model given");
    if (o->json && o->passes) cli_usage(cli, "--json and --passes exclude each other");
    if (o->hash && o->passes) cli_usage(cli, "--hash and --passes exclude each other");
    if (!o->passes && o->inputs.n_dims + o->inputs.n_args)
        cli_usage(cli, "--dim and --input require --passes");
    if (cli->failed) return CLI_USAGE;
    int code = cli_start(&(struct cli_start){.uses = SANDBOX_DEVICE});
    if (code) return code;
    struct hashes hashes = {.wanted = o->hash};
    return o->passes ? inspect_passes(o->path, &o->inputs) : inspect(o->path, o->json, &hashes);
}

int ree_run_inspect(int argc, char **argv) {
    struct cli cli;
    struct options o = {.inputs.random = true};
    int code = CLI_FAILED;
    if (cli_wants_help(argc, argv)) return cli_options_help(&ree_run_inspect_options);
    cli_init(&cli, argc, argv);
    if (run_inputs_init(&o.inputs, argc)) code = parse_and_run(&cli, &o);
    run_inputs_finish(&o.inputs);
    return code;
}
