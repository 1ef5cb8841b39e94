// The referee decides a claim (dispute/claim.h). It computes a disputed node on the CPU from the
// model and the values that the node read. If an input, a token, a header or a number of steps is
// disputed, it derives it from the model, from the receipts of both parties and from what each
// party is itself committed to.
//
// Each party is judged by its own root and receipt. A party that did what the model requires breaks
// no rule, whatever the other party or the author of the claim invents, so the referee never names
// it.
//
// A root belongs to somebody only if a receipt states it. Without receipts a verdict is about two
// roots that anyone could have made up.
#ifndef REE_DISPUTE_REFEREE_H
#define REE_DISPUTE_REFEREE_H

#include "dispute/claim.h"
#include "trace/open_model.h"
#include "dispute/rules.h"
#include "receipt/receipt.h"
#include "receipt/request.h"

struct ree_ruling {
    enum ree_verdict verdict;
    bool is_wrong[2];
    char why[2][200]; // the reason for is_wrong; "" if it is false
    bool is_bound[2]; // the side's root is the trace root of its receipt
    // The party's tokens would decide the claim but were not provided.
    bool is_withheld[2];
    // The receipt's tokenizer is not available, so its stop texts and eos tokens are not known.
    bool is_end_unknown[2];
    // The fields below are for a claim about a node.
    // Index of the first input that the side's record states differently from what was agreed; -1:
    // none.
    int64_t misread[2];
    // Index of the first output of the side that differs from the referee's own; -1: none.
    int64_t wrong[2];
    uint32_t n_outputs;
    // (n_outputs): digests of the outputs that the referee computed. ree_ruling_finish releases it.
    ree_digest *outputs;
    // Number of inputs that were read from files; number that are constants of the model.
    uint32_t n_loaded, n_constant;
};

struct ree_referee_options {
    const char *model;  // file or folder
    const char *folder; // folder of the recorded values (trace/recorded.h); NULL: none
    const struct ree_receipt *receipts[2]; // receipts of A and B; NULL: not available
    struct ree_stated_tokens tokens[2];    // tokens of A's and B's runs, for private receipts
    // Public keys, in hexadecimal, that the receipts must be signed with; NULL: any.
    const char *keys[2];
    const struct ree_request *request; // request that both receipts must answer; NULL: none
    struct ree_progress progress;
    // Receipts of trainings, if the claim is about one; NULL: it is not, or they are not available.
    const struct ree_training_terms *training;
};

// Decides a claim. Fails if the claim cannot be decided:
//
// - REE_INVALID: the claim is inconsistent, is about another model or other receipts, or shows no
//   broken rule; or the recorded values do not have the digests that the parties are committed to;
// - REE_NOT_FOUND: a file or a receipt is missing;
// - REE_UNSUPPORTED: the claim is about another operation set than "reproducible", about another
//   version of the numerics, or about a value that is a sequence.
//
// Release with ree_ruling_finish, also on failure.
enum ree_status ree_referee(const struct ree_claim *claim,
                            const struct ree_referee_options *options, struct ree_ruling *out,
                            struct ree_error *err);
// Like ree_referee, with a model that is already open. The model must have been opened with the
// operation set "reproducible" and the claim's prefill chunk; options->model is ignored. A claim
// about a node consumes the model's graph.
enum ree_status ree_referee_opened(const struct ree_claim *claim, struct ree_opened *model,
                                   const struct ree_referee_options *options,
                                   struct ree_ruling *out, struct ree_error *err);
// Judges two receipts with the same root, without a claim: checks whether one of them contradicts
// itself or the model in something that a trace does not contain, for example why its answer ended.
// Sets is_wrong and why; possibly neither party is wrong. Fails like ree_referee.
enum ree_status ree_referee_same(struct ree_opened *model,
                                 const struct ree_referee_options *options, struct ree_ruling *out,
                                 struct ree_error *err);
#define REE_REFEREE_MAX_DIFFERENCES 17
// Lists in words the fields, other than the roots, in which two receipts of one run differ. Hashes
// that private receipts blind with different salts are not compared. Fails only with REE_NO_MEMORY.
enum ree_status ree_referee_differences(const struct ree_receipt *a, const struct ree_receipt *b,
                                        const char *out[REE_REFEREE_MAX_DIFFERENCES], size_t *out_n,
                                        struct ree_error *err);
void ree_ruling_finish(struct ree_ruling *ruling);

#endif
