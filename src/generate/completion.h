// The fields of struct ree_completion, for requests, receipts and checkpoints (src/receipt).
#ifndef REE_GENERATE_COMPLETION_H
#define REE_GENERATE_COMPLETION_H

#include "base/arena.h"
#include "generate/answer.h"
#include "generate/generator.h"

struct ree_completion {
    struct ree_generator *generator;
    const struct ree_tokenizer *tokenizer; // NULL: no texts
    struct ree_tokenizer *owned_tokenizer; // NULL: the caller's
    struct ree_completion_options options; // sampling and stops point to the copies below
    struct ree_generate_options generate;  // as passed to ree_generate
    struct ree_sampling sampling;
    struct ree_arena arena; // owns the stop texts and the prompts' ids
    int32_t *eos;           // owned
    size_t n;
    struct ree_prompt *prompts;
    struct ree_answer *answers; // with a tokenizer
    size_t *streamed;           // bytes of each answer's text that on_text received
    struct ree_generation *generations;
    struct ree_generate_stats stats;
    bool is_started, is_done;
    bool is_cut; // on_token ended an answer that a checkpoint records: all are interrupted
    // A callback of this file failed; ends the generation.
    enum ree_status status;
    struct ree_error error;
    // The request that this completion answers; "": none. graph_sha256 "": of any model.
    char request_sha256[65], graph_sha256[65], weights_sha256[65];
    // Set by a checkpoint, before the run. on_checkpoint is called in the caller's floating-point
    // environment.
    enum ree_status (*keep)(void *user, const struct ree_snapshot *sequences, size_t n,
                            struct ree_error *err);
    void *keep_user;
    size_t keep_every;
    const struct ree_snapshot *resume; // one per prompt; NULL: none
    const char *resume_name;           // for messages
};

#endif
