// ree-run referee: who is right about one node.
#include <cjson/cJSON.h>
#include <string.h>

#include "audit/referee.h"
#include "cli.h"

#define CLI_NEITHER 1
#define CLI_UNDECIDED 2

static const char help[] =
    "ree-run referee CLAIM MODEL --inputs DIR [--json]: who is right about one node\n"
    "\n"
    "CLAIM was written by 'ree-run dispute': the first node in which two runs differ. DIR holds\n"
    "what that node read, as either party's run wrote it (--dump-tensors REGEX --dump-folder DIR,\n"
    "of the same prompt or inputs; for caches, all steps up to the one disputed).\n"
    "\n"
    "Checks that every digest of the claim leads to both roots, that MODEL is the model of both\n"
    "traces and the node one of it, and that the values in DIR are those which both parties are\n"
    "committed to. Then computes that node, and no other, on this machine's processor, and "
    "compares\n"
    "with what the parties say that it gave.\n"
    "\n"
    "  --json      one JSON object instead of text\n"
    "\n"
    "exit status: 0 A is right or B is right, 1 neither is, 2 it cannot be decided (or wrong "
    "usage)\n";

static void text_of_side(const struct ree_ruling *r, unsigned k, struct ree_strbuf *out) {
    ree_strbuf_printf(out, "%c       ", "AB"[k]);
    if (r->misread[k] >= 0)
        ree_strbuf_printf(out, "wrong: input %lld of its record is not what was agreed on before\n",
                          (long long)r->misread[k]);
    else if (r->wrong[k] >= 0)
        ree_strbuf_printf(out, "wrong: output %lld\n", (long long)r->wrong[k]);
    else
        ree_strbuf_printf(out, "right\n");
}

static void report_text(const struct ree_claim *c, const struct ree_ruling *r,
                        struct ree_strbuf *out) {
    ree_strbuf_printf(out, "claim   step %llu, node %u", (unsigned long long)c->step, c->node);
    if (c->op.name[0]) {
        ree_strbuf_printf(out, " '");
        cli_append_name(out, c->op.name);
        ree_strbuf_printf(out, "'");
    }
    ree_strbuf_printf(out, " (");
    cli_append_name(out, c->op.op_type);
    ree_strbuf_printf(out, ")\ninputs  %u from files, %u constant%s of the model\n", r->n_loaded,
                      r->n_constant, r->n_constant == 1 ? "" : "s");
    text_of_side(r, 0, out);
    text_of_side(r, 1, out);
    ree_strbuf_printf(out, "%s\n", ree_verdict_text(r->verdict));
}

static void report_json(const struct ree_claim *c, const struct ree_ruling *r,
                        struct ree_strbuf *out) {
    static const char *const names[] = {"A", "B", "neither"};
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "right", names[r->verdict]);
    cJSON_AddNumberToObject(object, "step", (double)c->step);
    cJSON_AddNumberToObject(object, "node", c->node);
    cJSON_AddStringToObject(object, "name", c->op.name);
    cJSON_AddStringToObject(object, "op_type", c->op.op_type);
    for (unsigned k = 0; k < 2; k++) {
        cJSON *side = cJSON_AddObjectToObject(object, k ? "b" : "a");
        cJSON_AddBoolToObject(side, "right", r->misread[k] < 0 && r->wrong[k] < 0);
        if (r->misread[k] >= 0) cJSON_AddNumberToObject(side, "misread", (double)r->misread[k]);
        if (r->wrong[k] >= 0) cJSON_AddNumberToObject(side, "wrong_output", (double)r->wrong[k]);
    }
    cJSON *outputs = cJSON_AddArrayToObject(object, "outputs");
    for (uint32_t i = 0; i < r->n_outputs; i++) {
        char hex[65];
        ree_hex(r->outputs[i], hex);
        cJSON_AddItemToArray(outputs, cJSON_CreateString(hex));
    }
    if (!outputs) out->failed = true;
    cli_append_json(out, object, false);
}

static int run(const char *path, const struct ree_referee_options *options, bool json) {
    struct ree_error err;
    struct ree_claim *claim;
    struct ree_ruling ruling = {0};
    struct ree_strbuf text;
    if (ree_claim_load(path, &claim, &err) != REE_OK) {
        cli_fail(&err);
        return CLI_UNDECIDED;
    }
    int code = CLI_UNDECIDED;
    enum ree_status status = ree_referee(claim, options, &ruling, &err);
    cli_progress_end();
    if (status == REE_OK) {
        ree_strbuf_init(&text);
        if (json)
            report_json(claim, &ruling, &text);
        else
            report_text(claim, &ruling, &text);
        if (cli_print(&text) == 0) code = ruling.verdict == REE_VERDICT_NEITHER ? CLI_NEITHER : 0;
    } else {
        cli_fail(&err);
    }
    ree_ruling_finish(&ruling);
    ree_claim_destroy(claim);
    return code;
}

int ree_run_referee(int argc, char **argv) {
    struct cli cli;
    const char *claim = NULL;
    struct ree_referee_options options = {.on_progress = cli_progress};
    bool json = false;
    cli_init(&cli, argc, argv);
    while (cli_next(&cli)) {
        if (cli_flag(&cli, "--help")) return cli_print_text(help);
        if (cli_flag(&cli, "--json"))
            json = true;
        else if (!cli_option(&cli, "--inputs", &options.folder) && !cli_positional(&cli, &claim) &&
                 !cli_positional(&cli, &options.model))
            cli_unknown(&cli);
    }
    if (!cli.failed && !options.model) cli_usage(&cli, "a claim and a model are named");
    if (!cli.failed && !options.folder)
        cli_usage(&cli, "what the node read is looked for in --inputs DIR");
    return cli.failed ? CLI_USAGE : run(claim, &options, json);
}
