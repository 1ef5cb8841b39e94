// Verifying a receipt: everything that it says, against a model that is at hand. What can be
// computed from the receipt itself comes first, then what the model is, then what follows from the
// tokens (texts, why it ended), then the model runs.
//
// A text is checked in one pass: the model runs over prompt and answer as over one prompt, and at
// each position has to choose the token that stands there (generate/check.h). That requires that
// the model is proved to be causal; otherwise the answer runs token by token. Stepwise it is made
// anew, token by token; so are answers that a private receipt does not tell.
#ifndef REE_AUDIT_VERIFY_H
#define REE_AUDIT_VERIFY_H

#include "generate/generator.h"
#include "receipt/receipt.h"

enum ree_verify_outcome { REE_VERIFY_AGREES, REE_VERIFY_DIFFERS, REE_VERIFY_NOT_CHECKED };

struct ree_verify_check {
    char name[64];
    enum ree_verify_outcome outcome;
    char detail[448]; // what differs, or why it was not checked; "" where it agrees
};

struct ree_verification {
    size_t n, capacity;
    struct ree_verify_check *checks;
    bool differs;       // at least one does
    bool failed;        // memory is exhausted
    char cannot[512];   // why the receipt cannot be checked here; "": it was
    char stepwise[384]; // why a text that could be checked in one pass was not; "": it was
    size_t n_runs;
    double run_seconds;
};

void ree_verification_init(struct ree_verification *v);
void ree_verification_finish(struct ree_verification *v);
// A check that did not differ is missing where something said `cannot`.
bool ree_verification_holds(const struct ree_verification *v);

// What ree_receipt_check finds. Sets `cannot` where this ree cannot run what the receipt is of.
void ree_verify_receipt(struct ree_verification *v, const struct ree_receipt *receipt);
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
// Agrees, or differs with both; true if it agrees.
bool ree_verify_hash(struct ree_verification *v, const char *name, const char *here,
                     const char *stated);

#endif
