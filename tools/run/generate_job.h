// What the files of `ree-run generate` share.
#ifndef REE_TOOLS_RUN_GENERATE_JOB_H
#define REE_TOOLS_RUN_GENERATE_JOB_H

#include "generate/generator.h"
#include "generate_options.h"
#include "generate_report.h"
#include "receipt/checkpoint.h"
#include "receipt/request.h"
#include "watch.h"
#include "writer.h"

struct job {
    struct generate_options *o;
    struct ree_generator *generator;
    struct ree_tokenizer *tokenizer;
    struct prompts prompts;
    struct ree_request request; // with --request
    struct writer *writers;
    struct ree_generation *generations;
    struct token_logprob **logprobs; // per sequence
    size_t *n_logprobs;              // of each
    int32_t *eos;
    size_t n_eos;
    struct ree_model_hashes hashes; // for a receipt, a checkpoint
    struct watch watch;
    struct ree_traced traced;
    bool has_trace;
    char receipt_hash[65];                 // of the one that was written; ""
    struct ree_text_checkpoint checkpoint; // of this run, without sequences
    struct ree_text_checkpoint resumed;    // where it goes on; n 0: nowhere
    struct ree_snapshot *prompts_only;     // for comparing them
    bool is_kept;                          // a checkpoint was written
    bool checkpoint_failed;                // the last one was not; printed
    bool failed;                           // in a callback; printed
};

// generate_receipt.c. What can go wrong with a receipt goes wrong before the run, and the weights
// are read, for it or for a checkpoint.
int generate_prepare_receipt(struct job *job, const struct ree_generate_options *options);
int generate_save_receipt(struct job *job, const struct ree_generate_options *options,
                          const struct ree_generate_stats *stats);

// generate_checkpoint.c
// Before anything is opened: whether the file may be written; reads what the run goes on from.
int generate_open_checkpoint(struct job *job);
// After the model was hashed: compares that with this run and sets the options up.
int generate_prepare_checkpoint(struct job *job, struct ree_generate_options *options);
// Gives the writers the answers so far.
int generate_replay(struct job *job);

#endif
