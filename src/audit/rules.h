// What ties the inputs of a step to the model, to the receipt and to the step before. A trace has
// the digest of each input; these rules say which digest it must be, so that a party that makes one
// up is named:
//
//     rule    input                          must be
//     cache   keys and values                the output of the step before that is kept; in the
//                                            first step an empty cache
//     tokens  token ids                      tokens of the receipt; each of the answer is what
//                                            sampling chooses from the logits of the step before
//     made    positions, masks, lengths      what the number of tokens says
//     given   tensors of a model that runs   the receipt's
//             once
//
// They hold for one party alone: a party that breaks one contradicts its own root or receipt.
#ifndef REE_AUDIT_RULES_H
#define REE_AUDIT_RULES_H

#include "audit/open_model.h"
#include "receipt/receipt.h"

enum ree_rule_kind {
    REE_RULE_NONE, // the model does not say where the input comes from
    REE_RULE_GIVEN,
    REE_RULE_MADE,
    REE_RULE_TOKENS,
    REE_RULE_CACHE,
};
const char *ree_rule_name(enum ree_rule_kind kind); // "cache"

struct ree_rule {
    enum ree_rule_kind kind;
    uint32_t value;   // of CACHE: the value of the step before (receipt/trace.h)
    ree_digest empty; // of CACHE: the input of the first step
};

// An output of a model that runs once.
struct ree_rule_output {
    const char *name; // of the model
    uint32_t value;   // receipt/trace.h; UINT32_MAX: no node makes it
};

struct ree_rules {
    uint32_t n;             // inputs of the model
    struct ree_rule *rules; // (n)
    uint32_t n_outputs;     // 0 for a model of text
    struct ree_rule_output *outputs;
    uint32_t tokens; // the input with the rule TOKENS; UINT32_MAX: none
    uint32_t logits; // value that tokens are chosen from; UINT32_MAX: none
    bool has_cache;  // a step after the prompt reads one token
};

// In the arena.
enum ree_status ree_rules_make(const struct ree_opened *model, struct ree_arena *arena,
                               struct ree_rules *out, struct ree_error *err);

// The run that a receipt tells of, cut into steps: pieces of the prompt, then a token at a time.
struct ree_told {
    const struct ree_receipt *receipt; // borrowed
    size_t n_prompt, n_output;
    int32_t *ids; // prompt and output (n_prompt + n_output); NULL: not known, of a private receipt
    size_t piece; // prompt tokens in a step
    uint64_t n_prompt_steps;
    bool has_n_steps;
    uint64_t n_steps; // of the whole run; the last token is read by no step
    bool has_cache;
};

// Tokens of prompt and output, for a private receipt; ids NULL: not known.
struct ree_told_tokens {
    size_t n;
    const int32_t *ids;
};

// Fails with REE_INVALID if the receipt has no trace or cannot be of a run, or if `tokens` (may be
// NULL) are not those whose hashes it has. In the arena.
enum ree_status ree_told_make(const struct ree_receipt *receipt, const struct ree_rules *rules,
                              const struct ree_told_tokens *tokens, struct ree_arena *arena,
                              struct ree_told *out, struct ree_error *err);
// Whether two receipts are of the same run, apart from its result: model, numerics, prompt,
// sampling, how the prompt is cut. Inputs of a model that runs once are apart
// (ree_told_compare_inputs), since a trace has them, too. What ends an answer is not compared: up
// to the first end both runs are the same, and each is judged by its own (referee_parts.h).
// REE_INVALID with what differs.
enum ree_status ree_told_compare(const struct ree_told *a, const struct ree_told *b,
                                 struct ree_error *err);
enum ree_status ree_told_compare_inputs(const struct ree_told *a, const struct ree_told *b,
                                        struct ree_error *err);
// The place of the first token of the answers in which two runs differ; SIZE_MAX: there is none in
// what both have, or it is not known.
size_t ree_told_differ(const struct ree_told *a, const struct ree_told *b);
// The step that reads the token at this place; n_steps for the last token.
uint64_t ree_told_step_of(const struct ree_told *told, size_t place);

// The digest that an input with the rule GIVEN, MADE or TOKENS has in a step. REE_UNSUPPORTED if
// the receipt does not tell it: token ids of a private receipt, floats of a model that runs once.
enum ree_status ree_told_input(const struct ree_told *told, const struct ree_opened *model,
                               const struct ree_rules *rules, uint64_t step, uint32_t input,
                               ree_digest out, struct ree_error *err);

#endif
