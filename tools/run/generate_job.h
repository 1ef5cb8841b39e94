// Declarations shared by the files of `ree-run generate`.
#ifndef REE_TOOLS_RUN_GENERATE_JOB_H
#define REE_TOOLS_RUN_GENERATE_JOB_H

#include "generate/generator.h"
#include "generate_options.h"
#include "generate_report.h"
#include "receipt/checkpoint.h"
#include "receipt/request.h"
#include "trace_options.h"
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
    size_t *n_logprobs;              // number of entries in each logprobs[i]
    int32_t *eos;
    size_t n_eos;
    struct ree_model_hashes hashes; // for a receipt or a checkpoint
    struct tracing tracing;
    struct ree_traced traced;
    bool has_trace;
    char receipt_hash[65];                 // hash of the written receipt; "": none
    struct ree_text_checkpoint checkpoint; // describes this run; has no sequences
    struct ree_text_checkpoint resumed;    // checkpoint to continue from; n == 0: none
    // snapshots with prompts only, for comparing with a checkpoint
    struct ree_snapshot *prompts_only;
    bool is_kept;           // at least one checkpoint was written
    bool checkpoint_failed; // writing the last checkpoint failed; already printed
    bool failed;            // a callback failed; already printed
};

// generate_receipt.c
// Checks before the run everything that can make a receipt fail, and hashes the model (also for a
// checkpoint).
int generate_prepare_receipt(struct job *job, const struct ree_generate_options *options);
int generate_save_receipt(struct job *job, const struct ree_generate_options *options,
                          const struct ree_generate_stats *stats);

// generate_checkpoint.c
// Must be called before anything is opened. Checks that the checkpoint may be written, and loads
// the one to resume from.
int generate_open_checkpoint(struct job *job);
// Must be called after the model was hashed. Compares the loaded checkpoint with this run and sets
// the checkpoint options.
int generate_prepare_checkpoint(struct job *job, struct ree_generate_options *options);
// Passes the tokens of the loaded checkpoint to the writers.
int generate_replay(struct job *job);

#endif
