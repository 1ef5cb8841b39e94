// Checks an answer to a prompt: whether the model chooses each of the answer's tokens. If the model
// is proved to be causal (generate/causality.h), all tokens run in one pass, like a prompt, which
// is several times faster than generating them. Any other model could, in one pass, look ahead at
// tokens that were unknown when the text was generated. So it runs the answer token by token, as in
// generation.
#ifndef REE_GENERATE_CHECK_H
#define REE_GENERATE_CHECK_H

#include "generate/generator.h"
#include "base/sha256.h"

struct ree_check {
    const int32_t *ids; // (n): tokens of the prompt, then of the answer
    size_t n_prompt, n; // number of tokens in the prompt; in prompt and answer; 1 <= n_prompt <= n
    struct ree_sampling sampling;
    // Hash the logits of all tokens except the last, as ree_generate does with all_logits.
    bool hash_logits;
    // Called before each run; returning true ends the check with REE_UNAVAILABLE. NULL: off.
    bool (*is_interrupted)(void *user);
    void *user;
};

struct ree_check_result {
    bool agrees;     // the model chooses every token of the answer
    size_t position; // if not `agrees`: index of the first wrong token; the prompt begins at 0
    // Tokens at `position`: the answer's, and the one that the model chooses. chosen is -1 if the
    // model can choose none; `reason` says why.
    int32_t given, chosen;
    char reason[160];       // why the model can choose no token at `position`; otherwise ""
    char logits_sha256[65]; // hash of the logits in hexadecimal, if hash_logits; otherwise ""
    // A logit of a row that was examined is NaN, or may be if the prompt is divided otherwise.
    bool has_nan;
    size_t n_runs;
    char why_stepwise[384]; // why the answer ran token by token; "": it ran in one pass
};

// Returns whether one of n logits is NaN. It may come from a later token of the same run
// (graph/causality/prove.h).
bool ree_logits_have_nan(const float *logits, size_t n);

// Checks an answer and fills *out, also if the answer is wrong. Fails if the model cannot run over
// these ids. The answer may have any length; the model's context length is not checked.
enum ree_status ree_generator_check(struct ree_generator *generator, const struct ree_check *check,
                                    struct ree_check_result *out, struct ree_error *err);

#endif
