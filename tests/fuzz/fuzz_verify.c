// Verifies changed receipts (verify_mutator.c) of the sample models:
//
// - A verified receipt must be true: repeating the run with the prover's code gives a receipt with
//   the same body (verify_judge.h).
// - An honest receipt must be verified, whatever is changed in its unbound members.
// - Every finding and every refusal must have a message.
//
// verify_case.h describes an input. Traces are not computed, so a receipt of a traced run is never
// verified.
//
//     cmake --preset fuzz && cmake --build build-fuzz --target fuzz_verify fuzz_seeds
//     build-fuzz/tests/fuzz/fuzz_verify -max_len=16384 FOLDER build-fuzz/tests/fuzz/receipts
#include "replay.h"
#include "verify_judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receipt/receipt_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

bool fuzz_accepted; // an honest receipt is verified

// A receipt may state as many tokens as the context has; each costs a step of the model.
#define MOST_TOKENS 64

// The public key of the first test of RFC 8032.
static const char key[] = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

static void must(bool ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "fuzz_verify: %s\n", what);
    abort();
}

static bool says(enum ree_status status, const struct ree_error *err) {
    if (status == REE_OK) return true;
    must(err->status == status && err->message[0] && status != REE_INTERNAL,
         "an error of ree itself, or one without a message");
    return false;
}

struct job {
    const struct verify_world *world;
    struct verify_case c;
    struct ree_receipt receipt;
    struct ree_request request;
    struct ree_prompt prompt; // the prompt that the verifier has
    bool has_prompt;
    struct ree_verification v;
};

static bool verify_text(struct job *job) {
    const struct verify_world *w = job->world;
    struct ree_generator *g = job->receipt.logits_sha256[0] ? w->with_logits : w->plain;
    struct ree_error err = {.message = ""};
    struct ree_verify_text what = {.receipt = &job->receipt,
                                   .generator = g,
                                   .tokenizer =
                                       job->c.options & CASE_NO_TOKENIZER ? NULL : w->tokenizer,
                                   .prompt = job->has_prompt ? &job->prompt : NULL,
                                   .ignores_eos = job->c.options & CASE_IGNORE_EOS,
                                   .stepwise = job->c.options & CASE_STEPWISE};
    return says(ree_verify_model(&job->v, &job->receipt, g->model, NULL, &err), &err) &&
           says(ree_verify_text(&job->v, &what, &err), &err);
}

static bool verify_tensors(struct job *job) {
    const struct verify_world *w = job->world;
    struct ree_error err = {.message = ""};
    struct ree_verify_tensors what = {.receipt = &job->receipt,
                                      .model = w->digits,
                                      .pipeline = w->pipeline,
                                      .n_inputs = 1,
                                      .inputs = job->c.options & CASE_OTHER ? &w->other_image
                                                                            : &w->image};
    if (!says(ree_verify_model(&job->v, &job->receipt, w->digits, NULL, &err), &err)) return false;
    if (job->v.differs) return true;
    return says(ree_verify_tensors(&job->v, &what, &err), &err);
}

// Verifies as `ree-run verify` does. Returns false if an error leaves no verdict.
static bool verify(struct job *job) {
    const struct verify_world *w = job->world;
    struct ree_error err = {.message = ""};
    const struct ree_receipt *r = &job->receipt;
    if (!says(ree_receipt_decode(job->c.receipt, job->c.n_receipt, "receipt", &job->receipt, &err),
              &err))
        return false;
    if (r->output.n_tokens > MOST_TOKENS) return false;
    if ((job->c.options & CASE_SALT) && r->is_private &&
        !ree_receipt_set_salt(&job->receipt, w->salt))
        return false;
    if (job->c.n_request &&
        !says(ree_request_decode(job->c.request, job->c.n_request, "request", &job->request, &err),
              &err))
        return false;
    if (job->c.n_request)
        job->prompt = (struct ree_prompt){job->request.tokens, job->request.n_tokens};
    else if (job->c.options & CASE_OTHER)
        job->prompt = (struct ree_prompt){w->other_prompt, w->n_other_prompt};
    else
        job->prompt = (struct ree_prompt){w->prompt, w->n_prompt};
    job->has_prompt = job->c.n_request || (job->c.options & CASE_PROMPT);
    ree_verify_receipt(&job->v, r);
    ree_verify_request(&job->v, r, job->c.n_request ? &job->request : NULL);
    if (job->c.options & CASE_KEY) ree_verify_key(&job->v, r, key);
    if (job->v.cannot[0]) return true;
    return r->kind == REE_RECEIPT_TEXT ? verify_text(job) : verify_tensors(job);
}

// Returns the honest receipt that has this body, if the verifier has all that it requires; NULL if
// none.
static const struct honest *find_honest(const struct job *job) {
    const struct verify_world *w = job->world;
    ree_digest body;
    struct ree_error err;
    char hex[65];
    const struct ree_receipt *r = &job->receipt;
    must(ree_receipt_body_digest(r, body, &err) == REE_OK, "a body without a digest");
    ree_hex(body, hex);
    if (strcmp(hex, r->receipt_hash) != 0) return NULL;
    bool failed = false;
    bool holds = !r->is_signed || ree_receipt_signature_holds(r, &failed);
    must(!failed, "a signature that could not be checked");
    if (!holds) return NULL;
    for (size_t i = 0; i < N_HONEST; i++) {
        const struct honest *h = &w->honest[i];
        bool is_asked = job->c.n_request == w->n_request &&
                        memcmp(job->c.request, w->request, w->n_request) == 0;
        if (memcmp(h->body, body, sizeof body) == 0 && h->options == job->c.options &&
            (h->is_asked ? is_asked : !job->c.n_request))
            return h;
    }
    return NULL;
}

static void judge(struct job *job) {
    enum ree_verify_verdict verdict = ree_verification_verdict(&job->v);
    const struct honest *honest = find_honest(job);
    const struct ree_receipt *r = &job->receipt;
    for (size_t i = 0; i < job->v.n; i++)
        must(job->v.checks[i].name[0] &&
                 (job->v.checks[i].outcome == REE_VERIFY_AGREES || job->v.checks[i].detail[0]),
             "a finding without a message");
    if (honest && verdict != (honest->is_prefix ? REE_VERIFIED_PREFIX : REE_VERIFIED)) {
        for (size_t i = 0; i < job->v.n; i++)
            fprintf(stderr, "%s: %d %s\n", job->v.checks[i].name, job->v.checks[i].outcome,
                    job->v.checks[i].detail);
        fprintf(stderr, "%s: %s\n", honest->name, job->v.cannot);
        must(false, "an honest receipt is not verified");
    }
    fuzz_accepted = honest != NULL;
    if (verdict != REE_VERIFIED && verdict != REE_VERIFIED_PREFIX) return;
    if (job->c.options & CASE_KEY)
        must(r->is_signed && strcmp(r->public_key, key) == 0, "verified, and another's signature");
    must(r->kind == REE_RECEIPT_TEXT || !(job->c.options & CASE_OTHER),
         "verified, and the input is another");
    verify_judge(r, &job->c, job->c.n_request ? &job->request : NULL,
                 job->has_prompt ? &job->prompt : NULL, verdict == REE_VERIFIED_PREFIX);
}

// Runs before the first input, because the time of an input is limited.
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    verify_world();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct job job = {.world = verify_world()};
    if (!verify_case_split(bytes, size, &job.c)) return 0;
    ree_verification_init(&job.v);
    ree_request_init(&job.request);
    ree_receipt_init(&job.receipt);
    if (verify(&job)) judge(&job);
    ree_verification_finish(&job.v);
    ree_request_finish(&job.request);
    ree_receipt_finish(&job.receipt);
    return 0;
}
