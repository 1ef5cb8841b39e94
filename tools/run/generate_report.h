// What a text generation reports after the text.
#ifndef REE_TOOLS_RUN_GENERATE_REPORT_H
#define REE_TOOLS_RUN_GENERATE_REPORT_H

#include "audit/make_receipt.h"
#include "ranks.h"
#include "writer.h"

struct token_logprob {
    float logprob;
    struct ree_logprob *top; // n_logprobs of them
};

struct generate_report {
    size_t n;
    const struct ree_generation *generations;
    const struct writer *writers;
    bool has_text;
    bool prints_texts; // of several sequences: they were not printed as they came
    uint32_t n_logprobs;
    struct token_logprob *const *logprobs; // per sequence, per new token; NULL without
    const struct ree_generate_stats *stats;
    const struct ree_session_stats *session; // NULL: not asked for
    const struct ree_pipeline *pipeline;     // with session
    const char *device;
    const char *model; // the file, or the folder of a checkpoint
    enum ree_operation_set operation_set;
    const char *receipt_hash;       // of the receipt that was written; "": none
    const struct ree_traced *trace; // that was written; NULL: none
    const struct cli_ranks *ranks;  // of several processes; NULL: not asked for
};

void generate_report_text(const struct generate_report *report, struct ree_strbuf *out);
// {"tokens", "text", "finish_reason", "tokens_sha256", "logits_sha256", ..., "device", "stats"}; of
// several prompts the first five in objects of an array "sequences".
void generate_report_json(const struct generate_report *report, struct ree_strbuf *out);

#endif
