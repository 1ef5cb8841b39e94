// Rules that tie the inputs of a step to the model, to the receipt and to the previous step. A
// trace has the digest of each input. These rules say which digest that must be, so that a party
// that invents an input is named:
//
//     rule    input                          must be
//     cache   keys and values                the output of the previous step that is kept; in the
//                                            first step an empty cache
//     tokens  token ids                      tokens of the receipt; each token of the answer is the
//                                            one that sampling chooses from the logits of the
//                                            previous step
//     made    positions, masks, lengths      what follows from the number of tokens
//     given   tensors of a model that runs   the receipt's
//             once
//
// Each rule is about a single party: a party that breaks one contradicts its own root or receipt.
#ifndef REE_DISPUTE_RULES_H
#define REE_DISPUTE_RULES_H

#include "trace/open_model.h"
#include "trace/recorded.h"
#include "receipt/receipt.h"

enum ree_rule_kind {
    REE_RULE_NONE,      // the model does not define where the input comes from
    REE_RULE_RUN_INPUT, // rule "given": a tensor that the caller of the run supplies
    REE_RULE_MADE,      // positions, masks and sizes, which follow from the number of tokens
    REE_RULE_TOKENS,
    REE_RULE_CACHE, // what the same party's previous step wrote
    // Only in disputes about trainings (dispute/training_rules.h)
    REE_RULE_SAMPLES,
    REE_RULE_DRAW,
    REE_RULE_DEFAULT,
};
const char *ree_rule_name(enum ree_rule_kind kind); // "cache"

struct ree_rule {
    enum ree_rule_kind kind;
    // Rule CACHE: number (trace/trace.h) of the value that the input must equal, computed in the
    // previous step.
    uint32_t value;
    // Rule CACHE: digest that the input must have in the first step (an empty cache, the initial
    // value of a state).
    ree_digest empty;
    bool is_any_first; // rule CACHE: what the input must be in the first step is not known
    // Rule CACHE of a state whose next value no node computes (`value` is UINT32_MAX): the digest
    // that the input must have in later steps, if it is known.
    bool has_later;
    ree_digest later;
};

// An output of a model that runs once.
struct ree_rule_output {
    const char *name; // the output's name in the model
    struct ree_recorded_source source;
};

struct ree_rules {
    const struct ree_opened *model; // whose rules these are; borrowed
    uint32_t n;                     // number of model inputs
    struct ree_rule *rules;         // one per input
    uint32_t n_outputs;             // number of model outputs; 0 if the model generates text
    struct ree_rule_output *outputs;
    uint32_t tokens; // index of the input with the rule TOKENS; UINT32_MAX: none
    uint32_t logits; // number of the value that tokens are chosen from; UINT32_MAX: none
    bool has_cache;  // if true, a step after the prompt reads only one token
};

// Derives the rules of a model, allocated in the arena.
enum ree_status ree_rules_make(const struct ree_opened *model, struct ree_arena *arena,
                               struct ree_rules *out, struct ree_error *err);

// The run that a receipt describes, cut into steps: first chunks of the prompt, then one token
// each.
struct ree_stated_run {
    const struct ree_receipt *receipt; // borrowed
    size_t n_prompt, n_output;
    // Prompt tokens, then output tokens (n_prompt + n_output). NULL: not known, in a private
    // receipt.
    int32_t *ids;
    size_t chunk; // prompt tokens per step
    uint64_t n_prompt_steps;
    uint64_t n_steps;   // steps of the whole run; no step reads the last token
    bool may_end_early; // without an answer the run may have ended in the prompt
    bool has_cache;
};

// Tokens of prompt and output of a private receipt; ids NULL: not known.
struct ree_stated_tokens {
    size_t n;
    const int32_t *ids;
};

// Derives the run of a receipt, allocated in the arena. Fails with REE_INVALID if the receipt has
// no trace or cannot come from a run, or if `tokens` (may be NULL) do not have the receipt's
// hashes.
enum ree_status ree_stated_run_make(const struct ree_receipt *receipt,
                                    const struct ree_rules *rules,
                                    const struct ree_stated_tokens *tokens, struct ree_arena *arena,
                                    struct ree_stated_run *out, struct ree_error *err);
#define REE_CHUNK_LIE 160
// Writes why the receipt of a text states a chunk of the prompt that the model must not have
// (ree_chunk_needs_causality); "" if it may have it. ree-receipt/1 allowed any chunk. Needs the
// model's graph.
enum ree_status ree_stated_chunk_lie(const struct ree_receipt *receipt,
                                     const struct ree_opened *model, char out[REE_CHUNK_LIE],
                                     struct ree_error *err);
// Returns whether the run may have this number of steps.
bool ree_stated_run_has_steps(const struct ree_stated_run *stated_run, uint64_t n_steps);
// Checks that two receipts are of the same run, apart from its result: model, numerics, operation
// set, prompt, sampling, and how the prompt is cut into steps. Parameters that end an answer are
// not compared: up to the first end both runs are the same, and each is judged by its own end
// (referee_internal.h). Fails with REE_INVALID and a message that names the difference.
//
// The inputs of a model that runs once are compared by ree_stated_run_compare_inputs, because
// traces also state them, so each receipt can be compared with its own trace first.
enum ree_status ree_stated_run_compare(const struct ree_stated_run *a,
                                       const struct ree_stated_run *b, struct ree_error *err);
enum ree_status ree_stated_run_compare_inputs(const struct ree_stated_run *a,
                                              const struct ree_stated_run *b,
                                              const struct ree_opened *model,
                                              struct ree_error *err);
// Returns the index of the first token in which two runs differ, counted from the prompt's first
// token; SIZE_MAX if the tokens that both have are equal, or if the tokens of one are not known.
size_t ree_stated_run_differ(const struct ree_stated_run *a, const struct ree_stated_run *b);
// Returns the index of the step that reads the token at `index`, counted from the prompt's first
// token; n_steps for the last token of the answer, which no step reads.
uint64_t ree_stated_run_step_of(const struct ree_stated_run *stated_run, size_t index);

// Computes the digest that an input with the rule RUN_INPUT, MADE or TOKENS must have in a step.
// Fails with REE_UNSUPPORTED if the receipt does not determine it: token ids of a private receipt,
// or floats in a receipt of version 1. Fails in the same way for inputs of more than 2^20 tokens
// that the receipt does not list.
enum ree_status ree_stated_run_input(const struct ree_stated_run *stated_run,
                                     const struct ree_opened *model, const struct ree_rules *rules,
                                     uint64_t step, uint32_t input, ree_digest out,
                                     struct ree_error *err);

#endif
