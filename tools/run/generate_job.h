// Declarations shared by the files of `ree-run generate`.
#ifndef REE_TOOLS_RUN_GENERATE_JOB_H
#define REE_TOOLS_RUN_GENERATE_JOB_H

#include "generate_options.h"
#include "generate_report.h"
#include "trace_options.h"
#include "writer.h"

struct job {
    struct generate_options *o;
    struct ree_generator *generator;
    struct ree_tokenizer *tokenizer;
    struct prompts prompts;
    struct ree_request *request; // NULL without --request
    struct ree_completion *completion;
    struct ree_checkpoint *checkpoint; // NULL without --checkpoint and --resume
    size_t n;                          // number of prompts
    bool prints;                       // print text while it is generated: one prompt, no --json
    struct writer writer;              // used if prints is set
    size_t n_ids;                      // number of token ids printed, if there is no tokenizer
    struct token_logprob **logprobs;   // logprobs[i]: one entry per new token of sequence i
    size_t *n_logprobs;                // number of entries in each logprobs[i]
    struct tracing tracing;
    struct traced traced;
    bool has_trace;
    char receipt_hash[65]; // hash of the written receipt; "": none
    bool is_other_run;     // the checkpoint is of another run; a message was printed
    bool failed;           // a callback failed; its message was printed
};

// generate_receipt.c
// These functions return 0, or print an error and return an exit code. They do nothing if no
// receipt was requested. Before the run, generate_prepare_receipt checks everything that can make a
// receipt fail, and hashes the model.
int generate_prepare_receipt(struct job *job);
int generate_save_receipt(struct job *job);

// generate_checkpoint.c
// These functions return 0, or print an error and return an exit code. They do nothing without
// --checkpoint and --resume. generate_open_checkpoint must be called before the model is opened. It
// checks that the checkpoint can be written, and loads the one to resume from.
int generate_open_checkpoint(struct job *job);
// Connects the checkpoint with job->completion, which then saves its progress in it. Compares a
// loaded checkpoint with this run and returns CLI_USAGE if it is of another run.
int generate_attach_checkpoint(struct job *job);

#endif
