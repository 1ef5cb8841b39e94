// Writes an ONNX file with notes on its nodes: their roles and stages.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/status.h"
#include "graph/ir/mapping.h"
#include "graph/partition/notes.h"
#include "plan/model_plan.h"

static bool has_external_data(const struct ree_graph *graph) {
    for (const struct ree_mapping *m = graph->mappings; m; m = m->next)
        if (m->is_file) return true;
    return false;
}

static bool folder_of(const char *path, struct stat *out) {
    const char *slash = strrchr(path, '/');
    char *folder =
        slash ? ree_strndup(path, slash == path ? 1 : (size_t)(slash - path)) : ree_strdup(".");
    bool found = folder && stat(folder, out) == 0;
    ree_free(folder);
    return found;
}

static enum ree_status check_folder(const struct ree_model_plan *p, const char *out,
                                    struct ree_error *err) {
    struct stat here, there;
    if (stat(p->model_path, &here) == 0 && S_ISDIR(here.st_mode))
        return ree_fail(err, REE_INVALID,
                        "%s is a checkpoint's folder: export it with 'ree-run export', then use "
                        "--write with the ONNX file",
                        p->model_path);
    if (!has_external_data(p->model->graph)) return REE_OK;
    bool same = folder_of(p->model_path, &here) && folder_of(out, &there) &&
                here.st_dev == there.st_dev && here.st_ino == there.st_ino;
    if (same) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "%s: must be in the folder of %s, whose weights are in files of that folder",
                    out, p->model_path);
}

static enum ree_status write_notes(const struct ree_model_plan *p, const char *path,
                                   const struct ree_file_nodes *file, struct ree_error *err) {
    struct ree_arena arena;
    ree_arena_init(&arena);
    struct ree_node_notes *notes = ree_arena_alloc_array(&arena, file->n + 1, sizeof *notes);
    enum ree_status status =
        notes ? REE_OK : ree_fail(err, REE_NO_MEMORY, "%s: out of memory", path);
    if (status == REE_OK)
        status = ree_partition_notes(p->model->graph, &p->partition, &p->annotations, file, &arena,
                                     notes, err);
    if (status == REE_OK)
        status = ree_file_nodes_write(path, file, notes, REE_PIPELINE_CONFIGURATION,
                                      (uint32_t)p->partition.n_stages, err);
    ree_arena_finish(&arena);
    return status;
}

enum ree_status ree_model_plan_write(const struct ree_model_plan *p, const char *path,
                                     struct ree_error *err) {
    struct ree_mapping *file;
    struct ree_file_nodes nodes;
    REE_TRY(check_folder(p, path, err));
    REE_TRY(ree_mapping_of_path(p->model_path, &file, err));
    enum ree_status status = ree_file_nodes_find(file->data, file->size, &nodes, err);
    if (status == REE_OK) {
        status = write_notes(p, path, &nodes, err);
        ree_file_nodes_finish(&nodes);
    } else {
        ree_fail_prefix(err, "%s", p->model_path);
    }
    ree_mapping_destroy(file);
    return status;
}
