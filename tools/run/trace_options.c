#include "trace_options.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "paths.h"

bool trace_option(struct cli *cli, struct trace_options *o) {
    return cli_option_path(cli, "--trace", CLI_WRITES, &o->trace) ||
           cli_option_text(cli, "--dump-tensors", &o->dump) ||
           cli_option_path(cli, "--dump-folder", CLI_FILLS, &o->dump_folder) ||
           cli_option(cli, "--format", &o->format) ||
           cli_option_text(cli, "--inject-fault", &o->fault);
}

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
        run->generator ? ree_record_generator(run->generator, &record, &w->recording, &err)
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
