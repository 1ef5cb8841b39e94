// Verifying a receipt: everything that it says, against a model that is at hand. What can be
// computed from the receipt itself comes first, then what the model is and says of itself (the
// tokens that end a text, the length of its context), then what follows from the tokens (texts, why
// the answer ended), then the model runs.
//
// "Verified" means that every bound field was compared with something that the receipt does not
// decide. If a field was not, the receipt is "verified in part". An answer that somebody interrupted
// is a prefix of what the model would have said, and its verdict says so. max_new_tokens, stop texts
// and sampling parameters are the prover's choice, unless the receipt names a request; the verdict
// holds for these parameters.
//
// A text is checked in one pass: the model runs over prompt and answer as over one prompt, and at
// each position has to choose the token that stands there (generate/check.h). That requires that
// the model is proved to be causal; otherwise the answer runs token by token. Stepwise it is made
// anew, token by token; so are answers that a private receipt does not tell.
#ifndef REE_AUDIT_VERIFY_H
#define REE_AUDIT_VERIFY_H

#include "generate/generator.h"
#include "receipt/receipt.h"
#include "receipt/request.h"

enum ree_verify_outcome { REE_VERIFY_AGREES, REE_VERIFY_DIFFERS, REE_VERIFY_NOT_CHECKED };

struct ree_verify_check {
    char name[64];
    enum ree_verify_outcome outcome;
    // What differs, or why it was not checked; mostly "" where it agrees. Whole, however long: what
    // is left out could be what matters. malloc.
    char *detail;
};

struct ree_verification {
    size_t n, capacity;
    struct ree_verify_check *checks;
    bool differs;       // at least one does
    bool is_partial;    // at least one was not checked
    bool is_prefix;     // the answer was interrupted
    bool failed;        // memory is exhausted
    char cannot[512];   // why the receipt cannot be checked here; "": it was
    char stepwise[384]; // why a text that could be checked in one pass was not; "": it was
    size_t n_runs;
    double run_seconds;
};

enum ree_verify_verdict {
    REE_VERIFIED,
    REE_VERIFIED_PREFIX, // all was checked; the answer was interrupted
    REE_VERIFIED_PART,   // nothing differs, and something was not checked
    REE_VERIFIED_FALSE,
    REE_VERIFIED_NOT, // nothing differs, and `cannot` says why it was not checked
};

void ree_verification_init(struct ree_verification *v);
void ree_verification_finish(struct ree_verification *v);
enum ree_verify_verdict ree_verification_verdict(const struct ree_verification *v);
// "verified", "verified prefix of an answer", "verified in part", "differs", "cannot be checked"
const char *ree_verify_verdict_name(enum ree_verify_verdict verdict);

// What ree_receipt_check finds. Sets `cannot` where this ree cannot run what the receipt is of.
void ree_verify_receipt(struct ree_verification *v, const struct ree_receipt *receipt);
// Whether it answers this request, in every parameter. Without one (NULL), a receipt that names a
// request is not checked in that.
void ree_verify_request(struct ree_verification *v, const struct ree_receipt *receipt,
                        const struct ree_request *request);
// Whether it is signed with this public key, in hexadecimal.
void ree_verify_key(struct ree_verification *v, const struct ree_receipt *receipt,
                    const char *public_key);
// Graph and weights; reads all weights. Nothing else is worth running where one of them differs.
enum ree_status ree_verify_model(struct ree_verification *v, const struct ree_receipt *receipt,
                                 const struct ree_model *model,
                                 void (*on_progress)(void *user, const char *what, uint64_t done,
                                                     uint64_t total),
                                 void *user, struct ree_error *err);

struct ree_verify_text {
    const struct ree_receipt *receipt;
    struct ree_generator *generator;       // with all_logits where the receipt has a hash of logits
    const struct ree_tokenizer *tokenizer; // NULL: none is at hand
    const struct ree_prompt *prompt;       // what the receipt is said to be of; NULL: not said
    bool ignores_eos; // the verifier accepts an answer that no token ends
    bool stepwise;
    bool traced; // the caller makes a trace while the model runs, stepwise, and compares it
};
enum ree_status ree_verify_text(struct ree_verification *v, const struct ree_verify_text *what,
                                struct ree_error *err);

struct ree_verify_tensors {
    const struct ree_receipt *receipt;
    const struct ree_model *model;
    struct ree_pipeline *pipeline;
    size_t n_inputs;
    const struct ree_tensor *inputs; // named
    bool traced;
};
enum ree_status ree_verify_tensors(struct ree_verification *v,
                                   const struct ree_verify_tensors *what, struct ree_error *err);

// The trace that was made in the run, if one was, against the receipt's.
void ree_verify_trace(struct ree_verification *v, const struct ree_receipt *receipt,
                      const ree_digest root, uint64_t n_steps);

// For the parts of this room.
__attribute__((format(printf, 4, 5))) void ree_verify_add(struct ree_verification *v,
                                                          const char *name,
                                                          enum ree_verify_outcome outcome,
                                                          const char *format, ...);
// Compares a hash made here, which it blinds if the receipt is private, with the receipt's. True if
// it agrees.
bool ree_verify_blinded(struct ree_verification *v, const struct ree_receipt *receipt,
                        const char *name, const char *here, const char *stated);
// Agrees, or differs with both; true if it agrees.
bool ree_verify_hash(struct ree_verification *v, const char *name, const char *here,
                     const char *stated);

#endif
