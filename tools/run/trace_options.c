#include "trace_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "cli.h"
#include "dump.h"
#include "paths.h"
#include "session/model.h"

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

// Parses NODE:STEP:BIT[:OUTPUT] from the end, because a node's name may contain colons. *out_n is
// the length of NODE.
static bool parse_fault(const char *text, size_t *out_n, struct ree_fault *out) {
    uint64_t numbers[3];
    size_t n = strlen(text), n_numbers = 0, ends[4] = {n};
    while (n_numbers < 3) {
        size_t at = n;
        while (at > 0 && text[at - 1] != ':')
            at--;
        char digits[24] = "";
        if (at < 2 || n - at >= sizeof digits) break;
        memcpy(digits, text + at, n - at);
        if (!cli_parse_number(digits, 0, UINT64_MAX, &numbers[n_numbers])) break;
        n = at - 1;
        ends[++n_numbers] = n;
    }
    if (n_numbers < 2) return false;
    // Three numbers after a name: all fields are present. If the node itself is a number, it would
    // be the first of four numbers.
    *out = (struct ree_fault){.run = numbers[n_numbers - 1], .bit = numbers[n_numbers - 2]};
    if (n_numbers == 3) out->output = (size_t)numbers[0];
    *out_n = ends[n_numbers];
    return *out_n > 0;
}

void trace_options_check(struct cli *cli, const struct trace_options *o) {
    struct ree_fault fault;
    size_t n;
    if (o->dump && !o->dump_folder) cli_usage(cli, "--dump-tensors requires --dump-folder");
    if (!o->dump && (o->dump_folder || o->format))
        cli_usage(cli, "%s requires --dump-tensors", o->format ? "--format" : "--dump-folder");
    if (o->format && strcmp(o->format, "npy") != 0)
        cli_usage(cli, "--format requires npy, not '%s'", o->format);
    if (o->fault && !parse_fault(o->fault, &n, &fault))
        cli_usage(cli, "--inject-fault requires NODE:STEP:BIT or NODE:STEP:BIT:OUTPUT, not '%s'",
                  o->fault);
    if (o->dump) dump_check(cli, o->dump);
}

// The observer that calls all others

static enum ree_status on_inputs(void *user, const struct ree_tensor *inputs, size_t n,
                                 struct ree_error *err) {
    const struct tracing *w = user;
    for (size_t i = 0; i < w->n_observers; i++)
        if (w->observers[i].on_inputs)
            REE_TRY(w->observers[i].on_inputs(w->observers[i].user, inputs, n, err));
    return REE_OK;
}

static enum ree_status on_value(void *user, const struct ree_observed *value,
                                struct ree_error *err) {
    const struct tracing *w = user;
    for (size_t i = 0; i < w->n_observers; i++)
        if (w->observers[i].on_value)
            REE_TRY(w->observers[i].on_value(w->observers[i].user, value, err));
    return REE_OK;
}

static enum ree_status on_end(void *user, struct ree_error *err) {
    struct tracing *w = user;
    for (size_t i = 0; i < w->n_observers; i++)
        if (w->observers[i].on_end) REE_TRY(w->observers[i].on_end(w->observers[i].user, err));
    w->n_steps++;
    return REE_OK;
}

// Finds a node by its number, or by its name, which must be unique.
static enum ree_status find_node(const struct ree_graph *graph, const char *text, size_t n,
                                 size_t *out, struct ree_error *err) {
    size_t found = 0;
    char digits[24] = "";
    uint64_t number;
    if (n < sizeof digits) memcpy(digits, text, n);
    if (cli_parse_number(digits, 0, SIZE_MAX, &number)) {
        *out = (size_t)number;
        return REE_OK;
    }
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const char *name = graph->nodes[i]->name;
        if (!name || strlen(name) != n || memcmp(name, text, n) != 0) continue;
        *out = i;
        found++;
    }
    if (found == 1) return REE_OK;
    return ree_fail(err, REE_INVALID, "%s node is named '%.*s'", found ? "more than one" : "no",
                    (int)n, text);
}

enum ree_status parse_fault_option(const char *text, const struct ree_model *model,
                                   struct ree_fault *out, struct ree_error *err) {
    size_t n;
    if (!parse_fault(text, &n, out))
        return ree_fail(err, REE_INVALID,
                        "--inject-fault requires NODE:STEP:BIT or NODE:STEP:BIT:OUTPUT, not '%s'",
                        text);
    return find_node(model->graph, text, n, &out->node, err);
}

static enum ree_status start_recorder(struct tracing *w, const struct traced_run *run,
                                      struct ree_error *err) {
    struct ree_model_hashes own;
    const struct ree_model_hashes *hashes = run->hashes;
    if (!hashes) {
        REE_TRY(ree_model_hashes_make(run->model, &cli_reports, &own, err));
        hashes = &own;
    }
    struct ree_trace_header_options options = {.graph_sha256 = hashes->graph,
                                               .weights_sha256 = hashes->weights,
                                               .operation_set = run->operation_set,
                                               .prefill_chunk = run->prefill_chunk,
                                               .is_secret = w->options->is_secret,
                                               .n_kv_caches = run->n_kv_caches,
                                               .kv_caches = run->kv_caches,
                                               .progress = {.report = cli_progress}};
    REE_TRY(ree_recorder_create(run->model, &options, w->options->trace, &w->recorder, err));
    w->observers[w->n_observers++] = ree_recorder_observer(w->recorder);
    return REE_OK;
}

int tracing_begin(struct tracing *w, const struct trace_options *options,
                  const struct traced_run *run) {
    struct ree_error err;
    *w = (struct tracing){.options = options, .prefill_chunk = run->prefill_chunk};
    if (!trace_options_any(options)) return 0;
    enum ree_status status = REE_OK;
    struct ree_fault fault;
    if (options->fault) status = parse_fault_option(options->fault, run->model, &fault, &err);
    if (status == REE_OK && options->fault) {
        w->fault_step = fault.run;
        status = ree_pipeline_inject(run->pipeline, &fault, &err);
    }
    if (status == REE_OK && options->trace) status = start_recorder(w, run, &err);
    if (status == REE_OK && options->dump) {
        status = dump_create(options->dump, options->dump_folder, options->is_secret, run->model,
                             &w->dump, &err);
        if (status == REE_OK) w->observers[w->n_observers++] = dump_observer(w->dump);
    }
    // With only a fault, the observer just counts steps; without its other callbacks no values are
    // read.
    struct ree_observer observer = {w->n_observers ? on_inputs : NULL,
                                    w->n_observers ? on_value : NULL, on_end, w,
                                    w->n_observers == 1 && w->observers[0].concurrent};
    if (status == REE_OK) status = ree_pipeline_observe(run->pipeline, &observer, &err);
    return status == REE_OK ? 0 : cli_fail(&err);
}

// Returns the file name without folders; NULL if it would need escaping in a receipt or on a
// terminal.
static const char *plain_name(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (const char *c = name; *c; c++)
        if (*c < 0x20 || *c > 0x7E) return NULL;
    return name;
}

int tracing_end(struct tracing *w, struct ree_traced *out_traced, bool *out_has) {
    struct ree_error err;
    struct ree_record_summary summary;
    *out_has = false;
    if (!w->options) return 0;
    if (w->options->fault && w->fault_step >= w->n_steps) {
        cli_error("--inject-fault: step %llu does not exist; the run had %llu, counted from 0",
                  (unsigned long long)w->fault_step, (unsigned long long)w->n_steps);
        return CLI_FAILED;
    }
    if (w->dump) dump_report(w->dump);
    if (!w->recorder) return 0;
    struct ree_recorder *recorder = w->recorder;
    w->recorder = NULL;
    if (ree_recorder_finish(recorder, &summary, &err) != REE_OK) return cli_fail(&err);
    memcpy(out_traced->root, summary.root, sizeof summary.root);
    out_traced->n_steps = summary.n_steps;
    out_traced->prefill_chunk = w->prefill_chunk;
    out_traced->file = plain_name(w->options->trace);
    *out_has = true;
    return 0;
}

void tracing_finish(struct tracing *w) {
    ree_recorder_destroy(w->recorder);
    dump_destroy(w->dump);
    w->recorder = NULL;
    w->dump = NULL;
}
