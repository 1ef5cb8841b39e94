// What a run shows: names, types, shapes and hashes, as text or JSON, and .npy files.
#ifndef REE_TOOLS_RUN_OUTPUTS_H
#define REE_TOOLS_RUN_OUTPUTS_H

#include "audit/make_receipt.h"
#include "base/strbuf.h"
#include "ree.h"

struct run_report {
    const struct ree_model *model;
    const char *device; // its name
    enum ree_operation_set operation_set;
    size_t n_outputs;
    const struct ree_tensor *outputs;
    uint32_t top;                          // entries per row to show; 0: none
    const struct ree_session_stats *stats; // NULL: not asked for
    const struct ree_pipeline *pipeline;   // with stats
    const char *receipt_hash;              // of the receipt that was written; "": none
    const struct ree_traced *trace;        // that was written; NULL: none
};

void run_report_text(const struct run_report *report, struct ree_strbuf *out);
// One object: {"outputs": [{"name", "type", "shape", "sha256"}], "sha256", "device"}, with "top" in
// an output and "stats", with "stages" where there are several, beside "device" when asked for, and
// "operation_set" when that is not "reproducible". Strings have "strings" with all of them, a
// sequence "kind" and "items" instead of "shape", an absent value "kind" alone.
void run_report_json(const struct run_report *report, struct ree_strbuf *out);

// Writes every output to FOLDER/NAME.npy, a sequence to NAME_0.npy and so on, an absent value
// nowhere, and creates the folder. Names come from the model:
// characters other than letters, digits, '.', '_' and '-' become '_', as does a leading '.', and a
// name that is taken gets a number. Returns an exit code.
int run_save_outputs(const struct run_report *report, const char *folder);

// Creates the folder and those above it; false, with errno: it is not there.
bool run_make_folders(const char *path);
// "trace": {"root", "n_steps"}, and as a line of text; nothing where trace is NULL.
void run_trace_text(const struct ree_traced *trace, struct ree_strbuf *out);
struct cJSON;
void run_trace_json(const struct ree_traced *trace, struct cJSON *root);

// A picture of characters of an input that is one image: float32, rank 2 or more, all dimensions
// but the last two 1. Nothing for other tensors.
void run_show_image(const struct ree_tensor *tensor, struct ree_strbuf *out);

#endif
