// ree-run referee: decides who is right when two traces differ.
#include <cjson/cJSON.h>
#include <string.h>

#include "json.h"
#include "cli.h"
#include "commands.h"
#include "party_receipts.h"
#include "paths.h"
#include "start.h"

#define CLI_NEITHER 1
#define CLI_UNDECIDED 2
#define CLI_UNBOUND 3

struct options {
    const char *claim, *model, *values;
    struct party_receipts parties;
    bool json;
};

#define AT(field) offsetof(struct options, field)

static const struct cli_option_row rows[] = {
    // clang-format off
    {.kind = ROW_TEXT, .help =
  "ree-run referee CLAIM MODEL [options]: decide which party is right where two runs differ\n"
  "\n"
  "CLAIM is a file of 'ree-run dispute'. The kinds of claims:\n"
  "\n"
  "  node    the first node in which the runs differ. The referee computes only this node, on\n"
  "          this machine's CPU, from the values that the node read\n"
  "  input   an input of a step: a cache must be the cache that the same party's previous step\n"
  "          wrote; token ids must be those of the party's receipt, each chosen from the logits\n"
  "          of the previous step; positions and masks must follow from the number of tokens\n"
  "  token   the last token of an answer, compared with the logits that it was chosen from\n"
  "  header  the trace's header, compared with the model's\n"
  "  length  the number of steps, compared with the tokens of the receipt and the end of the\n"
  "          answer\n"
  "\n"
  "The referee checks that every digest of the claim leads to the roots, that MODEL is the\n"
  "model of both traces, and that each root is in the party's receipt. It judges a party by the\n"
  "party's own commitments: the claim and, with both receipts, the tokens and the end of the\n"
  "answer. Anyone can make up a root that is in no receipt: without both receipts, the verdict\n"
  "binds nobody, and the last line and the exit status say so. A receipt binds the party that\n"
  "signed it, if the key is required here; an unsigned receipt binds the party that published\n"
  "it. Only claims about nodes and caches can be decided without both receipts.\n"
  "\n"},
    {.name = "CLAIM", .kind = ROW_POSITIONAL, .at = AT(claim), .path = CLI_READS},
    {.name = "MODEL", .kind = ROW_POSITIONAL, .at = AT(model), .path = CLI_READS_BESIDE},
    {.name = "--inputs", .value = "DIR", .kind = ROW_STRING, .at = AT(values), .path = CLI_READS,
     .help = "values that the node read, or logits, written by either party's run (--dump-tensors "
             "REGEX --dump-folder DIR with the same prompt or inputs; for caches, all steps up to "
             "the disputed one). They must have the digests of the claim"},
    {.kind = ROW_GROUP, .group = &cli_parties_group, .at = AT(parties)},
    {.name = "--json", .kind = ROW_FLAG, .at = AT(json),
     .help = "print one JSON object instead of text"},
    {.kind = ROW_TEXT, .help =
  "\n"
  "Claims in the format ree-claim/1 are also accepted. They are only about nodes.\n"},
    CLI_START_ROW_VERDICT,
    {.kind = ROW_TEXT, .help =
  "\n"
  "exit status: 0 A is right or B is right, 1 neither is right, 2 cannot be decided, or a\n"
  "receipt is not the claim's (or wrong usage), 3 decided, but a root is in no receipt: binds\n"
  "nobody\n"},
    // clang-format on
};
const struct cli_option_table ree_run_referee_options = CLI_OPTION_TABLE(rows);

// What report_text and report_json print.
struct verdict {
    struct ree_claim_info claim;
    struct ree_disputant parties[2];
    const struct party_receipts *receipts;
    const struct ree_decision *decision;
};

// Returns whether each root is in its party's receipt.
static bool is_bound(const struct ree_decision *r) {
    return r->is_bound[0] && r->is_bound[1];
}

static void append_claim(const struct ree_claim_info *c, struct strbuf *out) {
    strbuf_printf(out, "claim   ");
    switch (c->kind) {
    case REE_CLAIM_OF_NODE:
        strbuf_printf(out, "step %llu, node %u", (unsigned long long)c->step, c->node);
        if (c->name[0]) {
            strbuf_printf(out, " '");
            cli_append_name(out, c->name);
            strbuf_printf(out, "'");
        }
        strbuf_printf(out, " (");
        cli_append_name(out, c->op_type);
        strbuf_printf(out, ")\n");
        break;
    case REE_CLAIM_OF_INPUT:
        strbuf_printf(out, "step %llu, input %u\n", (unsigned long long)c->step, c->input);
        break;
    case REE_CLAIM_OF_TOKEN:
        strbuf_printf(out, "the token chosen after step %llu\n", (unsigned long long)c->step - 1);
        break;
    case REE_CLAIM_OF_HEADER: strbuf_printf(out, "the headers\n"); break;
    case REE_CLAIM_OF_LENGTH: strbuf_printf(out, "the number of steps\n"); break;
    }
}

static void append_root(const struct verdict *v, unsigned k, struct strbuf *out) {
    const char *key, *hash = party_receipt_hash(v->receipts, k, &key);
    const struct ree_claim_info *c = &v->claim;
    strbuf_printf(out, "root %c  %s, %llu steps\n        ", "AB"[k], c -> roots[k],
                  (unsigned long long)c -> n_steps[k]);
    if (!hash)
        strbuf_printf(out, "of no receipt\n");
    else if (key[0])
        strbuf_printf(out, "of receipt %s, signed by %s%s\n", hash, key,
                      v->parties[k].public_key ? "" : " (no key was required)");
    else
        strbuf_printf(out, "of receipt %s, not signed\n", hash);
}

static void report_text(const struct verdict *v, struct strbuf *out) {
    const struct ree_decision *r = v->decision;
    append_claim(&v->claim, out);
    append_root(v, 0, out);
    append_root(v, 1, out);
    if (r->n_loaded || r->n_constant)
        strbuf_printf(out, "inputs  %u from files, %u constant%s of the model\n", r->n_loaded,
                      r->n_constant, r->n_constant == 1 ? "" : "s");
    for (unsigned k = 0; k < 2; k++)
        strbuf_printf(out, "%c       %s%s\n", "AB"[k], r -> is_wrong[k] ? "wrong: " : "right",
                      r->why[k]);
    strbuf_printf(out, "%s\n", ree_verdict_text(r->verdict));
    if (!is_bound(r))
        strbuf_printf(out, "this binds nobody: %s, and anyone can make up a root\n",
                      r->is_bound[0]   ? "B's root is of no receipt"
                      : r->is_bound[1] ? "A's root is of no receipt"
                                       : "neither root is of a receipt");
}

static void add_side(cJSON *object, const struct verdict *v, unsigned k) {
    const struct ree_decision *r = v->decision;
    const char *key, *hash = party_receipt_hash(v->receipts, k, &key);
    cJSON *side = cJSON_AddObjectToObject(object, k ? "b" : "a");
    cJSON_AddStringToObject(side, "root", v->claim.roots[k]);
    cJSON_AddNumberToObject(side, "n_steps", (double)v->claim.n_steps[k]);
    if (hash) cJSON_AddStringToObject(side, "receipt", hash);
    if (hash && key[0]) cJSON_AddStringToObject(side, "public_key", key);
    cJSON_AddBoolToObject(side, "right", !r->is_wrong[k]);
    if (r->is_wrong[k]) cJSON_AddStringToObject(side, "reason", r->why[k]);
    if (r->misread[k] >= 0) cJSON_AddNumberToObject(side, "misread", (double)r->misread[k]);
    if (r->wrong_output[k] >= 0)
        cJSON_AddNumberToObject(side, "wrong_output", (double)r->wrong_output[k]);
}

static void report_json(const struct verdict *v, struct strbuf *out) {
    const struct ree_claim_info *c = &v->claim;
    const struct ree_decision *r = v->decision;
    static const char *const names[] = {"A", "B", "neither"};
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "right", names[r->verdict]);
    cJSON_AddBoolToObject(object, "bound", is_bound(r));
    cJSON_AddStringToObject(object, "kind", ree_claim_kind_name(c->kind));
    if (c->kind != REE_CLAIM_OF_HEADER && c->kind != REE_CLAIM_OF_LENGTH)
        cJSON_AddNumberToObject(object, "step", (double)c->step);
    if (c->kind == REE_CLAIM_OF_INPUT) cJSON_AddNumberToObject(object, "input", c->input);
    if (c->kind == REE_CLAIM_OF_NODE) {
        cJSON_AddNumberToObject(object, "node", c->node);
        cJSON_AddStringToObject(object, "name", c->name);
        cJSON_AddStringToObject(object, "op_type", c->op_type);
    }
    add_side(object, v, 0);
    add_side(object, v, 1);
    cJSON *outputs = cJSON_AddArrayToObject(object, "outputs");
    for (uint32_t i = 0; i < r->n_outputs; i++)
        json_put(outputs, cJSON_CreateString(r->outputs[i]));
    if (!outputs) out->failed = true;
    cli_append_json(out, object, false);
}

static int decide(struct options *o, const struct ree_claim *claim) {
    struct ree_error err;
    struct ree_decision *decision;
    struct strbuf text;
    struct verdict v = {.claim = {.size = sizeof v.claim}, .receipts = &o->parties};
    int code = CLI_UNDECIDED;
    const struct ree_decide_options options = {.size = sizeof options,
                                               .values = o->values,
                                               .request = party_request(&o->parties),
                                               .training = party_training(&o->parties),
                                               .progress = cli_reports};
    party_receipts_fill(&o->parties, v.parties);
    enum ree_status status = ree_claim_info(claim, &v.claim, &err);
    if (status == REE_OK)
        status = ree_claim_decide(claim, o->model, v.parties, &options, &decision, &err);
    cli_progress_end();
    if (status != REE_OK) {
        cli_fail(&err);
        return CLI_UNDECIDED;
    }
    v.decision = decision;
    strbuf_init(&text);
    if (o->json)
        report_json(&v, &text);
    else
        report_text(&v, &text);
    if (cli_print(&text) == 0)
        code = !is_bound(decision)                        ? CLI_UNBOUND
               : decision->verdict == REE_VERDICT_NEITHER ? CLI_NEITHER
                                                          : 0;
    ree_decision_destroy(decision);
    return code;
}

static int run(struct options *o) {
    struct ree_error err;
    struct ree_claim *claim;
    if (ree_claim_load(o->claim, &claim, &err) != REE_OK) {
        cli_fail(&err);
        return CLI_UNDECIDED;
    }
    int code = party_receipts_load(&o->parties) ? CLI_UNDECIDED : decide(o, claim);
    party_receipts_finish(&o->parties);
    ree_claim_destroy(claim);
    return code;
}

int ree_run_referee(int argc, char **argv) {
    struct cli cli;
    struct options o = {0};
    if (cli_wants_help(argc, argv)) return cli_options_help(&ree_run_referee_options);
    cli_init(&cli, argc, argv);
    cli_options_parse(&cli, &ree_run_referee_options, &o);
    if (!cli.failed && !o.model) cli_usage(&cli, "a claim and a model are required");
    party_receipts_check(&cli, &o.parties);
    if (cli.failed) return CLI_USAGE;
    int code = cli_start(&(struct cli_start){.uses = SANDBOX_DEVICE, .cannot = CLI_UNDECIDED});
    return code ? code : run(&o);
}
