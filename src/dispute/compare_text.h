// Runs two generators over the same tokens, step by step, so that observers can compare the values
// that they compute.
#ifndef REE_DISPUTE_COMPARE_TEXT_H
#define REE_DISPUTE_COMPARE_TEXT_H

#include "generate/generator.h"

struct ree_compare_text {
    struct ree_generator *generators[2]; // both of the same model
    const int32_t *prompt;
    size_t n_prompt;
    size_t max_new_tokens;
    const int32_t *eos; // (n_eos): token ids that end the text
    size_t n_eos;
    // Called after each step of both generators; NULL: off.
    void (*on_step)(void *user);
    void *user;
};

// Runs both generators over the prompt in chunks, and then over an answer token by token. Each
// token of the answer is the one that the first generator finds most likely. *out_ids receives the
// answer; release it with ree_free.
enum ree_status ree_compare_text(const struct ree_compare_text *text, int32_t **out_ids,
                                 size_t *out_n, struct ree_error *err);

#endif
