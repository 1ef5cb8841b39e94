// Trace options of `run` and `generate`: --trace, --dump-tensors and --inject-fault.
#ifndef REE_TOOLS_RUN_TRACE_OPTIONS_H
#define REE_TOOLS_RUN_TRACE_OPTIONS_H

#include "ree.h"

// Default number of prompt tokens per step.
#define TRACE_CHUNK 64

struct cli;
struct trace_options {
    const char *trace;                       // file to write; NULL: none
    const char *dump, *dump_folder, *format; // NULL: not given
    const char *fault;                       // NULL: none
    bool is_secret;                          // the written files are accessible to their owner only
};

// The options are cli_trace_group.
// Reports a malformed --inject-fault as wrong usage; `fault` may be NULL.
void fault_option_check(struct cli *cli, const char *fault);
// Reports options that exclude each other as wrong usage.
void trace_options_check(struct cli *cli, const struct trace_options *options);
// true: at least one of --trace, --dump-tensors and --inject-fault was given.
bool trace_options_any(const struct trace_options *options);

// A trace that was written.
struct traced {
    char root[65]; // in hexadecimal
    uint64_t n_steps;
    uint32_t prefill_chunk;
    const char *file; // file name without folders; NULL: not stated
};

struct tracing {
    const struct trace_options *options;
    struct ree_recording *recording; // NULL: nothing is recorded
};

struct traced_run {
    struct ree_generator *generator; // this or the pipeline
    struct ree_pipeline *pipeline;
    const char *graph_sha256, *weights_sha256; // of the model; NULL: computed if needed
};

// Must be called before the first run. Prints errors; returns an exit code.
int tracing_begin(struct tracing *tracing, const struct trace_options *options,
                  const struct traced_run *run);
// Must be called after the last run. *out_has: a trace was written; *out_traced describes it.
int tracing_end(struct tracing *tracing, struct traced *out_traced, bool *out_has);
uint64_t tracing_n_steps(const struct tracing *tracing); // recorded so far
void tracing_finish(struct tracing *tracing);            // accepts a zeroed struct

#endif
