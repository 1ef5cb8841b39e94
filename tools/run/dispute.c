// ree-run dispute: plays two traces as two parties that exchange a few hashes.
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "dispute/bind.h"
#include "dispute/dispute.h"
#include "dispute/referee.h"
#include "base/file.h"
#include "cli.h"
#include "party_receipts.h"
#include "paths.h"
#include "start.h"

#define CLI_DIFFERS 1
#define CLI_CANNOT 2
#define CLI_LIED 3

static const char help[] =
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
    "\n"
    "  --a TRACE, --b TRACE   the traces of the parties A and B\n"
    "  --claim FILE           write the claim to FILE\n"
    "  --model MODEL          the model of the runs, a file or a folder\n" PARTY_RECEIPTS_HELP
    "  --transcript FILE      write every message, one line of JSON each\n"
    "  --json                 print one JSON object instead of text\n" CLI_START_HELP_VERDICT "\n"
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
    "     receipt contradicts itself, the model or the request\n";

struct options {
    const char *traces[2], *claim, *transcript, *model;
    struct party_receipts parties;
    bool json;
};

// What is known, without any values, about who is wrong.
struct naming {
    bool is_tried, is_decided;
    struct ree_ruling ruling;
    struct ree_error err; // why it is undecided
    // For receipts with the same root: the members in which they differ.
    size_t n_differences;
    const char *differences[REE_REFEREE_MAX_DIFFERENCES];
};

static const char *kind_name(enum ree_dispute_kind kind) {
    static const char *const names[] = {"same", "other_run", "input",  "node", "length",
                                        "lied", "silent",    "header", "token"};
    return names[kind];
}

static void append_node(struct ree_strbuf *out, const struct ree_claim *c) {
    ree_strbuf_printf(out, "node %u ", c->node);
    if (c->op.name[0]) {
        ree_strbuf_append(out, "'", 1);
        cli_append_name(out, c->op.name);
        ree_strbuf_append(out, "' ", 2);
    }
    ree_strbuf_append(out, "(", 1);
    if (c->op.domain[0]) {
        cli_append_name(out, c->op.domain);
        ree_strbuf_append(out, ".", 1);
    }
    cli_append_name(out, c->op.op_type);
    ree_strbuf_append(out, ")", 1);
}

static void append_roots(struct ree_strbuf *out, const struct ree_trace *const traces[2]) {
    for (unsigned k = 0; k < 2; k++) {
        char root[65];
        ree_hex(traces[k]->root, root);
        ree_strbuf_printf(out, "%c  %s  %llu steps\n", "AB"[k], root,
                          (unsigned long long)traces[k] -> n_steps);
    }
}

static void append_naming(const struct naming *n, struct ree_strbuf *out) {
    if (!n->is_tried) return;
    for (unsigned k = 0; k < 2 && n->is_decided; k++)
        if (n->ruling.is_wrong[k])
            ree_strbuf_printf(out, "%c is wrong: %s\n", "AB"[k], n -> ruling.why[k]);
    if (!n->is_decided) ree_strbuf_printf(out, "not decided here: %s\n", n->err.message);
}

static void append_same(const struct naming *n, struct ree_strbuf *out) {
    ree_strbuf_printf(
        out, n->n_differences
                 ? "the same root; the receipts differ in fields that a trace does not contain: "
                 : "the same\n");
    for (size_t i = 0; i < n->n_differences; i++)
        ree_strbuf_printf(out, "%s%s", n->differences[i], i + 1 < n->n_differences ? ", " : "\n");
    for (unsigned k = 0; k < 2; k++)
        if (n->ruling.is_withheld[k])
            ree_strbuf_printf(out,
                              "%c withholds the tokens of its private receipt (--%c-tokens): the "
                              "last token and the end of its answer are not compared\n",
                              "AB"[k], "ab"[k]);
}

static void report_text(const struct options *o, const struct ree_dispute *d,
                        const struct ree_trace *const traces[2], const struct naming *naming,
                        struct ree_strbuf *out) {
    append_roots(out, traces);
    switch (d->kind) {
    case REE_DISPUTE_SAME: append_same(naming, out); break;
    case REE_DISPUTE_OTHER_RUN:
        if (memcmp(traces[0]->header.digest, traces[1]->header.digest, sizeof(ree_digest)) == 0)
            ree_strbuf_printf(out, "cannot be decided: both headers differ from the one that this "
                                   "version of ree makes from the model\n");
        else
            ree_strbuf_printf(
                out,
                "cannot be compared: the headers differ ('ree-run diff' lists the differences)\n");
        break;
    case REE_DISPUTE_INPUT:
        ree_strbuf_printf(out, "step %llu: input '", (unsigned long long)d->step);
        cli_append_name(out, traces[0]->header.inputs[d->input].name);
        ree_strbuf_printf(
            out, d->claim ? "' differs\n"
                          : "' differs: its source follows only from the model (--model)\n");
        break;
    case REE_DISPUTE_NODE:
        ree_strbuf_printf(out, "step %llu: ", (unsigned long long)d->step);
        append_node(out, d->claim);
        ree_strbuf_printf(out, " is the first that differs\n");
        break;
    case REE_DISPUTE_LENGTH:
        ree_strbuf_printf(out, d->n_steps[0] == d->n_steps[1]
                                   ? "the number of steps differs from the receipts\n"
                                   : "the number of steps differs\n");
        break;
    case REE_DISPUTE_HEADER: ree_strbuf_printf(out, "a header is not the model's\n"); break;
    case REE_DISPUTE_TOKEN:
        ree_strbuf_printf(out, "the tokens chosen after step %llu differ\n",
                          (unsigned long long)d->step - 1);
        break;
    case REE_DISPUTE_LIED:
        ree_strbuf_printf(out, "%c contradicts its root: ", "AB"[d->liar]);
        cli_append_name(out, d->lie);
        ree_strbuf_append(out, "\n", 1);
        break;
    case REE_DISPUTE_SILENT:
        ree_strbuf_printf(out, "%c does not answer: ", "AB"[d->liar]);
        cli_append_name(out, d->lie);
        ree_strbuf_append(out, "\n", 1);
        break;
    }
    if (d->kind == REE_DISPUTE_LIED || d->kind == REE_DISPUTE_SILENT)
        ree_strbuf_printf(
            out, "only this referee observed that: the transcript does not prove it to others\n");
    append_naming(naming, out);
    ree_strbuf_printf(out, "%llu messages, %llu bytes\n", (unsigned long long)d->n_messages,
                      (unsigned long long)d->n_bytes);
    if (d->claim) ree_strbuf_printf(out, "claim %s\n", o->claim);
}

static void add_naming(cJSON *object, const struct ree_dispute *d, const struct naming *n) {
    if (!n->is_tried) return;
    if (d->kind == REE_DISPUTE_SAME) {
        cJSON *differ = cJSON_AddArrayToObject(object, "receipts_differ");
        cJSON *withheld = cJSON_AddArrayToObject(object, "withheld");
        for (size_t i = 0; i < n->n_differences; i++)
            ree_json_put(differ, cJSON_CreateString(n->differences[i]));
        for (unsigned k = 0; k < 2; k++)
            if (n->ruling.is_withheld[k]) ree_json_put(withheld, cJSON_CreateString(k ? "B" : "A"));
    }
    cJSON *wrong = cJSON_AddArrayToObject(object, "wrong");
    for (unsigned k = 0; k < 2 && n->is_decided; k++) {
        if (!n->ruling.is_wrong[k]) continue;
        ree_json_put(wrong, cJSON_CreateString(k ? "B" : "A"));
        cJSON_AddStringToObject(object, k ? "reason_b" : "reason_a", n->ruling.why[k]);
    }
    if (!n->is_decided) cJSON_AddStringToObject(object, "undecided", n->err.message);
}

static void report_json(const struct ree_dispute *d, const struct ree_trace *const traces[2],
                        const struct naming *naming, struct ree_strbuf *out) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "result", kind_name(d->kind));
    cJSON *roots = cJSON_AddArrayToObject(object, "roots");
    for (unsigned k = 0; k < 2; k++) {
        char root[65];
        ree_hex(traces[k]->root, root);
        ree_json_put(roots, cJSON_CreateString(root));
    }
    if (d->kind == REE_DISPUTE_INPUT || d->kind == REE_DISPUTE_NODE || d->kind == REE_DISPUTE_TOKEN)
        cJSON_AddNumberToObject(object, "step", (double)d->step);
    if (d->kind == REE_DISPUTE_INPUT)
        cJSON_AddStringToObject(object, "input", traces[0]->header.inputs[d->input].name);
    if (d->kind == REE_DISPUTE_NODE) {
        cJSON_AddNumberToObject(object, "node", d->node);
        cJSON_AddStringToObject(object, "name", d->claim->op.name);
        cJSON_AddStringToObject(object, "domain", d->claim->op.domain);
        cJSON_AddStringToObject(object, "op_type", d->claim->op.op_type);
        cJSON_AddNumberToObject(object, "n_inputs", d->claim->n_inputs);
    }
    if (d->kind == REE_DISPUTE_LIED || d->kind == REE_DISPUTE_SILENT) {
        cJSON_AddStringToObject(object, "liar", d->liar ? "B" : "A");
        cJSON_AddStringToObject(object, "reason", d->lie);
    }
    add_naming(object, d, naming);
    cJSON_AddBoolToObject(object, "claim", d->claim != NULL);
    cJSON_AddNumberToObject(object, "messages", (double)d->n_messages);
    cJSON *last = cJSON_AddNumberToObject(object, "bytes", (double)d->n_bytes);
    if (!last) out->failed = true;
    cli_append_json(out, object, false);
}

static enum ree_status save(const struct options *o, const struct ree_dispute *d,
                            const struct ree_strbuf *transcript, struct ree_error *err) {
    if (o->transcript)
        REE_TRY(ree_file_write(o->transcript, transcript->data ? transcript->data : "",
                               transcript->size, err));
    if (!d->claim) return REE_OK;
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    enum ree_status status = ree_claim_encode(d->claim, &text, err);
    if (status == REE_OK) status = ree_file_write(o->claim, text.data, text.size, err);
    ree_strbuf_finish(&text);
    return status;
}

static int exit_code(const struct ree_dispute *d, const struct naming *n) {
    const struct ree_ruling *r = &n->ruling;
    if (d->kind == REE_DISPUTE_LIED || d->kind == REE_DISPUTE_SILENT) return CLI_LIED;
    if (d->kind == REE_DISPUTE_SAME && (r->is_wrong[0] || r->is_wrong[1])) return CLI_LIED;
    if (d->kind == REE_DISPUTE_SAME) {
        bool is_open = n->n_differences || r->is_withheld[0] || r->is_withheld[1];
        return is_open || (n->is_tried && !n->is_decided) ? CLI_CANNOT : 0;
    }
    return d->claim ? CLI_DIFFERS : CLI_CANNOT;
}

// The terms

// The terms that the parties are held to, and the data they consist of.
struct terms {
    struct ree_opened model;
    struct ree_rules rules;
    struct ree_stated_run stated_runs[2];
    struct ree_dispute_terms terms;
    bool lies; // a receipt makes an impossible statement
};

// A party that gives tokens other than those of its receipt counts as not answering.
static bool lies_about_tokens(const struct options *o, struct terms *t, unsigned k) {
    struct ree_stated_run stated_run;
    return o->parties.tokens[k].ids &&
           ree_stated_run_make(party_receipt(&o->parties, k), &t->rules, NULL, &t->model.arena,
                               &stated_run, NULL) == REE_OK;
}

static enum ree_status hold_to_receipts(const struct options *o, struct terms *t,
                                        struct ree_error *err) {
    char lie[REE_BIND_LIE];
    for (unsigned k = 0; k < 2; k++) {
        const struct ree_receipt *r = party_receipt(&o->parties, k);
        REE_TRY(ree_bind_request(k, r, party_public_key(&o->parties, k), party_request(&o->parties),
                                 lie, err));
        t->lies = t->lies || lie[0];
        if (lie[0]) return ree_fail(err, REE_INVALID, "%c's receipt is false: %s", "AB"[k], lie);
        enum ree_status status = ree_stated_run_make(r, &t->rules, &o->parties.tokens[k],
                                                     &t->model.arena, &t->stated_runs[k], err);
        if (status == REE_INVALID) t->lies = lies_about_tokens(o, t, k);
        if (status != REE_OK) return ree_fail_prefix(err, "%c's receipt", "AB"[k]);
        t->terms.runs[k] = &t->stated_runs[k];
    }
    REE_TRY(ree_stated_run_compare(&t->stated_runs[0], &t->stated_runs[1], err));
    const struct ree_receipt *r = t->stated_runs[0].receipt;
    if (strcmp(r->graph_sha256, t->model.header.graph_sha256) != 0 ||
        strcmp(r->weights_sha256, t->model.header.weights_sha256) != 0)
        return ree_fail(err, REE_INVALID, "the receipts are of another model");
    return REE_OK;
}

// Without a model, one party's header is used for both.
static enum ree_status make_terms(const struct options *o, const struct ree_trace *const traces[2],
                                  struct terms *t, struct ree_error *err) {
    const struct ree_receipt *r = party_receipt(&o->parties, 0);
    const struct ree_trace_header *a = &traces[0]->header, *b = &traces[1]->header;
    t->terms.header = a;
    bool is_one_run =
        a->prefill_chunk == b->prefill_chunk && strcmp(a->operation_set, b->operation_set) == 0;
    if (!o->model || (!r && !is_one_run)) return REE_OK;
    const char *set = r ? r->operation_set : a->operation_set;
    if (strcmp(set, ree_operation_set_name(REE_REPRODUCIBLE)) != 0)
        return ree_fail(err, REE_UNSUPPORTED,
                        "the operation set is '%.32s'; right results are defined only for %s", set,
                        ree_operation_set_name(REE_REPRODUCIBLE));
    struct ree_open_options open = {REE_REPRODUCIBLE, r ? r->trace_chunk : a->prefill_chunk,
                                    cli_reports};
    enum ree_status status = ree_open_model(o->model, &open, &t->model, err);
    cli_progress_end();
    REE_TRY(status);
    REE_TRY(ree_rules_make(&t->model, &t->model.arena, &t->rules, err));
    t->terms.header = &t->model.header;
    t->terms.is_model = true;
    t->terms.rules = &t->rules;
    return r ? hold_to_receipts(o, t, err) : REE_OK;
}

// Running the dispute

// A difference in a node cannot be decided here: that requires the values that the node read.
static enum ree_status name(const struct options *o, struct terms *t, struct ree_dispute *d,
                            struct ree_strbuf *transcript, struct naming *out,
                            struct ree_error *err) {
    bool is_same = d->kind == REE_DISPUTE_SAME && t->terms.runs[0];
    if ((!d->claim && !is_same) || d->kind == REE_DISPUTE_NODE) return REE_OK;
    struct ree_referee_options options = {.request = party_request(&o->parties)};
    for (unsigned k = 0; k < 2; k++) {
        options.receipts[k] = party_receipt(&o->parties, k);
        options.keys[k] = party_public_key(&o->parties, k);
        options.tokens[k] = o->parties.tokens[k];
    }
    out->is_tried = true;
    if (is_same)
        REE_TRY(ree_referee_differences(options.receipts[0], options.receipts[1], out->differences,
                                        &out->n_differences, err));
    enum ree_status status =
        is_same ? ree_referee_same(&t->model, &options, &out->ruling, &out->err)
                : ree_referee_opened(d->claim, &t->model, &options, &out->ruling, &out->err);
    const bool *withheld = out->ruling.is_withheld;
    out->is_decided = status == REE_OK;
    if (is_same || out->is_decided || withheld[0] == withheld[1]) return REE_OK;
    out->is_tried = false; // the silent party is named as silent
    return ree_dispute_withheld(d, withheld[1], transcript, err);
}

static int hold(const struct options *o, const struct ree_trace *const traces[2],
                struct ree_error *err) {
    struct ree_party *parties[2] = {NULL, NULL};
    struct ree_dispute dispute = {0};
    struct terms terms = {0};
    struct naming naming = {0};
    struct ree_strbuf transcript, text;
    ree_strbuf_init(&transcript);
    ree_strbuf_init(&text);
    struct ree_strbuf *lines = o->transcript ? &transcript : NULL;
    enum ree_status status = ree_party_of_trace(traces[0], &parties[0], err);
    if (status == REE_OK) status = ree_party_of_trace(traces[1], &parties[1], err);
    if (status == REE_OK) status = make_terms(o, traces, &terms, err);
    if (status == REE_OK) status = ree_dispute(&terms.terms, parties, lines, &dispute, err);
    if (status == REE_OK) status = name(o, &terms, &dispute, lines, &naming, err);
    if (status == REE_OK) status = save(o, &dispute, &transcript, err);
    int code = terms.lies ? CLI_LIED : CLI_CANNOT;
    if (status == REE_OK) {
        if (o->json)
            report_json(&dispute, traces, &naming, &text);
        else
            report_text(o, &dispute, traces, &naming, &text);
        code = cli_print(&text) ? CLI_CANNOT : exit_code(&dispute, &naming);
    } else {
        cli_fail(err); // err names the party whose receipt lies, which anyone can check
    }
    ree_ruling_finish(&naming.ruling);
    ree_dispute_finish(&dispute);
    if (o->model) ree_opened_finish(&terms.model);
    ree_strbuf_finish(&transcript);
    ree_party_of_trace_destroy(parties[0]);
    ree_party_of_trace_destroy(parties[1]);
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
    cli_init(&cli, argc, argv);
    while (cli_next(&cli)) {
        if (cli_flag(&cli, "--help")) return cli_print_text(help);
        if (cli_flag(&cli, "--json"))
            o.json = true;
        else if (!cli_option_path(&cli, "--a", CLI_READS, &o.traces[0]) &&
                 !cli_option_path(&cli, "--b", CLI_READS, &o.traces[1]) &&
                 !cli_option_path(&cli, "--claim", CLI_WRITES, &o.claim) &&
                 !cli_option_path(&cli, "--model", CLI_READS_BESIDE, &o.model) &&
                 !cli_option_path(&cli, "--transcript", CLI_WRITES, &o.transcript) &&
                 !party_receipts_option(&cli, &o.parties))
            cli_unknown(&cli);
    }
    check(&cli, &o);
    if (cli.failed) return CLI_USAGE;
    int code = cli_start(&(struct cli_start){.uses = SANDBOX_DEVICE, .cannot = CLI_CANNOT});
    return code ? code : run(&o);
}
