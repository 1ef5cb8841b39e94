#include "plan/model_plan.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/options.h"
#include "base/status.h"
#include "graph/partition/choose.h"

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

// If no language model is found, files next to `path` are ignored: they may be anything.
static enum ree_status find_source(const char *path, struct ree_model_plan *p,
                                   struct ree_error *err) {
    p->model_path = path;
    if (ree_model_source_find(path, &p->source, err) == REE_OK)
        p->model_path = p->source.model_path;
    else if (is_folder(path))
        return err->status;
    else
        p->source = (struct ree_model_source){0};
    ree_error_clear(err);
    return REE_OK;
}

static bool add_kv_cache(struct ree_model_plan *p, const struct ree_kv_cache_spec *spec) {
    const struct ree_graph *graph = p->model->graph;
    for (size_t i = 0; i < graph->n_inputs; i++)
        if (graph->inputs[i] == p->model->input_values[spec->input]) {
            p->kv_caches[p->options.n_kv_caches++] =
                (struct ree_partition_kv_cache){i, spec->output};
            return true;
        }
    return false;
}

// Does the same as ree_generator_create, so that the plan equals that of a generation.
static enum ree_status find_kv_caches(struct ree_model_plan *p, struct ree_error *err) {
    struct ree_roles roles;
    enum ree_status status = ree_roles_find(p->model, &p->source.names, &roles, err);
    if (status == REE_NO_MEMORY) return status;
    if (status != REE_OK) return REE_OK; // not a language model
    bool one_row = false;
    status = ree_model_select_rows(p->model, roles.logits, REE_ROWS_INPUT, &one_row, err);
    if (status == REE_OK && one_row) {
        ree_roles_finish(&roles);
        status = ree_roles_find(p->model, &p->source.names, &roles, err);
        if (status != REE_OK) return status;
    }
    p->is_language_model = status == REE_OK;
    p->kv_caches = ree_alloc_zeroed(roles.n_kv_caches + 1, sizeof *p->kv_caches);
    if (status == REE_OK && !p->kv_caches) status = ree_no_memory(err);
    for (size_t i = 0; status == REE_OK && i < roles.n_kv_caches; i++)
        if (!add_kv_cache(p, &roles.kv_caches[i]))
            status = ree_fail(err, REE_INTERNAL, "a cache is not an input of the graph");
    p->options.kv_caches = p->kv_caches;
    ree_roles_finish(&roles);
    return status;
}

static enum ree_status open_model(const char *path, const struct ree_plan_options *o,
                                  struct ree_model_plan *p, struct ree_error *err) {
    struct ree_model_options options;
    REE_TRY(ree_options_read(&options, sizeof options, o->model, "ree_model_options", err));
    options.size = sizeof options;
    options.progress = o->progress;
    options.on_pass = NULL;
    REE_TRY(find_source(path, p, err));
    REE_TRY(ree_model_load(p->model_path, &options, &p->model, err));
    if (p->source.model_type) REE_TRY(ree_model_source_complete(&p->source, p->model, err));
    REE_TRY(ree_model_graph_sha256(p->model, p->graph_sha256, err));
    if (find_kv_caches(p, err) != REE_OK) return ree_fail_prefix(err, "%s", p->model_path);
    return ree_model_infer(p->model->graph, err);
}

static enum ree_status make_plan(const struct ree_plan_options *o, struct ree_model_plan *p,
                                 struct ree_error *err) {
    static const char *const origins[] = {
        [REE_PLAN_FOUND] = "planned",
        [REE_PLAN_REQUESTED] = "from the file",
        [REE_PLAN_HINTED] = "named by the nodes",
    };
    const struct ree_partition_request request = {
        .plan_path = o->plan_path,
        .graph_sha256 = p->graph_sha256,
        .n_stages = o->n_partitions,
        .devices = {o->n_devices, o->n_processes, o->n_cache_slots, o->max_device_memory},
        .context_length = p->source.context_length,
    };
    enum ree_plan_origin origin;
    REE_TRY(
        ree_partition_choose(p->model->graph, &p->options, &request, &p->partition, &origin, err));
    p->origin = origins[origin];
    if (origin == REE_PLAN_FOUND && !o->n_partitions && !o->n_devices && !o->n_processes &&
        !o->max_device_memory)
        return ree_fail(err, REE_INVALID,
                        "the nodes name no stages: give --n-partitions, --device, --processes or "
                        "--max-device-memory");
    p->options.n_stages = p->partition.n_stages;
    return REE_OK;
}

enum ree_status ree_model_plan_make(const char *path, const struct ree_plan_options *options,
                                    struct ree_model_plan *out, struct ree_error *err) {
    *out = (struct ree_model_plan){.options = {.context = options->context}};
    REE_TRY(open_model(path, options, out, err));
    enum ree_status status = make_plan(options, out, err);
    if (status == REE_OK)
        status =
            ree_annotate(out->model->graph, &out->options, &out->partition, &out->annotations, err);
    // Errors about a plan file already name the file.
    if (status != REE_OK && !options->plan_path) ree_fail_prefix(err, "%s", out->model_path);
    return status;
}

void ree_model_plan_finish(struct ree_model_plan *p) {
    ree_annotations_finish(&p->annotations);
    ree_partition_finish(&p->partition);
    ree_model_destroy(p->model);
    ree_model_source_finish(&p->source);
    ree_free(p->kv_caches);
}
