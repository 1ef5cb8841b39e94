// Parts of the referee. For referee.c.
#ifndef REE_AUDIT_REFEREE_PARTS_H
#define REE_AUDIT_REFEREE_PARTS_H

#include "audit/referee.h"
#include "audit/rules.h"

// What the referee holds the parties to.
struct ree_court {
    const struct ree_claim *claim;
    struct ree_opened *model;
    struct ree_rules rules;
    struct ree_told told[2]; // those of receipts that are at hand
    bool has_receipts;       // both are
    bool is_requested;       // both have to answer a request
    const char *folder;      // NULL: none
};

// Names a party, once: the first reason stays.
__attribute__((format(printf, 3, 4))) void ree_ruling_wrong(struct ree_ruling *ruling, unsigned k,
                                                            const char *format, ...);

// Each of these judges both sides. The graph of the model is used up by ree_referee_node.
enum ree_status ree_referee_node(const struct ree_claim *claim, struct ree_opened *model,
                                 const char *folder, struct ree_ruling *out, struct ree_error *err);
enum ree_status ree_referee_input(const struct ree_court *court, struct ree_ruling *out,
                                  struct ree_error *err);
enum ree_status ree_referee_token(const struct ree_court *court, struct ree_ruling *out,
                                  struct ree_error *err);
enum ree_status ree_referee_header(const struct ree_court *court, struct ree_ruling *out,
                                   struct ree_error *err);
enum ree_status ree_referee_length(const struct ree_court *court, struct ree_ruling *out,
                                   struct ree_error *err);
// What both receipts of texts say beside their traces: tokenizer, context, which token ends the
// answer and why, what the tokens say. Each is judged by itself, against the tokenizer and the
// parameters beside the model. Does nothing without both receipts. A party whose tokens are not
// known is judged by the rest. Sets is_end_unknown.
enum ree_status ree_referee_receipts(const struct ree_court *court, struct ree_ruling *out,
                                     struct ree_error *err);
// REE_UNSUPPORTED: the claim takes tokens that a party has not given. Sets is_withheld.
enum ree_status ree_referee_withheld(const struct ree_court *court, struct ree_ruling *out,
                                     struct ree_error *err);

#endif
