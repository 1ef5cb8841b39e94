// Checking a text that is given: whether a model, asked at each position, chooses the token that
// stands there. If the model is proved to be causal (generate/causality.h), the whole text runs in
// one pass, as a prompt does, and that is several times faster than making it. Any other model
// could look ahead in one pass, at tokens that it could not know while it made the text. Its answer
// runs token by token, as generating it does.
#ifndef REE_GENERATE_CHECK_H
#define REE_GENERATE_CHECK_H

#include "generate/generator.h"
#include "base/sha256.h"

struct ree_check {
    const int32_t *ids; // prompt and answer
    size_t n_prompt, n; // 1 <= n_prompt <= n
    struct ree_sampling sampling;
    bool hash_logits; // of all tokens but the last, as ree_generate does with all_logits
    // Asked before each run; true ends the check with REE_UNAVAILABLE. NULL: off.
    bool (*is_interrupted)(void *user);
    void *user;
};

struct ree_check_result {
    bool agrees;            // every token of the answer is the one that is chosen
    size_t position;        // the first that is not, counted from the prompt's first token
    int32_t given, chosen;  // there; chosen -1: none, because of `reason`
    char reason[160];       // "": none
    char logits_sha256[65]; // with hash_logits, else ""
    size_t n_runs;
    char why_stepwise[384]; // why the answer ran token by token; "": it ran in one pass
};

// Fails where the model cannot be run over these ids. The answer may be of any length; the model's
// own context length is not looked at.
enum ree_status ree_generator_check(struct ree_generator *generator, const struct ree_check *check,
                                    struct ree_check_result *out, struct ree_error *err);

#endif
