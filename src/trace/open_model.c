#include "trace/open_model.h"

#include <string.h>

#include "trace/model_header.h"
#include "base/status.h"

// Opens a model of texts as ree_generator_create does, but without a device.
static enum ree_status open_text(const char *path, const struct ree_model_options *options,
                                 struct ree_opened *out, struct ree_error *err) {
    bool one_row;
    REE_TRY(ree_model_source_find(path, &out->source, err));
    REE_TRY(ree_model_load(out->source.model_path, options, &out->model, err));
    REE_TRY(ree_model_source_complete(&out->source, out->model, err));
    REE_TRY(ree_roles_find(out->model, &out->source.names, &out->roles, err));
    REE_TRY(ree_roles_check_bound(&out->roles, err));
    REE_TRY(ree_model_select_rows(out->model, out->roles.logits, REE_ROWS_INPUT, &one_row, err));
    if (!one_row) return REE_OK;
    ree_roles_finish(&out->roles);
    return ree_roles_find(out->model, &out->source.names, &out->roles, err);
}

enum ree_status ree_open_model(const char *path, const struct ree_open_options *options,
                               struct ree_opened *out, struct ree_error *err) {
    struct ree_model_options model_options = {.size = sizeof model_options,
                                              .progress = options->progress};
    memset(out, 0, sizeof *out);
    ree_arena_init(&out->arena);
    out->is_text = options->prefill_chunk > 0;
    if (out->is_text)
        REE_TRY(open_text(path, &model_options, out, err));
    else
        REE_TRY(ree_model_load(path, &model_options, &out->model, err));
    REE_TRY(ree_model_hashes_make(out->model, &options->progress, &out->hashes, err));
    struct ree_trace_header_options audit = {
        .version = options->version,
        .graph_sha256 = options->version == 1 ? out->hashes.graph_version_1 : out->hashes.graph,
        .weights_sha256 = out->hashes.weights,
        .operation_set = options->operation_set,
        .prefill_chunk = options->prefill_chunk,
        .n_kv_caches = out->roles.n_kv_caches,
        .kv_caches = out->roles.kv_caches,
        .progress = options->progress};
    return ree_trace_describe(out->model, &audit, &out->arena, &out->header, err);
}

void ree_opened_finish(struct ree_opened *o) {
    ree_model_destroy(o->model);
    ree_roles_finish(&o->roles);
    ree_model_source_finish(&o->source);
    ree_arena_finish(&o->arena);
    memset(o, 0, sizeof *o);
}
