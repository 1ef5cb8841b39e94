// ree-run dispute: two traces as two parties who exchange a few hashes.
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "audit/dispute.h"
#include "base/file.h"
#include "cli.h"

#define CLI_DIFFERS 1
#define CLI_CANNOT 2
#define CLI_LIED 3

static const char help[] =
    "ree-run dispute --a A.trace --b B.trace --claim FILE.json [options]: where two runs part,\n"
    "with a few hashes exchanged\n"
    "\n"
    "Stands for two parties, each of whom has but its own trace (ree-run help run: --trace), and "
    "a\n"
    "referee between them who has neither. Each party is committed to its trace's root. The\n"
    "referee asks which half of the steps differs, and again, down to the first step, and then "
    "the\n"
    "same for the nodes of that step; every answer has to hash to what was said before. So it\n"
    "takes as many messages as the logarithm of the length of the run, not the traces.\n"
    "\n"
    "What is left is one node: what both parties say that it read and gave, with proofs up to "
    "both\n"
    "roots. That is the claim, which 'ree-run referee' decides.\n"
    "\n"
    "  --claim FILE        write it\n"
    "  --transcript FILE   write every message, a line of JSON each\n"
    "  --json              one JSON object instead of text\n"
    "\n"
    "example\n"
    "  ree-run dispute --a mine.trace --b theirs.trace --claim claim.json\n"
    "\n"
    "exit status: 0 the same root, 1 they differ in a node and the claim is written, 2 no node "
    "can\n"
    "be named: another model, other inputs, another number of steps (or wrong usage), 3 a party\n"
    "contradicted what it is committed to\n";

struct options {
    const char *traces[2], *claim, *transcript;
    bool json;
};

static const char *kind_name(enum ree_dispute_kind kind) {
    static const char *const names[] = {"same", "other_run", "input", "node", "length", "lied"};
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

static void report_text(const struct options *o, const struct ree_dispute *d,
                        const struct ree_trace *const traces[2], struct ree_strbuf *out) {
    append_roots(out, traces);
    switch (d->kind) {
    case REE_DISPUTE_SAME: ree_strbuf_printf(out, "the same\n"); break;
    case REE_DISPUTE_OTHER_RUN:
        ree_strbuf_printf(out, "cannot be compared: their headers differ ('ree-run diff' says in "
                               "what)\n");
        break;
    case REE_DISPUTE_INPUT:
        ree_strbuf_printf(out, "step %llu: input '", (unsigned long long)d->step);
        cli_append_name(out, traces[0]->header.inputs[d->input].name);
        ree_strbuf_printf(out, "' differs: the runs were given different things\n");
        break;
    case REE_DISPUTE_NODE:
        ree_strbuf_printf(out, "step %llu: ", (unsigned long long)d->step);
        append_node(out, d->claim);
        ree_strbuf_printf(out, " is the first that differs\n");
        break;
    case REE_DISPUTE_LENGTH:
        ree_strbuf_printf(out, "equal as far as both go: %llu steps\n",
                          (unsigned long long)d->step);
        break;
    case REE_DISPUTE_LIED:
        ree_strbuf_printf(out, "%c contradicts its root: %s\n", "AB"[d->liar], d -> lie);
        break;
    }
    ree_strbuf_printf(out, "%llu messages, %llu bytes\n", (unsigned long long)d->n_messages,
                      (unsigned long long)d->n_bytes);
    if (d->kind == REE_DISPUTE_NODE) ree_strbuf_printf(out, "claim %s\n", o->claim);
}

static void report_json(const struct ree_dispute *d, const struct ree_trace *const traces[2],
                        struct ree_strbuf *out) {
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "result", kind_name(d->kind));
    cJSON *roots = cJSON_AddArrayToObject(object, "roots");
    for (unsigned k = 0; k < 2; k++) {
        char root[65];
        ree_hex(traces[k]->root, root);
        cJSON_AddItemToArray(roots, cJSON_CreateString(root));
    }
    if (d->kind == REE_DISPUTE_INPUT || d->kind == REE_DISPUTE_NODE)
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
    if (d->kind == REE_DISPUTE_LIED) {
        cJSON_AddStringToObject(object, "liar", d->liar ? "B" : "A");
        cJSON_AddStringToObject(object, "reason", d->lie);
    }
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

static int exit_code(enum ree_dispute_kind kind) {
    if (kind == REE_DISPUTE_SAME) return 0;
    if (kind == REE_DISPUTE_LIED) return CLI_LIED;
    return kind == REE_DISPUTE_NODE ? CLI_DIFFERS : CLI_CANNOT;
}

static int hold(const struct options *o, const struct ree_trace *const traces[2],
                struct ree_error *err) {
    struct ree_party *parties[2] = {NULL, NULL};
    struct ree_dispute dispute = {0};
    struct ree_strbuf transcript, text;
    ree_strbuf_init(&transcript);
    ree_strbuf_init(&text);
    enum ree_status status = ree_party_of_trace(traces[0], &parties[0], err);
    if (status == REE_OK) status = ree_party_of_trace(traces[1], &parties[1], err);
    if (status == REE_OK)
        status = ree_dispute(&traces[0]->header, parties, o->transcript ? &transcript : NULL,
                             &dispute, err);
    if (status == REE_OK) status = save(o, &dispute, &transcript, err);
    int code = CLI_CANNOT;
    if (status == REE_OK) {
        if (o->json)
            report_json(&dispute, traces, &text);
        else
            report_text(o, &dispute, traces, &text);
        code = cli_print(&text) ? CLI_CANNOT : exit_code(dispute.kind);
    } else {
        cli_fail(err);
    }
    ree_dispute_finish(&dispute);
    ree_strbuf_finish(&transcript);
    ree_party_of_trace_destroy(parties[0]);
    ree_party_of_trace_destroy(parties[1]);
    return code;
}

static int run(const struct options *o) {
    struct ree_error err;
    struct ree_trace *traces[2] = {NULL, NULL};
    int code = CLI_CANNOT;
    if (ree_trace_load(o->traces[0], &traces[0], &err) == REE_OK &&
        ree_trace_load(o->traces[1], &traces[1], &err) == REE_OK)
        code = hold(o, (const struct ree_trace *const *)traces, &err);
    else
        cli_fail(&err);
    ree_trace_destroy(traces[0]);
    ree_trace_destroy(traces[1]);
    return code;
}

int ree_run_dispute(int argc, char **argv) {
    struct cli cli;
    struct options o = {0};
    cli_init(&cli, argc, argv);
    while (cli_next(&cli)) {
        if (cli_flag(&cli, "--help")) return cli_print_text(help);
        if (cli_flag(&cli, "--json"))
            o.json = true;
        else if (!cli_option(&cli, "--a", &o.traces[0]) && !cli_option(&cli, "--b", &o.traces[1]) &&
                 !cli_option(&cli, "--claim", &o.claim) &&
                 !cli_option(&cli, "--transcript", &o.transcript))
            cli_unknown(&cli);
    }
    if (!cli.failed && (!o.traces[0] || !o.traces[1]))
        cli_usage(&cli, "two parties have traces: --a and --b");
    if (!cli.failed && !o.claim) cli_usage(&cli, "a dispute ends with a claim: --claim FILE");
    return cli.failed ? CLI_USAGE : run(&o);
}
