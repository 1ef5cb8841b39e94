// Makes the report of `ree-run generate`, as text that follows the generated text, or as JSON.
#ifndef REE_TOOLS_RUN_GENERATE_REPORT_H
#define REE_TOOLS_RUN_GENERATE_REPORT_H

#include "ranks.h"
#include "ree.h"

struct traced; // trace_options.h

struct token_logprob {
    float logprob;
    struct ree_logprob *top; // the n_logprobs most likely tokens; an id of -1: no token
};

struct generate_report {
    size_t n;
    const struct ree_completion *completion;
    bool has_text;
    bool escapes;      // escape control characters of texts
    bool prints_texts; // the report includes the texts, because generation did not print them
    uint32_t n_logprobs;
    struct token_logprob *const *logprobs; // [sequence][new token]; unused if n_logprobs is 0
    const struct ree_generate_stats *stats;
    const struct ree_session_stats *session; // statistics to report; NULL: not requested
    const struct ree_pipeline *pipeline;     // stages to report if session is not NULL
    const char *device;
    const char *model; // path of the model file, or of the checkpoint's folder
    enum ree_operation_set operation_set;
    const char *receipt_hash;      // hash of the written receipt; "": none
    const struct traced *trace;    // the written trace; NULL: none
    const struct cli_ranks *ranks; // NULL unless several processes ran and --stats was given
};

void generate_report_text(const struct generate_report *report, struct strbuf *out);
// Appends one JSON object. It has members for the sequence ("tokens", "text", "finish_reason",
// "tokens_sha256", "logits_sha256", ...) and for the run ("device", "stats", ...). With several
// prompts the members for the sequences are in the objects of an array "sequences".
void generate_report_json(const struct generate_report *report, struct strbuf *out);

#endif
