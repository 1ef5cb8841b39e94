#include "verify_judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generate/eos.h"
#include "receipt/receipt_internal.h"

static void must(bool ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "called verified: %s\n", what);
    abort();
}

// Digests of receipts judged before: many inputs have the same bound members.
#define N_JUDGED 4096
static ree_digest judged[N_JUDGED];
static size_t n_judged;

static bool is_known(const ree_digest digest) {
    for (size_t i = 0; i < n_judged && i < N_JUDGED; i++)
        if (memcmp(judged[i], digest, sizeof judged[i]) == 0) return true;
    memcpy(judged[n_judged++ % N_JUDGED], digest, sizeof(ree_digest));
    return false;
}

static void digest_of_case(const struct ree_receipt *r, const struct verify_case *c, bool is_prefix,
                           ree_digest out) {
    struct ree_error err;
    ree_digest body;
    must(ree_receipt_body_digest(r, body, &err) == REE_OK, "a body without a digest");
    const unsigned char rest[2] = {c->options, is_prefix};
    struct ree_hasher *hasher = ree_hasher_create("judged");
    ree_hasher_update(hasher, body, sizeof body);
    ree_hasher_update(hasher, rest, sizeof rest);
    if (c->n_request) ree_hasher_update(hasher, c->request, c->n_request);
    ree_hasher_digest(hasher, out);
}

static void check_request(const struct ree_receipt *r, const struct ree_request *q) {
    const struct ree_sampling *a = &r->sampling, *b = &q->sampling;
    must(strcmp(r->request_sha256, q->request_sha256) == 0, "another request");
    must(r->prompt.n_tokens == q->n_tokens, "another prompt than requested");
    if (r->prompt.tokens)
        must(memcmp(r->prompt.tokens, q->tokens, q->n_tokens * sizeof *q->tokens) == 0,
             "another prompt than requested");
    must(a->temperature == b->temperature && a->top_k == b->top_k && a->top_p == b->top_p &&
             a->min_p == b->min_p && a->repetition_penalty == b->repetition_penalty &&
             a->seed == b->seed && r->max_new_tokens == q->max_new_tokens,
         "other parameters than requested");
    must(r->n_stops == q->n_stops, "other stop texts than requested");
    for (size_t i = 0; i < r->n_stops; i++)
        must(strcmp(r->stops[i], q->stops[i]) == 0, "other stop texts than requested");
    if (q->graph_sha256[0])
        must(strcmp(r->graph_sha256, q->graph_sha256) == 0 &&
                 strcmp(r->weights_sha256, q->weights_sha256) == 0,
             "another model than requested");
}

static void leave_out(struct ree_receipt_text *text, const struct ree_receipt_text *like) {
    if (!like->tokens) text->tokens = NULL;
    if (!like->text) text->text = NULL;
}

// Adapts an honest receipt to what `r` may omit or state differently, and compares their bodies.
static void compare(struct ree_receipt *honest, const struct ree_receipt *r) {
    ree_digest ours, theirs;
    struct ree_error err;
    char hex[65];
    honest->version = r->version;
    if (honest->tokenizer_sha256[0])
        ree_receipt_tokenizer_sha256(honest, verify_world()->tokenizer, honest->tokenizer_sha256);
    honest->eos = r->eos;
    honest->n_eos = r->n_eos;
    honest->context_length = r->context_length;
    if (!r->logits_sha256[0]) honest->logits_sha256[0] = 0;
    leave_out(&honest->prompt, &r->prompt);
    leave_out(&honest->output, &r->output);
    must(ree_receipt_body_digest(honest, ours, &err) == REE_OK &&
             ree_receipt_body_digest(r, theirs, &err) == REE_OK,
         "a body without a digest");
    ree_hex(theirs, hex);
    must(strcmp(hex, r->receipt_hash) == 0, "receipt_hash is of something else");
    if (memcmp(ours, theirs, sizeof ours) == 0) return;
    char *a = cJSON_Print(ree_receipt_body(honest)), *b = cJSON_Print(ree_receipt_body(r));
    fprintf(stderr, "honest: %s\nthe receipt: %s\n", a ? a : "", b ? b : "");
    must(false, "what an honest receipt does not say");
}

static void judge_text(const struct ree_receipt *r, const struct verify_case *c,
                       const struct ree_request *request, const struct ree_prompt *prompt,
                       bool is_prefix) {
    const struct verify_world *world = verify_world();
    int64_t context = world->plain->info.context_length;
    struct ree_receipt honest;
    struct ree_error err;
    int32_t *eos = NULL;
    size_t n_eos = 0;
    bool ended;
    struct ree_prompt own = {r->prompt.tokens, r->prompt.n_tokens};
    must(r->context_length == 0 || r->context_length == context, "another context length");
    must(!r->is_private || r->has_salt, "a private receipt without its salt");
    must(!r->request_sha256[0] || request, "a request that nobody has seen");
    if (request) check_request(r, request);
    if (prompt && own.ids)
        must(own.n == prompt->n && memcmp(own.ids, prompt->ids, own.n * sizeof *own.ids) == 0,
             "another prompt than the one that is given");
    if (!own.ids) must(prompt != NULL, "a prompt that nobody has told");
    must(!(c->options & CASE_NO_TOKENIZER) || !r->tokenizer_sha256[0], "texts without a tokenizer");
    // The tokens that end a text follow from the model and from the verifier's tokenizer.
    const struct ree_tokenizer *tokenizer =
        c->options & CASE_NO_TOKENIZER ? NULL : world->tokenizer;
    if (!(c->options & CASE_IGNORE_EOS))
        must(ree_eos_ids(&world->plain->info, tokenizer, &eos, &n_eos), "out of memory");
    struct prover_run run = {.prompt = own.ids ? &own : prompt,
                             .sampling = r->sampling,
                             .max_new_tokens = r->max_new_tokens,
                             .eos = eos,
                             .n_eos = n_eos,
                             .stops = r->stops,
                             .n_stops = r->n_stops,
                             .has_texts = r->tokenizer_sha256[0] != 0,
                             .has_logits = r->logits_sha256[0] != 0,
                             .context_length = r->context_length,
                             .salt = r->is_private ? r->salt : NULL,
                             .request_sha256 = r->request_sha256[0] ? r->request_sha256 : NULL,
                             .interrupt_after = is_prefix ? r->output.n_tokens : 0,
                             .most = r->output.n_tokens};
    // A run that was interrupted before its first token has no tokens to compare.
    if (is_prefix && r->output.n_tokens == 0) {
        free(eos);
        return;
    }
    enum ree_status status = prover_make(world, &run, &honest, &ended, &err);
    if (status != REE_OK) fprintf(stderr, "%s\n", err.message);
    must(status == REE_OK, "what no prover can run");
    must(ended != is_prefix, is_prefix ? "interrupted, and it had ended" : "ended");
    compare(&honest, r);
    ree_receipt_finish(&honest);
    free(eos);
}

static void judge_tensors(const struct ree_receipt *r) {
    const struct honest *h = &verify_world()->honest[N_HONEST - 1];
    struct ree_receipt honest;
    struct ree_error err;
    must(ree_receipt_decode(h->receipt, h->n_receipt, "honest", &honest, &err) == REE_OK,
         "an honest receipt that is none");
    compare(&honest, r);
    ree_receipt_finish(&honest);
}

void verify_judge(const struct ree_receipt *r, const struct verify_case *c,
                  const struct ree_request *request, const struct ree_prompt *prompt,
                  bool is_prefix) {
    ree_digest digest;
    must(!r->has_trace, "a trace that was not made");
    must(!r->extensions && !r->n_critical, "an extension that nobody knows");
    bool failed = false;
    must(!r->is_signed || ree_receipt_signature_holds(r, &failed), "a signature that is none");
    digest_of_case(r, c, is_prefix, digest);
    if (is_known(digest)) return;
    if (r->kind == REE_RECEIPT_TENSORS)
        judge_tensors(r);
    else
        judge_text(r, c, request, prompt, is_prefix);
}
