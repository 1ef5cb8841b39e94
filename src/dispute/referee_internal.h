// Internal interface of the referee*.c files: one function per kind of claim.
#ifndef REE_DISPUTE_REFEREE_INTERNAL_H
#define REE_DISPUTE_REFEREE_INTERNAL_H

#include "dispute/referee.h"
#include "dispute/rules.h"

// Everything by which the referee judges the parties.
struct ree_hearing {
    const struct ree_claim *claim;
    struct ree_opened *model;
    struct ree_rules rules;
    struct ree_stated_run stated_runs[2];      // zeroed if the receipt is not available
    bool has_receipts;                         // both receipts are available
    bool is_requested;                         // both receipts must answer a request
    const struct ree_training_terms *training; // NULL: the claim is not about trainings
    bool lacks_training_rules; // what the inputs must be does not follow from the receipts
    struct ree_recorded_folder *recorded; // NULL: there are no recorded values
};

// Names party k (0: A, 1: B) as wrong, with a reason. Only the first reason of each party is kept.
__attribute__((format(printf, 3, 4))) void ree_ruling_wrong(struct ree_ruling *ruling, unsigned k,
                                                            const char *format, ...);

// ree_referee_node, _input, _token, _header and _length judge both sides of a claim of their kind.
// They record each wrong side with ree_ruling_wrong. ree_referee_node consumes the model's graph.
enum ree_status ree_referee_node(const struct ree_claim *claim, struct ree_opened *model,
                                 struct ree_recorded_folder *folder, struct ree_ruling *out,
                                 struct ree_error *err);
enum ree_status ree_referee_input(const struct ree_hearing *hearing, struct ree_ruling *out,
                                  struct ree_error *err);
enum ree_status ree_referee_token(const struct ree_hearing *hearing, struct ree_ruling *out,
                                  struct ree_error *err);
enum ree_status ree_referee_header(const struct ree_hearing *hearing, struct ree_ruling *out,
                                   struct ree_error *err);
enum ree_status ree_referee_length(const struct ree_hearing *hearing, struct ree_ruling *out,
                                   struct ree_error *err);
// Judges what both text receipts state in addition to their traces: the tokenizer, the context
// length, which token ends the answer and why, and the texts of the tokens. Each receipt is judged
// by itself, against the tokenizer and the parameters in the model's folder. Does nothing without
// both receipts. A party whose tokens are not known is judged by the other statements. Sets
// is_end_unknown.
enum ree_status ree_referee_receipts(const struct ree_hearing *hearing, struct ree_ruling *out,
                                     struct ree_error *err);
// Sets is_withheld of the parties whose tokens were not provided, and fails with REE_UNSUPPORTED.
// To be called if these tokens are required to decide the claim.
enum ree_status ree_referee_withheld(const struct ree_hearing *hearing, struct ree_ruling *out,
                                     struct ree_error *err);

#endif
