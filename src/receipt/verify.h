// Verifies a receipt: compares everything that it states with an available model. The order is:
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
    bool differs;    // at least one check differs
    bool is_partial; // at least one field was not checked
    bool is_prefix;  // the answer was interrupted
    bool failed;     // memory was exhausted
    bool is_pending; // the model was not run yet: nothing is verified
    // Why the receipt cannot be checked with this ree or model; "": it was checked.
    char cannot[512];
    // Why the receipt's tokens were checked token by token and not in one pass; otherwise "".
    char stepwise[384];
    size_t n_runs;
    double run_seconds;
    // The model and the devices. NULL unless the verification is on the heap (verification.c).
    struct ree_verify_job *job;
};

void ree_verification_init(struct ree_verification *v);
void ree_verification_finish(struct ree_verification *v);

// Adds the findings of ree_receipt_check. Sets `cannot` if this version of ree cannot run what the
// receipt describes.
void ree_verify_receipt(struct ree_verification *v, const struct ree_receipt *receipt);
// Checks that the receipt answers `request` in every parameter. If `request` is NULL and the
// receipt names a request, that field counts as not checked.
void ree_verify_request(struct ree_verification *v, const struct ree_receipt *receipt,
                        const struct ree_request *request);
// Checks that the receipt is signed with this public key (hexadecimal).
void ree_verify_key(struct ree_verification *v, const struct ree_receipt *receipt,
                    const char *public_key);
// Compares the hashes of graph and weights; reads all weights. If one differs, the caller should
// run nothing.
enum ree_status ree_verify_model(struct ree_verification *v, const struct ree_receipt *receipt,
                                 const struct ree_model *model, const struct ree_progress *progress,
                                 struct ree_error *err);

struct ree_verify_text {
    const struct ree_receipt *receipt;
    // Must have all_logits if the receipt has a hash of logits.
    struct ree_generator *generator;
    const struct ree_tokenizer *tokenizer; // NULL: not available
    const struct ree_prompt *prompt;       // prompt that the verifier knows; NULL: the receipt's
    bool ignores_eos;                      // accept a receipt whose list of end tokens is empty
    bool stepwise;
    bool traced; // the caller records a trace during the run, stepwise, and compares it
};
enum ree_status ree_verify_text(struct ree_verification *v, const struct ree_verify_text *what,
                                struct ree_error *err);

struct ree_verify_tensors {
    const struct ree_receipt *receipt;
    const struct ree_model *model;
    struct ree_pipeline *pipeline;
    size_t n_inputs;
    const struct ree_tensor *inputs; // with names
    bool traced;
};
enum ree_status ree_verify_tensors(struct ree_verification *v,
                                   const struct ree_verify_tensors *what, struct ree_error *err);

// Compares the trace recorded during the run with the receipt's. Call it only if one was recorded.
void ree_verify_trace(struct ree_verification *v, const struct ree_receipt *receipt,
                      const ree_digest root, uint64_t n_steps);

// For the files of this folder.
__attribute__((format(printf, 4, 5))) void ree_verify_add(struct ree_verification *v,
                                                          const char *name,
                                                          enum ree_verify_outcome outcome,
                                                          const char *format, ...);
// Compares a computed hash with the receipt's. Blinds the computed hash first if the receipt is
// private. Returns true if they agree.
bool ree_verify_blinded(struct ree_verification *v, const struct ree_receipt *receipt,
                        const char *name, const char *here, const char *stated);
// Adds a finding: the hashes agree, or they differ (with both hashes). Returns true if they agree.
bool ree_verify_hash(struct ree_verification *v, const char *name, const char *here,
                     const char *stated);

#endif
