#include "trace_options.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "option_groups.h"

#define AT(field) offsetof(struct trace_options, field)

static const struct cli_option_row rows[] = {
    {.kind = ROW_TEXT, .help = "observing values (slower: ree fuses nothing across nodes)\n"},
    {.name = "--trace",
     .value = "FILE",
     .kind = ROW_STRING,
     .at = AT(trace),
     .path = CLI_WRITES,
     .help =
         "write the SHA-256 of every value that every node computed, and one SHA-256 over all of "
         "them. 'ree-run diff' compares two traces. Reads all weights twice at the beginning"},
    {.name = "--dump-tensors",
     .value = "REGEX",
     .kind = ROW_STRING,
     .at = AT(dump),
     .may_be_empty = true,
     .help = "with --dump-folder: write the outputs of nodes whose name, or whose output's name, "
             "matches (POSIX extended) to DIR/step-STEP/NODE-NAME-OUTPUT.npy; NODE and OUTPUT are "
             "numbers. Of caches, only the new positions, unless a step writes the whole cache again. "
             "Inputs of the model whose name matches: DIR/step-STEP/input-NUMBER-NAME.npy. At most "
             "10000 files"},
    {.name = "--dump-folder",
     .value = "DIR",
     .kind = ROW_STRING,
     .at = AT(dump_folder),
     .path = CLI_FILLS,
     .help = "the folder of --dump-tensors"},
    {.name = "--format",
     .value = "npy",
     .kind = ROW_STRING,
     .at = AT(format),
     .choices = CLI_CHOICES("npy"),
     .help = "format of these files (npy is the only one)"},
    {.name = "--inject-fault",
     .value = "NODE:STEP:BIT[:OUTPUT]",
     .kind = ROW_STRING,
     .at = AT(fault),
     .may_be_empty = true,
     .help = "flip one bit of a value that a node (its number or name) computed in a step (counted "
             "from 0), to check that it is found"},
};
const struct cli_option_table cli_trace_group = CLI_OPTION_TABLE(rows);

bool trace_options_any(const struct trace_options *o) {
    return o->trace || o->dump || o->fault;
}

void fault_option_check(struct cli *cli, const char *fault) {
    struct ree_record_options options = {.size = sizeof options, .fault = fault};
    if (fault && ree_record_check(&options, NULL) != REE_OK)
        cli_usage(cli, "--inject-fault requires NODE:STEP:BIT or NODE:STEP:BIT:OUTPUT, not '%s'",
                  fault);
}

void trace_options_check(struct cli *cli, const struct trace_options *o) {
    struct ree_error err;
    struct ree_record_options dump = {
        .size = sizeof dump, .dump_names = o->dump, .dump_folder = o->dump_folder};
    if (o->dump && !o->dump_folder) cli_usage(cli, "--dump-tensors requires --dump-folder");
    if (!o->dump && (o->dump_folder || o->format))
        cli_usage(cli, "%s requires --dump-tensors", o->format ? "--format" : "--dump-folder");
    if (o->format && strcmp(o->format, "npy") != 0)
        cli_usage(cli, "--format requires npy, not '%s'", o->format);
    fault_option_check(cli, o->fault);
    if (o->dump && o->dump_folder && ree_record_check(&dump, &err) != REE_OK)
        cli_usage(cli, "--dump-tensors: %s", err.message);
}

int tracing_begin(struct tracing *w, const struct trace_options *options,
                  const struct traced_run *run) {
    struct ree_error err;
    *w = (struct tracing){.options = options};
    if (!trace_options_any(options)) return 0;
    const struct ree_record_options record = {.size = sizeof record,
                                              .trace = options->trace,
                                              .is_private = options->is_secret,
                                              .dump_names = options->dump,
                                              .dump_folder = options->dump_folder,
                                              .fault = options->fault,
                                              .graph_sha256 = run->graph_sha256,
                                              .weights_sha256 = run->weights_sha256,
                                              .progress = cli_reports};
    enum ree_status status =
        run->generator  ? ree_record_generator(run->generator, &record, &w->recording, &err)
        : run->training ? ree_training_trace(run->training, &record, &w->recording, &err)
                        : ree_record_pipeline(run->pipeline, &record, &w->recording, &err);
    return status == REE_OK ? 0 : cli_fail(&err);
}

uint64_t tracing_n_steps(const struct tracing *w) {
    return w->recording ? ree_recording_n_steps(w->recording) : 0;
}

// Returns the file name without folders; NULL if it would need escaping in a receipt or on a
// terminal.
static const char *plain_name(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (const char *c = name; *c; c++)
        if (*c < 0x20 || *c > 0x7E) return NULL;
    return name;
}

static void report_dump(const struct ree_recorded *recorded) {
    if (recorded->n_omitted)
        cli_error("--dump-tensors: %d files written, %llu more omitted", REE_DUMP_MAX_FILES,
                  (unsigned long long)recorded->n_omitted);
    if (recorded->n_unfit)
        cli_error("--dump-tensors: omitted %llu tensors that a .npy file cannot represent",
                  (unsigned long long)recorded->n_unfit);
}

int tracing_end(struct tracing *w, struct traced *out_traced, bool *out_has) {
    struct ree_error err;
    struct ree_recorded recorded = {.size = sizeof recorded};
    struct ree_recording *recording = w->recording;
    *out_has = false;
    w->recording = NULL;
    if (!recording) return 0;
    if (ree_recording_finish(recording, &recorded, &err) != REE_OK) {
        if (err.status != REE_INVALID || !w->options->fault) return cli_fail(&err);
        cli_error("--inject-fault: %s", err.message);
        return CLI_FAILED;
    }
    report_dump(&recorded);
    if (!recorded.root[0]) return 0;
    memcpy(out_traced->root, recorded.root, sizeof recorded.root);
    out_traced->n_steps = recorded.n_steps;
    out_traced->prefill_chunk = recorded.prefill_chunk;
    out_traced->file = plain_name(w->options->trace);
    *out_has = true;
    return 0;
}

void tracing_finish(struct tracing *w) {
    ree_recording_destroy(w->recording);
    w->recording = NULL;
}
