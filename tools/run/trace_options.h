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

#define TRACE_OPTIONS_HELP                                                                         \
    "observing values (slower: ree fuses nothing across nodes)\n"                                  \
    "  --trace FILE         write the SHA-256 of every value that every node computed, and one\n"  \
    "                       SHA-256 over all of them. 'ree-run diff' compares two traces. "        \
    "Reads\n"                                                                                      \
    "                       all weights twice at the beginning\n"                                  \
    "  --dump-tensors REGEX --dump-folder DIR\n"                                                   \
    "                       write the outputs of nodes whose name, or whose output's name,\n"      \
    "                       matches (POSIX extended) to DIR/step-STEP/NODE-NAME-OUTPUT.npy;\n"     \
    "                       NODE and OUTPUT are numbers. Of caches, only the new positions.\n"     \
    "                       Inputs of the model whose name matches:\n"                             \
    "                       DIR/step-STEP/input-NUMBER-NAME.npy. At most 10000 files\n"            \
    "  --format npy         format of these files (npy is the only one)\n"                         \
    "  --inject-fault NODE:STEP:BIT[:OUTPUT]\n"                                                    \
    "                       flip one bit of a value that a node (its number or name) computed\n"   \
    "                       in a step (counted from 0), to check that it is found\n"

// true: the current argument is one of these options.
bool trace_option(struct cli *cli, struct trace_options *options);
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
