// Makes the report of `ree-run perplexity`, as text or as JSON.
#ifndef REE_TOOLS_RUN_PERPLEXITY_REPORT_H
#define REE_TOOLS_RUN_PERPLEXITY_REPORT_H

#include "cli.h"
#include "quantize.h"

// One of the models whose perplexity is measured.
struct perplexity_side {
    const char *path;
    struct cli_quantize quantize;
    struct ree_generator *generator; // NULL: not opened
};

struct perplexity_report {
    const struct perplexity_side *model, *against; // against: compared with `model`; NULL: none
    const char *text;                              // path of the text
    char tokenizer_sha256[65];
    size_t n_tokens; // number of tokens of the text
    bool has_bos;    // the tokenizer puts a BOS token before a text
    enum ree_scored scored;
    uint64_t stride; // tokens from one window's start to the next; 0: windows do not overlap
    const char *device;
    enum ree_operation_set operation_set;
    const struct ree_perplexity *results;
};

void perplexity_report_text(const struct perplexity_report *report, struct strbuf *out);
void perplexity_report_json(const struct perplexity_report *report, struct strbuf *out);

#endif
