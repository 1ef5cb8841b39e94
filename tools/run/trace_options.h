// Trace options of `run`, `generate` and `train`: --trace, --dump-tensors and --inject-fault.
#ifndef REE_TOOLS_RUN_TRACE_OPTIONS_H
#define REE_TOOLS_RUN_TRACE_OPTIONS_H

#include "ree.h"

// Default number of prompt tokens per step in a run that is recorded or compared.
#define TRACE_CHUNK 64

struct cli;
struct trace_options {
    const char *trace; // file to write the trace to; NULL: none
    // Values of --dump-tensors, --dump-folder and --format; NULL: not given.
    const char *dump, *dump_folder, *format;
    const char *fault; // value of --inject-fault; NULL: not given
    bool is_secret;    // only the owner may read the written files
};

// Reports a malformed value of --inject-fault as wrong usage; `fault` may be NULL.
void fault_option_check(struct cli *cli, const char *fault);
// Reports malformed values of the options of cli_trace_group, and options that do not fit together,
// as wrong usage.
void trace_options_check(struct cli *cli, const struct trace_options *options);
// Returns true if --trace, --dump-tensors or --inject-fault was given.
bool trace_options_any(const struct trace_options *options);

// Describes a trace that was written.
struct traced {
    char root[65]; // root of the hash tree, in hexadecimal
    uint64_t n_steps;
    uint32_t prefill_chunk;
    const char *file; // the trace's file name without folders; NULL if it is not printable ASCII
};

struct tracing {
    const struct trace_options *options;
    struct ree_recording *recording; // NULL: nothing is recorded
};

struct traced_run {
    // What runs; the other two are NULL.
    struct ree_generator *generator;
    struct ree_pipeline *pipeline;
    struct ree_training *training;
    const char *graph_sha256, *weights_sha256; // the model's hashes; NULL: computed if needed
};

// Starts the recording that the options request, if any. Must be called before the first run.
// `options` must outlive *tracing. Returns 0, or prints an error and returns an exit code.
int tracing_begin(struct tracing *tracing, const struct trace_options *options,
                  const struct traced_run *run);
// Ends the recording and writes its files. Must be called after the last run. *out_has: whether a
// trace was written; *out_traced then describes it. Returns 0, or prints an error and returns an
// exit code.
int tracing_end(struct tracing *tracing, struct traced *out_traced, bool *out_has);
uint64_t tracing_n_steps(const struct tracing *tracing); // number of steps recorded so far
void tracing_finish(struct tracing *tracing);            // accepts a zeroed struct

#endif
