// The options of `ree-run generate`.
#ifndef REE_TOOLS_RUN_GENERATE_OPTIONS_H
#define REE_TOOLS_RUN_GENERATE_OPTIONS_H

#include "cli.h"
#include "option_table.h"
#include "stage_options.h"
#include "prompts.h"
#include "quantize.h"
#include "ranks.h"
#include "receipts.h"
#include "trace_options.h"

struct checkpoint_options {
    const char *path; // checkpoint to write; NULL: none
    const char *from; // checkpoint to resume from; NULL: none
    bool resumes;
    uint64_t every; // new tokens of a sequence between two checkpoints; 0: 32
};

struct generate_options {
    const char *model, *tokenizer, *chat_family, *request;
    struct cli_quantize quantize;
    struct cli_device device;
    struct cli_stages stages;
    struct prompt_arg *prompts;
    const char **stops;
    size_t n_prompts, n_stops;
    struct ree_sampling sampling;
    uint64_t top_k, max_new_tokens, n_logprobs, chunk, batch, n_cache_slots;
    struct cli_receipt receipt;
    struct trace_options tracing;
    struct checkpoint_options checkpoint;
    struct cli_ranks ranks;
    bool raw, ignore_eos, json, logits_hash, no_echo, raw_output, stats, no_fuse, no_fold;
};

// Parses and checks the options. Returns false after printing a message. Release the options with
// generate_options_finish, also after a failure.
bool generate_options_parse(struct generate_options *options, int argc, char **argv);
void generate_options_finish(struct generate_options *options);
int generate_options_help(void);

// generate_checkpoint.c: the checkpoint options, whose values go to struct generate_options.
extern const struct cli_option_table checkpoint_group;
void checkpoint_check(struct cli *cli, struct generate_options *o);

#endif
