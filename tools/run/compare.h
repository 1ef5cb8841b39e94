// ree-run compare: what is asked for (compare.c), doing it (compare_run.c), and what was found as
// text and JSON (compare_report.c).
#ifndef REE_TOOLS_RUN_COMPARE_H
#define REE_TOOLS_RUN_COMPARE_H

#include "audit/compare.h"
#include "base/strbuf.h"
#include "cli.h"
#include "generate/generator.h"
#include "inputs.h"
#include "prompts.h"
#include "quantize.h"

#define COMPARE_MAX_SUSPECTS 32
#define COMPARE_N_TWICE 6

#define COMPARE_DIFFERS 1
#define COMPARE_CANNOT 2

struct compare_options {
    const char *model, *tokenizer, *html, *fault;
    struct cli_quantize quantize;
    struct cli_device devices[2];
    unsigned n_given[COMPARE_N_TWICE]; // of those that may be given twice
    struct run_inputs inputs;
    struct prompt_arg *prompts; // one at most
    size_t n_prompts;
    uint64_t max_new_tokens, chunk;
    bool ignore_eos, json, all;
};

struct compare_suspect {
    unsigned side;
    char name[48], verdict[200];
};

struct compare_report {
    const char *model;      // as it was named
    const char *devices[2]; // their names
    enum ree_operation_set sets[2];
    const struct ree_graph *graph;
    struct ree_compare_result result;
    bool is_text;
    const int32_t *ids; // tokens that were made
    size_t n_ids;
    // Of the first node that differs.
    size_t n_suspects;
    struct compare_suspect suspects[COMPARE_MAX_SUSPECTS];
};

// `all`: nodes that do not differ are in the table, too.
void compare_report_text(const struct compare_report *report, bool all, struct ree_strbuf *out);
void compare_report_json(const struct compare_report *report, struct ree_strbuf *out);

// Everything that is opened.
struct compare_job {
    const struct compare_options *o;
    struct ree_device *devices[2];
    struct ree_generator *generators[2];
    struct ree_model *models[2];     // of no text
    struct ree_session *sessions[2]; // the generators' own, or of the models
    struct ree_tokenizer *tokenizer;
    struct prompts prompts;
    int32_t *eos, *ids;
    size_t n_eos, n_ids;
    struct ree_compare *compare;
    struct compare_report report;
    uint64_t fault_step;
    bool has_suspects;
    struct ree_error err;
};

// Prints what was found; returns an exit code.
int compare_work(struct compare_job *job, struct compare_options *options);
void compare_finish(struct compare_job *job); // also of one that was not begun

#endif
