// Verifies a receipt: compares everything that it states with the verifier's own copy of the model.
// The order is:
//
// 1. what can be computed from the receipt itself;
// 2. the model's hashes and parameters (the tokens that end a text, the context length);
// 3. what follows from the tokens (texts, why the answer ended);
// 4. what the model computes.
//
// "Verified" means that every bound field was compared with something that the receipt does not
// determine. If a field was not compared, the receipt is "verified in part". An interrupted answer
// is a prefix of what the model would have produced, and the verdict says so. The prover chooses
// max_new_tokens, stop texts and sampling parameters, unless the receipt names a request; the
// verdict holds for these parameters.
//
// A text is checked in one pass: the model runs over prompt and answer as if they were one prompt,
// and at each position it must choose the token that the receipt has there (generate/check.h). This
// requires a proof that the model is causal; otherwise the answer is run token by token. In
// stepwise mode the answer is generated again, token by token. An answer that a private receipt
// does not contain is also generated again.
#ifndef REE_RECEIPT_VERIFY_H
#define REE_RECEIPT_VERIFY_H

#include "generate/generator.h"
#include "receipt/receipt.h"
#include "receipt/request.h"

struct ree_verification {
    size_t n, capacity;
    struct ree_verify_check *checks;
    bool differs;    // at least one check found a difference
    bool is_partial; // at least one field was not checked
    bool is_prefix;  // the answer was interrupted
    bool failed;     // memory was exhausted
    bool is_pending; // the model has not run yet, so nothing is verified
    // Why this version of ree, or this copy of the model, cannot check the receipt; "": it can.
    char cannot[512];
    // Why the tokens were checked token by token although one pass was wanted; "": they were
    // checked in one pass, or stepwise mode was requested, or they were not checked.
    char stepwise[384];
    size_t n_runs;      // number of runs of the model
    double run_seconds; // seconds spent in runs of the model
    // The model and the devices of a verification by the public functions (verification.c);
    // otherwise NULL.
    struct ree_verify_job *job;
};

void ree_verification_init(struct ree_verification *v);
void ree_verification_finish(struct ree_verification *v);

// Adds the findings of ree_receipt_check as checks. Sets v->cannot if the receipt cannot be
// verified because of a critical extension, a missing salt, its numerics version or its operation
// set.
void ree_verify_receipt(struct ree_verification *v, const struct ree_receipt *receipt);
// Checks that the receipt names `request` and has its prompt and parameters. If `request` is NULL
// and the receipt names a request, adds a check that was not made.
void ree_verify_request(struct ree_verification *v, const struct ree_receipt *receipt,
                        const struct ree_request *request);
// Checks that the receipt is signed with the key `public_key`: 64 lower-case hexadecimal digits.
void ree_verify_key(struct ree_verification *v, const struct ree_receipt *receipt,
                    const char *public_key);
// Compares the hashes of the model's graph and weights with the receipt's; reads all weights. If
// one differs, v->differs is set and the caller should not run the model.
enum ree_status ree_verify_model(struct ree_verification *v, const struct ree_receipt *receipt,
                                 const struct ree_model *model, const struct ree_progress *progress,
                                 struct ree_error *err);

struct ree_verify_text {
    const struct ree_receipt *receipt;
    // Runs the model. It must have been created with all_logits if the receipt has a hash of
    // logits.
    struct ree_generator *generator;
    const struct ree_tokenizer *tokenizer; // NULL: not available
    bool has_other_tokenizer;              // it is not the one in the model's folder
    const struct ree_prompt *prompt;       // prompt that the verifier knows; NULL: the receipt's
    bool ignores_eos;                      // accept a receipt whose list of eos tokens is empty
    bool stepwise;                         // generate the answer again, token by token
    // The caller records a trace during the run and then calls ree_verify_trace; requires stepwise.
    bool traced;
};
enum ree_status ree_verify_text(struct ree_verification *v, const struct ree_verify_text *what,
                                struct ree_error *err);

struct ree_verify_tensors {
    const struct ree_receipt *receipt;
    const struct ree_model *model;
    struct ree_pipeline *pipeline;
    size_t n_inputs;
    const struct ree_tensor *inputs; // (n_inputs): the inputs of the run, with names, in any order
    bool traced;                     // the caller records a trace and then calls ree_verify_trace
};
enum ree_status ree_verify_tensors(struct ree_verification *v,
                                   const struct ree_verify_tensors *what, struct ree_error *err);

// Compares a trace that was recorded during the run, with its root and number of steps, with the
// receipt's. Call it only if the receipt has a trace and one was recorded.
void ree_verify_trace(struct ree_verification *v, const struct ree_receipt *receipt,
                      const ree_digest root, uint64_t n_steps);

// Adds a check with this name, outcome and detail (a printf format). For the files of this folder
// only, as the functions below.
__attribute__((format(printf, 4, 5))) void ree_verify_add(struct ree_verification *v,
                                                          const char *name,
                                                          enum ree_verify_outcome outcome,
                                                          const char *format, ...);
// Adds a check that compares the computed hash `here` with `stated`, the receipt's. If the receipt
// is private, blinds the computed hash first. Returns whether they agree.
bool ree_verify_blinded(struct ree_verification *v, const struct ree_receipt *receipt,
                        const char *name, const char *here, const char *stated);
// Adds a check that compares the computed hash `here` with `stated`, the receipt's. If they differ,
// the detail shows both. Returns whether they agree.
bool ree_verify_hash(struct ree_verification *v, const char *name, const char *here,
                     const char *stated);

#endif
