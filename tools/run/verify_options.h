// The options of `ree-run verify`.
#ifndef REE_TOOLS_RUN_VERIFY_OPTIONS_H
#define REE_TOOLS_RUN_VERIFY_OPTIONS_H

#include "cli.h"
#include "inputs.h"
#include "stage_options.h"
#include "prompts.h"
#include "quantize.h"

struct verify_options {
    const char *receipt, *model, *tokenizer, *chat_family, *key, *salt, *request, *trace;
    struct cli_quantize quantize;
    struct cli_device device;
    struct cli_stages stages;
    struct prompt_arg *prompts;
    size_t n_prompts;
    struct run_inputs inputs;
    const char *data, *resume; // for a receipt of a training
    uint64_t n_steps;          // for a receipt of a training; 0: all
    uint64_t chunk;
    bool stepwise, ignore_eos, raw, json, no_fuse, no_fold;
};

// Parses and checks the options. Returns false after printing a message. Release the options with
// verify_options_finish, also after a failure.
bool verify_options_parse(struct verify_options *options, int argc, char **argv);
void verify_options_finish(struct verify_options *options);
int verify_options_help(void);

#endif
