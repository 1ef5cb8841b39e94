// Trace options of `run` and `generate`: --trace, --dump-tensors and --inject-fault.
#ifndef REE_TOOLS_RUN_TRACE_OPTIONS_H
#define REE_TOOLS_RUN_TRACE_OPTIONS_H

#include "receipt/make_receipt.h"
#include "trace/record.h"
#include "pipeline/pipeline.h"

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
// Reports options that exclude each other as wrong usage.
void trace_options_check(struct cli *cli, const struct trace_options *options);
// true: at least one of --trace, --dump-tensors and --inject-fault was given.
bool trace_options_any(const struct trace_options *options);

struct tracing {
    const struct trace_options *options;
    struct ree_recorder *recorder;
    struct tensor_dump *dump;
    struct ree_observer observers[2]; // observers of recorder and dump
    size_t n_observers;
    // unused
    uint64_t fault_step;
    uint64_t n_steps;
    uint32_t prefill_chunk;
};

struct traced_run {
    const struct ree_model *model;
    const struct ree_model_hashes *hashes; // NULL: tracing_begin computes them if needed
    struct ree_pipeline *pipeline;
    enum ree_operation_set operation_set;
    uint32_t prefill_chunk; // tokens per prefill step; 0: a model without steps
    size_t n_kv_caches;
    const struct ree_kv_cache_spec *kv_caches;
};

// Must be called before the first run. Prints errors; returns an exit code.
int tracing_begin(struct tracing *tracing, const struct trace_options *options,
                  const struct traced_run *run);
// Must be called after the last run. *out_has: a trace was written; *out_traced describes it.
int tracing_end(struct tracing *tracing, struct ree_traced *out_traced, bool *out_has);
void tracing_finish(struct tracing *tracing); // accepts a zeroed struct

// Parses --inject-fault and finds its node.
enum ree_status parse_fault_option(const char *text, const struct ree_model *model,
                                   struct ree_fault *out, struct ree_error *err);

#endif
