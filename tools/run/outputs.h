// Reports the outputs of `ree-run run` (names, types, shapes, hashes) as text or JSON, and writes
// them to .npy files.
#ifndef REE_TOOLS_RUN_OUTPUTS_H
#define REE_TOOLS_RUN_OUTPUTS_H

#include "strbuf.h"
#include "ree.h"

struct run_report {
    const struct ree_model *model;
    const char *device; // name of the device
    enum ree_operation_set operation_set;
    size_t n_outputs;
    const struct ree_tensor *outputs;
    uint32_t top;                          // show the `top` largest entries of each row; 0: none
    const struct ree_session_stats *stats; // statistics to report; NULL: not requested
    const struct ree_pipeline *pipeline;   // stages to report if stats is not NULL
    const char *receipt_hash;              // hash of the written receipt; "": none
    const struct traced *trace;            // the written trace; NULL: none
};

void run_report_text(const struct run_report *report, struct strbuf *out);
// Appends one object: {"outputs": [{"name", "type", "shape", "sha256"}], "sha256", "device"}.
// - An output also has "top" if requested. Strings have "strings" with all values. A sequence has
//   "kind" and "items" instead of "shape". An absent value has only "kind".
// - The root also has "stats" if requested, "stages" if there are several, and "operation_set" if
//   it is not "reproducible".
void run_report_json(const struct run_report *report, struct strbuf *out);

// Writes every output to FOLDER/NAME.npy and creates the folder. Items of a sequence go to
// NAME_0.npy and so on; absent values are not written. Names come from the model: characters other
// than letters, digits, '.', '_' and '-' become '_', as does a leading '.'. A name that is already
// used gets a number. Returns 0, or prints an error and returns an exit code.
int run_save_outputs(const struct run_report *report, const char *folder);

// Creates the folder `path` and its missing parents. Returns true if the folder exists afterwards;
// otherwise false, with the reason in errno.
bool run_make_folders(const char *path);
// Append the root and the number of steps of a written trace: a line of text, or the member
// "trace": {"root", "n_steps"} of the object `root`. Append nothing if trace is NULL.
void run_trace_text(const struct traced *trace, struct strbuf *out);
struct cJSON;
void run_trace_json(const struct traced *trace, struct cJSON *root);

// Appends a picture made of characters for a tensor that is one image: float32, rank 2 or more, all
// dimensions but the last two equal to 1. Appends nothing for other tensors.
void run_show_image(const struct ree_tensor *tensor, struct strbuf *out);

#endif
