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
    struct ree_request *request; // with --request
    struct ree_completion *completion;
    struct ree_checkpoint *checkpoint; // with --checkpoint or --resume
    size_t n;                          // prompts
    bool prints;                       // print during generation; only for a single sequence
    struct writer writer;              // used if prints is set
    size_t n_ids;                      // ids printed; used without a tokenizer
    struct token_logprob **logprobs;   // per sequence
    size_t *n_logprobs;                // number of entries in each logprobs[i]
    struct tracing tracing;
    struct traced traced;
    bool has_trace;
    char receipt_hash[65]; // hash of the written receipt; "": none
    bool is_other_run;     // the checkpoint differs from this run; printed
    bool failed;           // a callback failed; already printed
};

// generate_receipt.c
// Checks before the run everything that can make a receipt fail, and hashes the model.
int generate_prepare_receipt(struct job *job);
int generate_save_receipt(struct job *job);

// generate_checkpoint.c
// Must be called before anything is opened. Checks that the checkpoint may be written, and loads
// the one to resume from.
int generate_open_checkpoint(struct job *job);
// Compares the loaded checkpoint with this run.
int generate_attach_checkpoint(struct job *job);

#endif
