// The referee: decides a claim (audit/claim.h). A node is computed on the CPU from the model and
// the values that the node read; an input, a token, a header and a number of steps follow from the
// model, from the receipts of both parties and from what each party is itself committed to.
//
// Each party is judged by its own root and receipt. A party that did what the model says breaks no
// rule, whatever the other party or the author of the claim invents, so the referee never names it.
//
// A root is somebody's only if a receipt carries it. Without receipts a verdict is about two roots
// that anyone could have made up.
#ifndef REE_AUDIT_REFEREE_H
#define REE_AUDIT_REFEREE_H

#include "audit/claim.h"
#include "audit/open_model.h"
#include "audit/rules.h"
#include "receipt/receipt.h"
#include "receipt/request.h"

enum ree_verdict { REE_VERDICT_A, REE_VERDICT_B, REE_VERDICT_NEITHER };
const char *ree_verdict_text(enum ree_verdict verdict); // "A is right"

struct ree_ruling {
    enum ree_verdict verdict;
    bool is_wrong[2];
    char why[2][200];       // what is_wrong is about; "" of the other
    bool is_bound[2];       // the side's root is that of a receipt
    bool is_withheld[2];    // its tokens would decide, and are not given
    bool is_end_unknown[2]; // the tokenizer at hand does not find its stop texts
    int64_t misread[2]; // of a node: an input that the side's record has not as agreed; -1: none
    int64_t wrong[2];   // of a node: the first output that differs from the referee's; -1: none
    uint32_t n_outputs;
    ree_digest *outputs;           // of a node: the referee's; malloc
    uint32_t n_loaded, n_constant; // inputs read from files; the model's
};

struct ree_referee_options {
    const char *model;                     // file or folder
    const char *folder;                    // of the recorded values (audit/recorded.h); NULL: none
    const struct ree_receipt *receipts[2]; // of A and B; NULL: not at hand
    struct ree_told_tokens tokens[2];      // of private receipts
    const char *keys[2];                   // that these are signed with, in hexadecimal; NULL: any
    const struct ree_request *request;     // that both have to answer; NULL: none
    void (*on_progress)(void *user, const char *what, uint64_t done, uint64_t total); // NULL: off
};

// Fails where the claim cannot be decided, and says why: REE_INVALID, it does not hold together, is
// of another model or of other receipts, shows nothing wrong, or what is recorded is not what was
// committed to; REE_NOT_FOUND, a file or a receipt is missing; REE_UNSUPPORTED, of another
// operation set than "reproducible", other numerics, or a sequence. Release with ree_ruling_finish,
// also on failure.
enum ree_status ree_referee(const struct ree_claim *claim,
                            const struct ree_referee_options *options, struct ree_ruling *out,
                            struct ree_error *err);
// The same with a model that is open, of the operation set "reproducible" and the claim's prefill
// chunk; options->model is not looked at. A claim about a node uses up the model's graph.
enum ree_status ree_referee_opened(const struct ree_claim *claim, struct ree_opened *model,
                                   const struct ree_referee_options *options,
                                   struct ree_ruling *out, struct ree_error *err);
// Two receipts of one root, without a claim: whether one contradicts itself or the model in what a
// trace does not have, such as why its answer ended. Sets is_wrong and why; nobody may be wrong.
// Fails as above.
enum ree_status ree_referee_same(struct ree_opened *model,
                                 const struct ree_referee_options *options, struct ree_ruling *out,
                                 struct ree_error *err);
// In what two receipts of one run differ beside their roots: names, for people. What private
// receipts blind with different salts is not compared. REE_NO_MEMORY.
#define REE_REFEREE_MAX_DIFFERENCES 17
enum ree_status ree_referee_differences(const struct ree_receipt *a, const struct ree_receipt *b,
                                        const char *out[REE_REFEREE_MAX_DIFFERENCES], size_t *out_n,
                                        struct ree_error *err);
void ree_ruling_finish(struct ree_ruling *ruling);

#endif
