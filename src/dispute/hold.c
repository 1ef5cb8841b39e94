// Holds a dispute for a program: derives the terms from the model and the receipts, asks both
// parties, and names the wrong one if that follows without the values that a node read.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "dispute/bind.h"
#include "dispute/dispute.h"
#include "dispute/referee.h"
#include "dispute/training_rules.h"

// The terms that the parties are held to, and the data that the terms point to.
struct terms {
    struct ree_opened model;
    bool has_model;
    struct ree_rules rules;
    struct ree_stated_run stated_runs[2];
    struct ree_dispute_terms terms;
};

// A result, and the memory that it points to.
struct holding {
    struct ree_dispute_result result;
    const struct ree_disputant *parties;
    struct ree_dispute_options options;
    struct ree_dispute dispute;
    struct ree_claim *claim;
    struct ree_ruling ruling;
    struct ree_error undecided;
    struct ree_strbuf transcript;
    char *input_name;
    // A party that is named before the dispute; "": none
    char named_for[REE_ERROR_MAX];
    enum ree_dispute_kind named_kind;
    unsigned named_party;
    const char *differences[REE_REFEREE_MAX_DIFFERENCES];
};

static struct ree_stated_tokens tokens_of(const struct ree_disputant *party) {
    return (struct ree_stated_tokens){party->n_tokens, party->tokens};
}

// Called if the party's receipt and the tokens that it passed are inconsistent. Returns whether the
// tokens are the cause: without them, the receipt is consistent.
static bool lies_about_tokens(const struct ree_disputant *party, struct terms *t) {
    struct ree_stated_run stated_run;
    return party->tokens && ree_stated_run_make(party->receipt, &t->rules, NULL, &t->model.arena,
                                                &stated_run, NULL) == REE_OK;
}

static void name(struct holding *h, enum ree_dispute_kind kind, unsigned k, const char *reason) {
    h->named_kind = kind;
    h->named_party = k;
    snprintf(h->named_for, sizeof h->named_for, "%s", reason);
}

static void note_false(struct holding *h, unsigned k, const struct ree_error *err) {
    name(h, REE_DISPUTE_FALSE_RECEIPT, k, err->message);
}

// Ends the dispute: the receipt of party k is false.
static enum ree_status end_with_lie(struct holding *h, unsigned k, const char *lie,
                                    struct ree_error *err) {
    ree_fail(err, REE_INVALID, "%c's receipt is false: %s", "AB"[k], lie);
    note_false(h, k, err);
    return REE_INVALID;
}

// Checks each receipt by itself, and whether it answers the request. Everything else compares two
// receipts or traces, whose differences are no party's lie. Signatures are checked before anything
// else, so that nobody is named because of a receipt that anyone may have made.
static enum ree_status hold_to_request(struct holding *h, struct ree_error *err) {
    const struct ree_training_terms *training = h->options.training;
    char lie[REE_BIND_LIE];
    for (unsigned k = 0; k < 2; k++) {
        const struct ree_disputant *party = &h->parties[k];
        if (training && training->receipts[k])
            REE_TRY(ree_training_terms_check_key(training, k, err));
        if (!party->receipt) continue;
        REE_TRY(
            ree_bind_request(k, party->receipt, party->public_key, h->options.request, lie, err));
        if (lie[0]) return end_with_lie(h, k, lie, err);
    }
    return REE_OK;
}

// What a party's receipt states about its run, as its trace also does.
struct stated {
    const char *graph_sha256, *weights_sha256, *numerics, *operation_set;
    uint32_t prefill_chunk;
};

// Returns what a receipt states in another way than the trace of the same party; NULL: nothing.
static const char *contradicted(const struct stated *r, const struct ree_trace *trace) {
    const struct ree_trace_header *h = &trace->header;
    if (strcmp(r->graph_sha256, h->graph_sha256) != 0) return "graph";
    if (strcmp(r->weights_sha256, h->weights_sha256) != 0) return "weights";
    if (strcmp(r->numerics, h->numerics) != 0) return "numerics";
    if (strcmp(r->operation_set, h->operation_set) != 0) return "operation set";
    return r->prefill_chunk != h->prefill_chunk ? "prefill chunk" : NULL;
}

static bool has_own_root(const struct holding *h, unsigned k) {
    const struct ree_training_terms *training = h->options.training;
    const uint8_t *root = h->parties[k].trace->root;
    return training ? training->receipts[k] && ree_training_terms_has_root(training, k, root)
                    : h->parties[k].receipt && ree_bind_root(h->parties[k].receipt, root);
}

// Ends the dispute if the receipt of a party contradicts its trace. Called if the receipts of the
// parties state different runs, or runs that cannot be judged: a false statement must not be a way
// out.
static enum ree_status hold_to_traces(struct holding *h, struct ree_error *err) {
    for (unsigned k = 0; k < 2; k++) {
        const struct ree_trace *trace = h->parties[k].trace;
        const struct ree_receipt *r = h->parties[k].receipt;
        const struct ree_training_terms *training = h->options.training;
        const struct ree_training_receipt *t = training ? training->receipts[k] : NULL;
        struct stated stated;
        const char *what;
        char lie[REE_BIND_LIE];
        // With another trace, the party is named for that (dispute.c), or withholds a salt.
        if (!has_own_root(h, k)) continue;
        if (t)
            stated = (struct stated){t->graph_sha256, t->weights_sha256, t->numerics,
                                     t->operation_set, 0};
        else
            stated =
                (struct stated){r->graph_sha256, r->weights_sha256, r->numerics, r->operation_set,
                                r->kind == REE_RECEIPT_TEXT ? r->trace_chunk : 0};
        what = contradicted(&stated, trace);
        if (!what) continue;
        snprintf(lie, sizeof lie, "it contradicts its trace: %s", what);
        return end_with_lie(h, k, lie, err);
    }
    return REE_OK;
}

static enum ree_status hold_to_receipts(struct holding *h, struct terms *t, struct ree_error *err) {
    for (unsigned k = 0; k < 2; k++) {
        const struct ree_disputant *party = &h->parties[k];
        char lie[REE_CHUNK_LIE] = "";
        if (strcmp(party->receipt->graph_sha256, t->model.header.graph_sha256) == 0)
            REE_TRY(ree_stated_chunk_lie(party->receipt, &t->model, lie, err));
        if (lie[0]) return end_with_lie(h, k, lie, err);
        struct ree_stated_tokens tokens = tokens_of(party);
        enum ree_status status = ree_stated_run_make(party->receipt, &t->rules, &tokens,
                                                     &t->model.arena, &t->stated_runs[k], err);
        if (status != REE_OK) {
            ree_fail_prefix(err, "%c's receipt", "AB"[k]);
            if (status == REE_INVALID && lies_about_tokens(party, t)) note_false(h, k, err);
            return status;
        }
        t->terms.runs[k] = &t->stated_runs[k];
    }
    enum ree_status status = ree_stated_run_compare(&t->stated_runs[0], &t->stated_runs[1], err);
    if (status == REE_INVALID) REE_TRY(hold_to_traces(h, err));
    REE_TRY(status);
    const struct ree_receipt *r = t->stated_runs[0].receipt;
    if (strcmp(r->graph_sha256, t->model.header.graph_sha256) != 0 ||
        strcmp(r->weights_sha256, t->model.header.weights_sha256) != 0)
        return ree_fail(err, REE_INVALID, "the receipts are of another model");
    return REE_OK;
}

// Holds the parties to receipts of trainings.
static enum ree_status hold_to_training(struct holding *h, struct terms *t, struct ree_error *err) {
    const struct ree_training_terms *training = h->options.training;
    char lie[REE_TRAINING_LIE];
    for (unsigned k = 0; k < 2; k++) {
        REE_TRY(ree_training_terms_lie(training, k, &t->model, h->parties[k].trace, lie, err));
        if (lie[0]) return end_with_lie(h, k, lie, err);
    }
    enum ree_status status = ree_training_terms_check(training, err);
    if (status == REE_INVALID) REE_TRY(hold_to_traces(h, err));
    REE_TRY(status);
    t->terms.training = training;
    return ree_training_rules_make(training, &t->model, &t->rules, err);
}

// Roots of different versions of the format cannot be compared. Only receipts of version 1 may be
// of traces of version 1, so nobody leaves a dispute by recording an old one.
static enum ree_status check_versions(struct holding *h, struct ree_error *err) {
    const uint32_t versions[2] = {h->parties[0].trace->header.version,
                                  h->parties[1].trace->header.version};
    for (unsigned k = 0; k < 2; k++) {
        const struct ree_receipt *r = h->parties[k].receipt;
        const bool is_new = h->options.training || (r && r->version > 1);
        if (!is_new || versions[k] == REE_TRACE_LATEST) continue;
        if (has_own_root(h, k)) {
            ree_fail(err, REE_INVALID,
                     "%c's receipt is false: its trace has version %u of the format", "AB"[k],
                     versions[k]);
            note_false(h, k, err);
            return REE_INVALID;
        }
        // Not the receipt's trace: the receipt may be true.
        name(h, REE_DISPUTE_LIED, k,
             r && ree_bind_lacks_salt(r) ? REE_DISPUTE_NO_SALT : REE_DISPUTE_OTHER_ROOT);
        return ree_fail(err, REE_INVALID, "%c: %s", "AB"[k], h -> named_for);
    }
    if (versions[0] == versions[1]) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "the traces have different versions of the format, %u and %u: record the older "
                    "run again",
                    versions[0], versions[1]);
}

// Derives the terms. If no model is used, A's header takes the place of the model's header.
static enum ree_status make_terms(struct holding *h, struct terms *t, struct ree_error *err) {
    const struct ree_receipt *r = h->parties[0].receipt;
    const struct ree_trace_header *a = &h->parties[0].trace->header;
    const struct ree_trace_header *b = &h->parties[1].trace->header;
    t->terms.header = a;
    REE_TRY(hold_to_request(h, err));
    REE_TRY(check_versions(h, err));
    bool is_one_run =
        a->prefill_chunk == b->prefill_chunk && strcmp(a->operation_set, b->operation_set) == 0;
    const struct ree_training_terms *training = h->options.training;
    if (training && (!training->receipts[0] || !training->receipts[1]))
        return ree_training_terms_check(training, err);
    if (training) is_one_run = true; // the model's header decides
    if (!h->options.model || (!r && !is_one_run)) return REE_OK;
    const char *set = r          ? r->operation_set
                      : training ? ree_training_terms_operation_set(training)
                                 : a->operation_set;
    if (strcmp(set, ree_operation_set_name(REE_REPRODUCIBLE)) != 0) {
        REE_TRY(hold_to_traces(h, err));
        return ree_fail(err, REE_UNSUPPORTED,
                        "the operation set is '%.32s'; right results are defined only for %s", set,
                        ree_operation_set_name(REE_REPRODUCIBLE));
    }
    struct ree_open_options open = {.operation_set = REE_REPRODUCIBLE,
                                    .prefill_chunk = r          ? r->trace_chunk
                                                     : training ? 0
                                                                : a->prefill_chunk,
                                    .version = a->version,
                                    .progress = h->options.progress};
    t->has_model = true;
    REE_TRY(ree_open_model(h->options.model, &open, &t->model, err));
    REE_TRY(ree_rules_make(&t->model, &t->model.arena, &t->rules, err));
    t->terms.header = &t->model.header;
    t->terms.is_model = true;
    t->terms.rules = &t->rules;
    if (training) REE_TRY(hold_to_training(h, t, err));
    return r ? hold_to_receipts(h, t, err) : REE_OK;
}

// Judges the parties if that requires only the model and the receipts. A difference in a node
// cannot be decided here: that requires the values that the node read.
static enum ree_status judge(struct holding *h, struct terms *t, struct ree_strbuf *transcript,
                             struct ree_error *err) {
    struct ree_dispute *d = &h->dispute;
    struct ree_dispute_result *out = &h->result;
    bool is_same = d->kind == REE_DISPUTE_SAME && t->terms.runs[0];
    if ((!d->claim && !is_same) || d->kind == REE_DISPUTE_NODE || !t->has_model) return REE_OK;
    struct ree_referee_options options = {.request = h->options.request,
                                          .training = h->options.training};
    for (unsigned k = 0; k < 2; k++) {
        options.receipts[k] = h->parties[k].receipt;
        options.keys[k] = h->parties[k].public_key;
        options.tokens[k] = tokens_of(&h->parties[k]);
    }
    out->is_judged = true;
    if (is_same)
        REE_TRY(ree_referee_differences(options.receipts[0], options.receipts[1], h->differences,
                                        &out->n_differences, err));
    enum ree_status status =
        is_same ? ree_referee_same(&t->model, &options, &h->ruling, &h->undecided)
                : ree_referee_opened(d->claim, &t->model, &options, &h->ruling, &h->undecided);
    const bool *withheld = h->ruling.is_withheld;
    // Not undecided: the same dispute, held again, may succeed.
    if (status == REE_NO_MEMORY || status == REE_IO)
        return ree_fail(err, status, "%s", h->undecided.message);
    out->is_decided = status == REE_OK;
    if (is_same || out->is_decided || withheld[0] == withheld[1]) return REE_OK;
    out->is_judged = false; // the silent party is named as silent
    return ree_dispute_withheld(d, withheld[1], transcript, err);
}

// Copies the claim into the result, because ree_dispute_finish destroys the dispute's own claim.
static enum ree_status copy_claim(struct holding *h, struct ree_error *err) {
    if (!h->dispute.claim) return REE_OK;
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    enum ree_status status = ree_claim_encode(h->dispute.claim, &text, err);
    if (status == REE_OK) status = ree_claim_decode(text.data, text.size, &h->claim, err);
    ree_strbuf_finish(&text);
    return status;
}

static enum ree_status describe(struct holding *h, struct ree_error *err) {
    const struct ree_dispute *d = &h->dispute;
    struct ree_dispute_result *out = &h->result;
    const struct ree_trace *a = h->parties[0].trace, *b = h->parties[1].trace;
    REE_TRY(copy_claim(h, err));
    out->kind = d->kind;
    memcpy(out->n_steps, d->n_steps, sizeof out->n_steps);
    out->step = d->step;
    out->input = d->input;
    if (d->kind == REE_DISPUTE_INPUT) {
        h->input_name = ree_strdup(a->header.inputs[d->input].name);
        if (!h->input_name) return ree_no_memory(err);
    }
    out->input_name = h->input_name;
    out->same_headers = memcmp(a->header.digest, b->header.digest, sizeof(ree_digest)) == 0;
    out->claim = h->claim;
    out->party = d->liar;
    out->reason = d->lie;
    if (out->is_judged && !out->is_decided) out->undecided = h->undecided.message;
    for (unsigned k = 0; k < 2; k++) {
        out->is_wrong[k] = h->ruling.is_wrong[k];
        out->is_withheld[k] = h->ruling.is_withheld[k];
    }
    out->n_messages = d->n_messages;
    out->n_bytes = d->n_bytes;
    if (!h->options.wants_transcript) return REE_OK;
    if (h->transcript.data) out->transcript = h->transcript.data;
    out->transcript_nbytes = h->transcript.size;
    return h->transcript.failed ? ree_no_memory(err) : REE_OK;
}

static enum ree_status hold(struct holding *h, struct terms *t, struct ree_error *err) {
    struct ree_party *parties[2] = {NULL, NULL};
    struct ree_strbuf *transcript = h->options.wants_transcript ? &h->transcript : NULL;
    enum ree_status status = ree_party_of_trace(h->parties[0].trace, &parties[0], err);
    if (status == REE_OK) status = ree_party_of_trace(h->parties[1].trace, &parties[1], err);
    if (status == REE_OK) status = make_terms(h, t, err);
    if (status == REE_OK) status = ree_dispute(&t->terms, parties, transcript, &h->dispute, err);
    if (status == REE_OK) status = judge(h, t, transcript, err);
    if (status == REE_OK) status = describe(h, err);
    ree_party_of_trace_destroy(parties[0]);
    ree_party_of_trace_destroy(parties[1]);
    if (!h->named_for[0]) return status;
    h->result.kind = h->named_kind;
    h->result.party = h->named_party;
    h->result.reason = h->named_for;
    return REE_OK;
}

static enum ree_status check_parties(const struct ree_disputant parties[2],
                                     const struct ree_dispute_options *options,
                                     struct ree_error *err) {
    if (!parties[0].trace || !parties[1].trace)
        return ree_fail(err, REE_INVALID, "a dispute requires both traces");
    if (!parties[0].receipt != !parties[1].receipt)
        return ree_fail(err, REE_INVALID, "a dispute requires both receipts or none");
    if ((parties[0].receipt || options->training) && !options->model)
        return ree_fail(err, REE_INVALID, "receipts require the model");
    if (parties[0].receipt && options->training)
        return ree_fail(err, REE_INVALID,
                        "a dispute is either about trainings or about other runs");
    return REE_OK;
}

enum ree_status ree_dispute_hold(const struct ree_disputant parties[2],
                                 const struct ree_dispute_options *requested,
                                 struct ree_dispute_result **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    struct ree_dispute_options options;
    struct terms terms = {0};
    if (!err) err = &local; // a party's lie is part of the result
    *out = NULL;
    REE_TRY(ree_options_read(&options, sizeof options, requested, "ree_dispute_options", err));
    REE_TRY(check_parties(parties, &options, err));
    struct holding *h = ree_alloc_zeroed(1, sizeof *h);
    if (!h) return ree_no_memory(err);
    h->parties = parties;
    h->options = options;
    ree_strbuf_init(&h->transcript);
    // If a receipt is false, no dispute is held, and these values stay in the result.
    h->result.undecided = "";
    h->result.why[0] = h->ruling.why[0];
    h->result.why[1] = h->ruling.why[1];
    h->result.differences = h->differences;
    if (options.wants_transcript) h->result.transcript = "";
    enum ree_status status = hold(h, &terms, err);
    ree_dispute_finish(&h->dispute);
    if (terms.has_model) ree_opened_finish(&terms.model);
    if (status == REE_OK)
        *out = &h->result;
    else
        ree_dispute_result_destroy(&h->result);
    return status;
}

void ree_dispute_result_destroy(struct ree_dispute_result *result) {
    REE_FLOAT_ENV_API();
    if (!result) return;
    struct holding *h = REE_CONTAINER_OF(result, struct holding, result);
    ree_claim_destroy(h->claim);
    ree_ruling_finish(&h->ruling);
    ree_strbuf_finish(&h->transcript);
    ree_free(h->input_name);
    ree_free(h);
}

const char *ree_dispute_kind_name(enum ree_dispute_kind kind) {
    static const char *const names[] = {"same", "other_run", "input",  "node",  "length",
                                        "lied", "silent",    "header", "token", "false_receipt"};
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "?";
}
