// ree-run compare: options (compare.c), execution (compare_run.c), and the report as text and JSON
// (compare_report.c).
#ifndef REE_TOOLS_RUN_COMPARE_H
#define REE_TOOLS_RUN_COMPARE_H

#include "strbuf.h"
#include "cli.h"
#include "inputs.h"
#include "prompts.h"
#include "quantize.h"

#define COMPARE_N_TWICE 6 // number of options that may be given twice, once for each device

// Exit codes: the devices give different bytes; the comparison could not be made.
#define COMPARE_DIFFERS 1
#define COMPARE_CANNOT 2

struct compare_options {
    const char *model, *tokenizer, *html, *fault;
    struct cli_quantize quantize;
    struct cli_device devices[2];
    // How often the command line has each of the options that may be given twice (device_options in
    // compare.c).
    unsigned n_given[COMPARE_N_TWICE];
    struct run_inputs inputs;
    struct prompt_arg *prompts; // the given prompts; more than one is wrong usage
    size_t n_prompts;
    uint64_t max_new_tokens, chunk;
    bool ignore_eos, json, all;
};

struct compare_report {
    const char *model;      // path as given by the user
    const char *devices[2]; // names of the devices
    enum ree_operation_set sets[2];
    const struct ree_comparison *comparison;
    const struct ree_compare_result *result; // result of `comparison`, borrowed from it
    bool is_text;
};

// Appends the report as text to `out`. all: the table lists all nodes, not only those that
// differ.
void compare_report_text(const struct compare_report *report, bool all, struct strbuf *out);
void compare_report_json(const struct compare_report *report, struct strbuf *out);

// Everything that a comparison opens; released by compare_finish.
struct compare_job {
    const struct compare_options *o;
    struct ree_device *devices[2];
    struct ree_generator *generators[2];
    // NULL entries for a text run, which uses `generators`. In any other run, generators are NULL.
    struct ree_model *models[2];
    struct ree_session *sessions[2];
    struct ree_tokenizer *tokenizer;
    struct prompts prompts;
    int32_t *eos;
    size_t n_eos;
    struct ree_comparison *comparison;
    struct compare_report report;
    struct ree_error err;
};

// Opens both devices, runs the model on each and prints the report. Returns 0 if all bytes are
// equal, COMPARE_DIFFERS, or COMPARE_CANNOT after an error message. The caller must call
// compare_finish.
int compare_work(struct compare_job *job, struct compare_options *options);
void compare_finish(struct compare_job *job); // accepts a zeroed job

#endif
