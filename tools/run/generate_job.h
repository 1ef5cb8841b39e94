// What the files of `ree-run generate` share.
#ifndef REE_TOOLS_RUN_GENERATE_JOB_H
#define REE_TOOLS_RUN_GENERATE_JOB_H

#include "cli.h"
#include "generate/generator.h"
#include "generate_report.h"
#include "parts.h"
#include "prompts.h"
#include "receipt/checkpoint.h"
#include "receipts.h"
#include "watch.h"
#include "writer.h"

struct checkpoint_options {
    const char *path; // that is written; NULL: none
    const char *from; // that the run goes on from; NULL: none
    bool resumes;
    uint64_t every; // 0: 32
};

struct options {
    const char *model, *tokenizer, *chat_family;
    struct cli_device device;
    struct cli_parts parts;
    struct prompt_arg *prompts;
    const char **stops;
    size_t n_prompts, n_stops;
    struct ree_sampling sampling;
    uint64_t max_new_tokens, n_logprobs, chunk, batch, n_sets;
    struct cli_receipt receipt;
    struct watch_options watch;
    struct checkpoint_options checkpoint;
    bool raw, ignore_eos, json, logits_hash, no_echo, stats, no_fuse, no_fold;
};

struct job {
    struct options *o;
    struct ree_generator *generator;
    struct ree_tokenizer *tokenizer;
    struct prompts prompts;
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
#define CHECKPOINT_HELP                                                                            \
    "checkpoints\n"                                                                                \
    "  --checkpoint FILE    keep in FILE how far the answers have come; it is replaced whole\n"    \
    "  --checkpoint-every K so often: when one has K tokens more (otherwise 32)\n"                 \
    "  --resume [FILE]      go on from there, with the same model, prompts and options: the "      \
    "result\n"                                                                                     \
    "                       is that of a run that was not interrupted. Without FILE (which "       \
    "comes\n"                                                                                      \
    "                       after MODEL), from that of --checkpoint; without --checkpoint, FILE "  \
    "is\n"                                                                                         \
    "                       written, too. What the checkpoint says is computed again and "         \
    "compared\n"

bool checkpoint_option(struct cli *cli, struct options *o);
void checkpoint_check(struct cli *cli, struct options *o);
// Before anything is opened: whether the file may be written; reads what the run goes on from.
int generate_open_checkpoint(struct job *job);
// After the model was hashed: compares that with this run and sets the options up.
int generate_prepare_checkpoint(struct job *job, struct ree_generate_options *options);
// Gives the writers the answers so far.
int generate_replay(struct job *job);

#endif
