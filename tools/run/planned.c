#include "planned.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "graph/partition/hints.h"
#include "graph/partition/plan_file.h"

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

// What lies beside a file that is no language model may be anything.
static enum ree_status find_source(const char *path, struct planned *p, struct ree_error *err) {
    p->model_path = path;
    if (ree_model_source_find(path, &p->source, err) == REE_OK)
        p->model_path = p->source.model_path;
    else if (is_folder(path))
        return err->status;
    else
        p->source = (struct ree_model_source){0};
    return REE_OK;
}

static bool add_state(struct planned *p, const struct ree_state_spec *spec) {
    const struct ree_graph *graph = p->model->graph;
    for (size_t i = 0; i < graph->n_inputs; i++)
        if (graph->inputs[i] == p->model->input_values[spec->input]) {
            p->states[p->options.n_states++] = (struct ree_partition_state){i, spec->output};
            return true;
        }
    return false;
}

// As ree_generator_create does, so that the plan is the one that a generation makes.
static enum ree_status find_states(struct planned *p, struct ree_error *err) {
    struct ree_roles roles;
    if (ree_roles_find(p->model, &p->source.names, &roles, err) != REE_OK) return REE_OK;
    bool one_row = false;
    enum ree_status status =
        ree_model_select_rows(p->model, roles.logits, REE_ROWS_INPUT, &one_row, err);
    if (status == REE_OK && one_row) {
        ree_roles_finish(&roles);
        status = ree_roles_find(p->model, &p->source.names, &roles, err);
        if (status != REE_OK) return status;
    }
    p->is_language_model = status == REE_OK;
    p->states = calloc(roles.n_states + 1, sizeof *p->states);
    if (status == REE_OK && !p->states) status = ree_fail(err, REE_NO_MEMORY, "out of memory");
    for (size_t i = 0; status == REE_OK && i < roles.n_states; i++)
        if (!add_state(p, &roles.states[i]))
            status = ree_fail(err, REE_INTERNAL, "a cache is no input of the graph");
    p->options.states = p->states;
    ree_roles_finish(&roles);
    return status;
}

static enum ree_status open_model(const char *path, struct planned *p, struct ree_error *err) {
    struct ree_model_options options = {.on_progress = cli_progress};
    REE_TRY(find_source(path, p, err));
    REE_TRY(ree_model_load(p->model_path, &options, &p->model, err));
    REE_TRY(ree_model_graph_sha256(p->model, p->graph_sha256, err));
    if (find_states(p, err) != REE_OK) return ree_fail_prefix(err, "%s", p->model_path);
    ree_model_infer(p->model->graph);
    return REE_OK;
}

static enum ree_status set_stages(struct planned *p, size_t n, uint64_t memory,
                                  struct ree_error *err) {
    p->options.n_stages = n;
    free(p->memory);
    p->memory = NULL;
    p->options.memory = NULL;
    if (!memory) return REE_OK;
    p->options.memory = p->memory = calloc(n, sizeof *p->memory);
    if (!p->memory) return ree_fail(err, REE_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < n; i++)
        p->memory[i] = memory;
    return REE_OK;
}

static enum ree_status plan_given(struct planned *p, char **ends, size_t n, uint64_t memory,
                                  struct ree_error *err) {
    enum ree_status status = set_stages(p, n + 1, memory, err);
    if (status == REE_OK)
        status = ree_partition_from_cuts(p->model->graph, &p->options, (const char *const *)ends,
                                         &p->partition, err);
    ree_plan_ends_free(ends, n);
    return status;
}

// Whether there is a plan of n stages; it stays in p->partition only if `keep` says so.
static enum ree_status try_stages(struct planned *p, size_t n, uint64_t memory, bool keep,
                                  struct ree_error *err) {
    REE_TRY(set_stages(p, n, memory, err));
    REE_TRY(ree_partition_plan(p->model->graph, &p->options, &p->partition, err));
    if (!keep) ree_partition_finish(&p->partition);
    return REE_OK;
}

// The least or, without memory, the largest n between a number that has a plan and one that has
// not. Stages that can be cut further stay within the memory then, so both questions are answered
// by halving.
static size_t search_stages(struct planned *p, size_t good, size_t bad, uint64_t memory) {
    struct ree_error ignored;
    while (good > bad ? good - bad > 1 : bad - good > 1) {
        size_t middle = good / 2 + bad / 2 + (good & bad & 1);
        if (try_stages(p, middle, memory, false, &ignored) == REE_OK)
            good = middle;
        else
            bad = middle;
    }
    return good;
}

// The fewest stages that keep within the memory.
static enum ree_status plan_to_fit(struct planned *p, uint64_t memory, struct ree_error *err) {
    size_t most = search_stages(p, 1, REE_PLAN_MAX_STAGES + 1, 0);
    REE_TRY(try_stages(p, most, memory, false, err));
    return try_stages(p, search_stages(p, most, 0, memory), memory, true, err);
}

static enum ree_status make_plan(const struct planned_options *o, struct planned *p,
                                 struct ree_error *err) {
    size_t n = o->n_stages ? (size_t)o->n_stages : (size_t)o->n_devices, n_ends;
    char **ends;
    if (o->plan_file) {
        p->origin = "of the file";
        REE_TRY(ree_plan_file_read(o->plan_file, p->graph_sha256, &ends, &n_ends, err));
        if (plan_given(p, ends, n_ends, o->memory, err) == REE_OK) return REE_OK;
        return ree_fail_prefix(err, "%s", o->plan_file);
    }
    bool found = false;
    if (n == 0) {
        p->origin = "asked for by the nodes";
        REE_TRY(ree_partition_hints(p->model->graph, &p->options, &found, &ends, &n_ends, err));
    }
    if (found) return plan_given(p, ends, n_ends, o->memory, err);
    p->origin = "planned";
    if (n == 0 && o->memory) return plan_to_fit(p, o->memory, err);
    if (n == 0)
        return ree_fail(err, REE_INVALID,
                        "the nodes ask for no stages, so --n-partitions, --device or "
                        "--max-device-memory has to say how many");
    REE_TRY(set_stages(p, n, o->memory, err));
    return ree_partition_plan(p->model->graph, &p->options, &p->partition, err);
}

enum ree_status planned_make(const char *path, const struct planned_options *options,
                             struct planned *out, struct ree_error *err) {
    *out = (struct planned){.options = {.context = options->context}};
    REE_TRY(open_model(path, out, err));
    if (!out->options.context) out->options.context = REE_PARTITION_CONTEXT;
    enum ree_status status = make_plan(options, out, err);
    if (status == REE_OK)
        status =
            ree_annotate(out->model->graph, &out->options, &out->partition, &out->annotations, err);
    // Files name themselves in their messages.
    if (status != REE_OK && !options->plan_file) ree_fail_prefix(err, "%s", out->model_path);
    return status;
}

void planned_finish(struct planned *p) {
    ree_annotations_finish(&p->annotations);
    ree_partition_finish(&p->partition);
    ree_model_destroy(p->model);
    ree_model_source_finish(&p->source);
    free(p->states);
    free(p->memory);
}
