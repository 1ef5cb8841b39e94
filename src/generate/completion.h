// Defines struct ree_completion, whose fields src/receipt also uses, for requests, receipts and
// checkpoints.
#ifndef REE_GENERATE_COMPLETION_H
#define REE_GENERATE_COMPLETION_H

#include "base/arena.h"
#include "generate/answer.h"
#include "generate/generator.h"

struct ree_completion {
    struct ree_generator *generator;
    const struct ree_tokenizer *tokenizer; // NULL: only token ids are known, no texts
    struct ree_tokenizer *owned_tokenizer; // NULL: the caller owns `tokenizer`
    struct ree_completion_options options; // the caller's options; sampling and stops are copies
    struct ree_generate_options generate;  // the options that ree_generate receives
    struct ree_sampling sampling;
    struct ree_arena arena; // owns the stop texts and the prompts' ids
    int32_t *eos;           // ids that end an answer; owned
    size_t n;
    struct ree_prompt *prompts;
    struct ree_answer *answers; // (n); not used without a tokenizer
    size_t *streamed;           // (n): bytes of each answer's text that on_text received
    struct ree_generation *generations;
    struct ree_generate_stats stats;
    bool is_started, is_done;
    // on_token ended one answer. A checkpoint cannot record that, so all answers are interrupted.
    bool is_cut;
    // REE_OK, or the status of the first failure while texts of answers were made. A failure ends
    // the generation.
    enum ree_status status;
    struct ree_error error;
    // Hash of the request that this completion answers; "": none. Hashes of the model that the
    // request requires; graph_sha256 "": any model.
    char request_sha256[65], graph_sha256[65], weights_sha256[65];
    // A checkpoint sets the fields below before the run. keep saves the sequences; it is called
    // like on_checkpoint of ree_generate_options, but in ree's floating-point environment. NULL:
    // none.
    enum ree_status (*keep)(void *user, const struct ree_snapshot *sequences, size_t n,
                            struct ree_error *err);
    void *keep_user;
    size_t keep_every;
    const struct ree_snapshot *resume; // (n): snapshots to resume from; NULL: no resumption
    const char *resume_name;           // name of the resumed checkpoint, for messages
};

#endif
