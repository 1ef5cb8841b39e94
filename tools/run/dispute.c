// ree-run dispute: plays two traces as two parties that exchange a few hashes.
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "cli.h"
#include "commands.h"
#include "party_receipts.h"
#include "paths.h"
#include "start.h"
#include "status.h"

#define CLI_DIFFERS 1
#define CLI_CANNOT 2
#define CLI_LIED 3

struct options {
    const char *traces[2], *claim, *transcript, *model;
    struct party_receipts parties;
    bool json;
};

#define AT(field) offsetof(struct options, field)

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run dispute --a A.trace --b B.trace --claim FILE.json [options]: find where two runs\n"
  "differ, by exchanging few hashes\n"
  "\n"
  "Plays two parties and a referee. Each party has only its own trace (ree-run help run:\n"
  "--trace); the referee has neither. Each party is committed to its trace's root. The referee\n"
  "asks which half of the steps differs, then which half of that half, down to the first step\n"
  "that differs; then the same for the nodes of that step. Every answer must hash to what the\n"
  "party sent before. The number of messages grows with the logarithm of the length of the run.\n"
  "\n"
  "The result is one node: the inputs and outputs that both parties state for it, with proofs\n"
  "up to both roots. This is the claim. 'ree-run referee' decides it.\n"
  "\n"
  "With --model and both receipts, a dispute ends with a claim for every difference: also for\n"
  "an input of a step, a token, the header or the number of steps. dispute then also prints\n"
  "which party is wrong, if this follows from the model, the roots and the receipts. With\n"
  "--model only, this holds for caches.\n"
  "\n"
  "Answers are not signed. dispute names a party that contradicts its root or does not answer,\n"
  "but the transcript does not prove it to others. A claim does.\n"
  "\n"},
    {.name = "--a", .value = "TRACE", .kind = ROW_STRING, .at = AT(traces[0]), .path = CLI_READS,
     .help = "the trace of the party A"},
    {.name = "--b", .value = "TRACE", .kind = ROW_STRING, .at = AT(traces[1]), .path = CLI_READS,
     .help = "the trace of the party B"},
    {.name = "--claim", .value = "FILE", .kind = ROW_STRING, .at = AT(claim), .path = CLI_WRITES,
     .help = "write the claim to FILE"},
    {.name = "--model", .value = "MODEL", .kind = ROW_STRING, .at = AT(model), .path = CLI_READS_BESIDE,
     .help = "the model of the runs, a file or a folder"},
    {.kind = ROW_GROUP, .group = &cli_parties_group, .at = AT(parties)},
    {.name = "--transcript", .value = "FILE", .kind = ROW_STRING, .at = AT(transcript), .path = CLI_WRITES,
     .help = "write every message, one line of JSON each"},
    {.name = "--json", .kind = ROW_FLAG, .at = AT(json),
     .help = "print one JSON object instead of text"},
    CLI_START_ROW_VERDICT,
    {.kind = ROW_TEXT, .help =
  "\n"
  "example\n"
  "  ree-run dispute --a mine.trace --b theirs.trace --claim claim.json \\\n"
  "    --model tools/sample/stories --a-receipt mine.json --b-receipt theirs.json\n"
  "\n"
  "exit status\n"
  "  0  the roots are equal, and the receipts agree\n"
  "  1  the runs differ, and the claim is written\n"
  "  2  cannot be decided: different models, inputs or numbers of steps; or the roots are\n"
  "     equal, but the receipts differ in fields that a trace does not contain; or wrong usage\n"
  "  3  a party is named without a claim: it contradicted its root, did not answer, or its\n"
  "     receipt contradicts itself, the model or the request\n"},
    // clang-format on
};
const struct cli_option_table ree_run_dispute_options = CLI_OPTION_TABLE(rows);

// What report_text and report_json print.
struct report {
    struct ree_trace_info traces[2];
    struct ree_claim_info claim; // set if the result has a claim
    const struct ree_dispute_result *result;
};

static void append_node(struct strbuf *out, const struct ree_claim_info *c) {
    strbuf_printf(out, "node %u ", c->node);
    if (c->name[0]) {
        strbuf_append(out, "'", 1);
        cli_append_name(out, c->name);
        strbuf_append(out, "' ", 2);
    }
    strbuf_append(out, "(", 1);
    if (c->domain[0]) {
        cli_append_name(out, c->domain);
        strbuf_append(out, ".", 1);
    }
    cli_append_name(out, c->op_type);
    strbuf_append(out, ")", 1);
}

static void append_roots(struct strbuf *out, const struct ree_trace_info traces[2]) {
    for (unsigned k = 0; k < 2; k++)
        strbuf_printf(out, "%c  %s  %llu steps\n", "AB"[k], traces[k].root,
                      (unsigned long long)traces[k].n_steps);
}

static void append_naming(const struct ree_dispute_result *d, struct strbuf *out) {
    if (!d->is_judged) return;
    for (unsigned k = 0; k < 2 && d->is_decided; k++)
        if (d->is_wrong[k]) strbuf_printf(out, "%c is wrong: %s\n", "AB"[k], d -> why[k]);
    if (!d->is_decided) strbuf_printf(out, "not decided here: %s\n", d->undecided);
}

static void append_same(const struct ree_dispute_result *n, struct strbuf *out) {
    strbuf_printf(
        out, n->n_differences
                 ? "the same root; the receipts differ in fields that a trace does not contain: "
                 : "the same\n");
    for (size_t i = 0; i < n->n_differences; i++)
        strbuf_printf(out, "%s%s", n->differences[i], i + 1 < n->n_differences ? ", " : "\n");
    for (unsigned k = 0; k < 2; k++)
        if (n->is_withheld[k])
            strbuf_printf(out,
                          "%c withholds the tokens of its private receipt (--%c-tokens): the "
                          "last token and the end of its answer are not compared\n",
                          "AB"[k], "ab"[k]);
}

static void report_text(const struct options *o, const struct report *r, struct strbuf *out) {
    const struct ree_dispute_result *d = r->result;
    append_roots(out, r->traces);
    switch (d->kind) {
    case REE_DISPUTE_SAME: append_same(d, out); break;
    case REE_DISPUTE_OTHER_RUN:
        if (d->same_headers)
            strbuf_printf(out, "cannot be decided: both headers differ from the one that this "
                               "version of ree makes from the model\n");
        else
            strbuf_printf(
                out,
                "cannot be compared: the headers differ ('ree-run diff' lists the differences)\n");
        break;
    case REE_DISPUTE_INPUT:
        strbuf_printf(out, "step %llu: input '", (unsigned long long)d->step);
        cli_append_name(out, d->input_name);
        strbuf_printf(out, d->claim
                               ? "' differs\n"
                               : "' differs: its source follows only from the model (--model)\n");
        break;
    case REE_DISPUTE_NODE:
        strbuf_printf(out, "step %llu: ", (unsigned long long)d->step);
        append_node(out, &r->claim);
        strbuf_printf(out, " is the first that differs\n");
        break;
    case REE_DISPUTE_LENGTH:
        strbuf_printf(out, d->n_steps[0] == d->n_steps[1]
                               ? "the number of steps differs from the receipts\n"
                               : "the number of steps differs\n");
        break;
    case REE_DISPUTE_HEADER: strbuf_printf(out, "a header is not the model's\n"); break;
    case REE_DISPUTE_TOKEN:
        strbuf_printf(out, "the tokens chosen after step %llu differ\n",
                      (unsigned long long)d->step - 1);
        break;
    case REE_DISPUTE_LIED:
        strbuf_printf(out, "%c contradicts its root: ", "AB"[d->party]);
        cli_append_name(out, d->reason);
        strbuf_append(out, "\n", 1);
        break;
    case REE_DISPUTE_SILENT:
        strbuf_printf(out, "%c does not answer: ", "AB"[d->party]);
        cli_append_name(out, d->reason);
        strbuf_append(out, "\n", 1);
        break;
    case REE_DISPUTE_FALSE_RECEIPT: break; // printed as an error
    }
    if (d->kind == REE_DISPUTE_LIED || d->kind == REE_DISPUTE_SILENT)
        strbuf_printf(
            out, "only this referee observed that: the transcript does not prove it to others\n");
    append_naming(d, out);
    strbuf_printf(out, "%llu messages, %llu bytes\n", (unsigned long long)d->n_messages,
                  (unsigned long long)d->n_bytes);
    if (d->claim) strbuf_printf(out, "claim %s\n", o->claim);
}

static void add_naming(cJSON *object, const struct ree_dispute_result *d) {
    if (!d->is_judged) return;
    if (d->kind == REE_DISPUTE_SAME) {
        cJSON *differ = cJSON_AddArrayToObject(object, "receipts_differ");
        cJSON *withheld = cJSON_AddArrayToObject(object, "withheld");
        for (size_t i = 0; i < d->n_differences; i++)
            json_put(differ, cJSON_CreateString(d->differences[i]));
        for (unsigned k = 0; k < 2; k++)
            if (d->is_withheld[k]) json_put(withheld, cJSON_CreateString(k ? "B" : "A"));
    }
    cJSON *wrong = cJSON_AddArrayToObject(object, "wrong");
    for (unsigned k = 0; k < 2 && d->is_decided; k++) {
        if (!d->is_wrong[k]) continue;
        json_put(wrong, cJSON_CreateString(k ? "B" : "A"));
        cJSON_AddStringToObject(object, k ? "reason_b" : "reason_a", d->why[k]);
    }
    if (!d->is_decided) cJSON_AddStringToObject(object, "undecided", d->undecided);
}

static void report_json(const struct report *r, struct strbuf *out) {
    const struct ree_dispute_result *d = r->result;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "result", ree_dispute_kind_name(d->kind));
    cJSON *roots = cJSON_AddArrayToObject(object, "roots");
    for (unsigned k = 0; k < 2; k++)
        json_put(roots, cJSON_CreateString(r->traces[k].root));
    if (d->kind == REE_DISPUTE_INPUT || d->kind == REE_DISPUTE_NODE || d->kind == REE_DISPUTE_TOKEN)
        cJSON_AddNumberToObject(object, "step", (double)d->step);
    if (d->kind == REE_DISPUTE_INPUT) cJSON_AddStringToObject(object, "input", d->input_name);
    if (d->kind == REE_DISPUTE_NODE) {
        cJSON_AddNumberToObject(object, "node", r->claim.node);
        cJSON_AddStringToObject(object, "name", r->claim.name);
        cJSON_AddStringToObject(object, "domain", r->claim.domain);
        cJSON_AddStringToObject(object, "op_type", r->claim.op_type);
        cJSON_AddNumberToObject(object, "n_inputs", r->claim.n_inputs);
    }
    if (d->kind == REE_DISPUTE_LIED || d->kind == REE_DISPUTE_SILENT) {
        cJSON_AddStringToObject(object, "liar", d->party ? "B" : "A");
        cJSON_AddStringToObject(object, "reason", d->reason);
    }
    add_naming(object, d);
    cJSON_AddBoolToObject(object, "claim", d->claim != NULL);
    cJSON_AddNumberToObject(object, "messages", (double)d->n_messages);
    cJSON *last = cJSON_AddNumberToObject(object, "bytes", (double)d->n_bytes);
    if (!last) out->failed = true;
    cli_append_json(out, object, false);
}

static enum ree_status save(const struct options *o, const struct ree_dispute_result *d,
                            struct ree_error *err) {
    if (o->transcript) TRY(ree_file_write(o->transcript, d->transcript, d->transcript_nbytes, err));
    return d->claim ? ree_claim_save(d->claim, o->claim, err) : REE_OK;
}

static int exit_code(const struct ree_dispute_result *d) {
    bool is_same = d->kind == REE_DISPUTE_SAME;
    if (d->kind == REE_DISPUTE_LIED || d->kind == REE_DISPUTE_SILENT) return CLI_LIED;
    if (is_same && (d->is_wrong[0] || d->is_wrong[1])) return CLI_LIED;
    if (is_same) {
        bool is_open = d->n_differences || d->is_withheld[0] || d->is_withheld[1];
        return is_open || (d->is_judged && !d->is_decided) ? CLI_CANNOT : 0;
    }
    return d->claim ? CLI_DIFFERS : CLI_CANNOT;
}

static int print(const struct options *o, const struct report *r) {
    struct strbuf text;
    strbuf_init(&text);
    if (o->json)
        report_json(r, &text);
    else
        report_text(o, r, &text);
    return cli_print(&text) ? CLI_CANNOT : exit_code(r->result);
}

static int hold(const struct options *o, const struct ree_trace *const traces[2],
                struct ree_error *err) {
    struct ree_dispute_result *result = NULL;
    struct ree_disputant parties[2] = {{.trace = traces[0]}, {.trace = traces[1]}};
    struct report r = {.claim = {.size = sizeof r.claim}};
    const struct ree_dispute_options options = {.size = sizeof options,
                                                .model = o->model,
                                                .request = party_request(&o->parties),
                                                .training = party_training(&o->parties),
                                                .wants_transcript = o->transcript != NULL,
                                                .progress = cli_reports};
    party_receipts_fill(&o->parties, parties);
    enum ree_status status = ree_dispute_hold(parties, &options, &result, err);
    cli_progress_end();
    r.result = result;
    for (unsigned k = 0; k < 2 && status == REE_OK; k++) {
        r.traces[k].size = sizeof r.traces[k];
        status = ree_trace_info(traces[k], &r.traces[k], err);
    }
    if (status == REE_OK && result->claim) status = ree_claim_info(result->claim, &r.claim, err);
    bool is_false = status == REE_OK && result->kind == REE_DISPUTE_FALSE_RECEIPT;
    if (status == REE_OK && !is_false) status = save(o, result, err);
    int code = CLI_CANNOT;
    if (status != REE_OK) {
        cli_fail(err);
    } else if (is_false) {
        cli_error("%s", result->reason); // anyone can verify this reason
        code = CLI_LIED;
    } else {
        code = print(o, &r);
    }
    ree_dispute_result_destroy(result);
    return code;
}

static int run(struct options *o) {
    struct ree_error err;
    struct ree_trace *traces[2] = {NULL, NULL};
    int code = CLI_CANNOT;
    if (ree_trace_load(o->traces[0], &traces[0], &err) != REE_OK ||
        ree_trace_load(o->traces[1], &traces[1], &err) != REE_OK)
        cli_fail(&err);
    else if (party_receipts_load(&o->parties) == 0)
        code = hold(o, (const struct ree_trace *const *)traces, &err);
    party_receipts_finish(&o->parties);
    ree_trace_destroy(traces[0]);
    ree_trace_destroy(traces[1]);
    return code;
}

static void check(struct cli *cli, const struct options *o) {
    const struct party_receipts *s = &o->parties;
    if (!cli->failed && (!o->traces[0] || !o->traces[1]))
        cli_usage(cli, "both traces are required: --a and --b");
    if (!cli->failed && !o->claim)
        cli_usage(cli, "an output file for the claim is required: --claim FILE");
    if (!cli->failed && !s->paths[0] != !s->paths[1])
        cli_usage(cli, "--a-receipt and --b-receipt must be given together");
    if (!cli->failed && s->paths[0] && !o->model)
        cli_usage(cli, "receipts require the model: --model");
    party_receipts_check(cli, s);
}

int ree_run_dispute(int argc, char **argv) {
    struct cli cli;
    struct options o = {0};
    if (cli_wants_help(argc, argv)) return cli_options_help(&ree_run_dispute_options);
    cli_init(&cli, argc, argv);
    cli_options_parse(&cli, &ree_run_dispute_options, &o);
    check(&cli, &o);
    if (cli.failed) return CLI_USAGE;
    int code = cli_start(&(struct cli_start){.uses = SANDBOX_DEVICE, .cannot = CLI_CANNOT});
    return code ? code : run(&o);
}
