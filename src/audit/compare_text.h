// Two generators, step by step, over the same tokens.
#ifndef REE_AUDIT_COMPARE_TEXT_H
#define REE_AUDIT_COMPARE_TEXT_H

#include "generate/generator.h"

struct ree_compare_text {
    struct ree_generator *generators[2]; // of one model
    const int32_t *prompt;
    size_t n_prompt;
    size_t max_new_tokens;
    const int32_t *eos; // ids after which the text ends
    size_t n_eos;
    // After each step of both; NULL: off.
    void (*on_step)(void *user);
    void *user;
};

// Runs the prompt, cut into pieces, and then token by token what the first generator finds the
// likeliest. *out_ids (malloc): those tokens.
enum ree_status ree_compare_text(const struct ree_compare_text *text, int32_t **out_ids,
                                 size_t *out_n, struct ree_error *err);

#endif
