// Loads an ONNX model, from a file or from bytes in memory, into a checked graph.
#include "base/container.h"
#include "base/progress.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx/reader.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The newest IR version that this reader knows. Versions before 3 name no operator sets. (Version
// 14 adds float6 types to 13; no operator here accepts them.)
#define MAX_IR_VERSION 14
#define MIN_IR_VERSION 3
// Far more than any model imports. Keeps each node's lookup short.
#define MAX_OPSETS 64

void ree_onnx_reader_init(struct ree_onnx_reader *reader, struct ree_arena *arena,
                          struct ree_mapping **mappings, struct ree_error *err) {
    memset(reader, 0, sizeof *reader);
    reader->arena = arena;
    reader->mappings = mappings;
    ree_decoder_init(&reader->decoder);
    ree_arena_init(&reader->scratch);
    reader->folder_fd = -1;
    reader->err = err;
}

void ree_onnx_reader_finish(struct ree_onnx_reader *reader) {
    while (reader->files) {
        struct ree_mapping *file = reader->files;
        ree_mapping_unlink(&reader->files, file);
        ree_mapping_link(reader->mappings, file);
    }
    ree_decoder_finish(&reader->decoder);
    ree_arena_finish(&reader->scratch);
    if (reader->folder_fd >= 0) close(reader->folder_fd);
}

bool ree_onnx_reader_set_folder(struct ree_onnx_reader *reader, const char *path) {
    const char *slash = strrchr(path, '/');
    struct stat info;
    reader->owner = stat(path, &info) == 0 ? (int64_t)info.st_uid : -1;
    if (!slash)
        reader->folder = ".";
    else if (slash == path)
        reader->folder = "/";
    else
        reader->folder = ree_arena_strndup(&reader->scratch, path, (size_t)(slash - path));
    return reader->folder != NULL;
}

enum ree_status ree_onnx_no_memory(struct ree_onnx_reader *reader) {
    return ree_no_memory(reader->err);
}

enum ree_status ree_onnx_fail_file(struct ree_error *err, const char *file) {
    ree_fail_prefix(err, "%s", file);
    for (char *c = err->message; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
    return err->status;
}

enum ree_status ree_onnx_read_opsets(struct ree_onnx_reader *reader, size_t n,
                                     Onnx__OperatorSetIdProto *const *protos,
                                     struct ree_opset_import **out, size_t *out_n) {
    if (n > MAX_OPSETS)
        return ree_fail(reader->err, REE_UNSUPPORTED,
                        "%zu operator sets are imported; at most %d is supported", n, MAX_OPSETS);
    struct ree_opset_import *imports = ree_arena_alloc_array(reader->arena, n, sizeof *imports);
    if (!imports) return ree_onnx_no_memory(reader);
    *out = imports;
    *out_n = 0;
    for (size_t i = 0; i < n; i++) {
        const char *domain = ree_onnx_domain(protos[i]->domain);
        int64_t version = protos[i]->version;
        const char *shown = domain[0] ? domain : "ai.onnx";
        if (version < 1 || version > INT32_MAX)
            return ree_fail(reader->err, REE_INVALID, "operator set '%s' has the version %lld",
                            shown, (long long)version);
        int64_t known = ree_opset_find(imports, *out_n, domain);
        if (known && known != version)
            return ree_fail(reader->err, REE_INVALID,
                            "operator set '%s' is imported in versions %lld and %lld", shown,
                            (long long)known, (long long)version);
        if (known) continue;
        struct ree_opset_import *import = &imports[*out_n];
        import->domain = ree_arena_strdup(reader->arena, domain);
        if (!import->domain) return ree_onnx_no_memory(reader);
        import->version = version;
        ++*out_n;
    }
    return REE_OK;
}

enum ree_status ree_onnx_read_metadata(struct ree_onnx_reader *reader, size_t n,
                                       Onnx__StringStringEntryProto *const *protos,
                                       struct ree_metadata **out, size_t *out_n) {
    struct ree_metadata *list = ree_arena_alloc_array(reader->arena, n, sizeof *list);
    if (!list) return ree_onnx_no_memory(reader);
    for (size_t i = 0; i < n; i++) {
        list[i].key = ree_arena_strdup(reader->arena, ree_onnx_text(protos[i]->key));
        list[i].value = ree_arena_strdup(reader->arena, ree_onnx_text(protos[i]->value));
        if (!list[i].key || !list[i].value) return ree_onnx_no_memory(reader);
    }
    *out = list;
    *out_n = n;
    return REE_OK;
}

static enum ree_status read_model(struct ree_onnx_reader *reader, const Onnx__ModelProto *model,
                                  struct ree_graph *graph) {
    if (!model->has_ir_version)
        return ree_fail(reader->err, REE_INVALID,
                        "the IR version is missing; this is not an ONNX model");
    if (model->ir_version < 1)
        return ree_fail(reader->err, REE_INVALID, "the IR version is %lld",
                        (long long)model->ir_version);
    if (model->ir_version < MIN_IR_VERSION || model->ir_version > MAX_IR_VERSION)
        return ree_fail(reader->err, REE_UNSUPPORTED,
                        "the IR version is %lld; %d to %d are supported",
                        (long long)model->ir_version, MIN_IR_VERSION, MAX_IR_VERSION);
    if (!model->graph) return ree_fail(reader->err, REE_INVALID, "the model has no graph");
    graph->ir_version = model->ir_version;
    if (model->n_opset_import == 0)
        return ree_fail(reader->err, REE_INVALID, "the model imports no operator set");
    REE_TRY(ree_onnx_read_opsets(reader, model->n_opset_import, model->opset_import, &graph->opsets,
                                 &graph->n_opsets));
    REE_TRY(ree_onnx_read_metadata(reader, model->n_metadata_props, model->metadata_props,
                                   &graph->metadata, &graph->n_metadata));
    REE_TRY(ree_onnx_read_functions(reader, model));
    REE_TRY(ree_onnx_read_graph(reader, model->graph, graph, NULL));
    if (graph->n_outputs == 0)
        return ree_fail(reader->err, REE_INVALID, "the graph has no outputs");
    for (size_t i = 0; i < graph->n_inputs; i++)
        if (!graph->inputs[i]->dtype)
            return ree_fail(reader->err, REE_INVALID, "input '%s' has no type",
                            graph->inputs[i]->name);
    ree_graph_count_uses(graph);
    return REE_OK;
}

// `path` is "" for a model in memory. Takes ownership of `data`, which may be NULL, even if it
// fails.
static enum ree_status load(const void *bytes, size_t nbytes, const char *path,
                            struct ree_mapping *data, const struct ree_progress *progress,
                            struct ree_graph **out, struct ree_error *err) {
    struct ree_graph *graph = nbytes ? ree_graph_create() : NULL;
    if (!graph) {
        ree_mapping_destroy(data);
        if (nbytes == 0) return ree_fail(err, REE_INVALID, "it is empty");
        return ree_no_memory(err);
    }
    struct ree_onnx_reader reader;
    ree_onnx_reader_init(&reader, graph->arena, &graph->mappings, err);
    if (data) ree_mapping_link(&reader.files, data);
    reader.decoder.progress = progress;
    graph->file = ree_arena_strdup(graph->arena, path);
    enum ree_status status = REE_OK;
    if (!graph->file || (*path && !ree_onnx_reader_set_folder(&reader, path)))
        status = ree_onnx_no_memory(&reader);
    ProtobufCMessage *message;
    if (status == REE_OK)
        status = ree_decode(&reader.decoder, &onnx__model_proto__descriptor, bytes, nbytes,
                            &message, err);
    if (status == REE_OK)
        status =
            read_model(&reader, REE_CONTAINER_OF(message, const Onnx__ModelProto, base), graph);
    if (status == REE_OK) status = ree_progress_report(progress, "reading", nbytes, nbytes, err);
    ree_onnx_reader_finish(&reader);
    if (status != REE_OK) {
        ree_graph_destroy(graph);
        return status;
    }
    *out = graph;
    return REE_OK;
}

enum ree_status ree_onnx_load(const char *path, const struct ree_progress *progress,
                              struct ree_graph **out_graph, struct ree_error *err) {
    struct ree_error unused;
    if (!err) err = &unused;
    *out_graph = NULL;
    struct ree_mapping *file;
    enum ree_status status = ree_mapping_of_path(path, &file, err);
    if (status == REE_OK) {
        status = load(file->data, file->size, path, NULL, progress, out_graph, err);
        // Check after a failure as well: if the file was truncated, that is the better explanation.
        if (ree_mapping_check(file, err) != REE_OK) {
            ree_graph_destroy(*out_graph);
            *out_graph = NULL;
            status = REE_IO;
        }
        ree_mapping_destroy(file);
    }
    return status == REE_OK ? REE_OK : ree_onnx_fail_file(err, path);
}

enum ree_status ree_onnx_load_as(const char *path, const void *bytes, size_t nbytes,
                                 struct ree_mapping *data, const struct ree_progress *progress,
                                 struct ree_graph **out_graph, struct ree_error *err) {
    struct ree_error unused;
    if (!err) err = &unused;
    *out_graph = NULL;
    if (load(bytes, nbytes, path, data, progress, out_graph, err) == REE_OK) return REE_OK;
    return ree_onnx_fail_file(err, path);
}

enum ree_status ree_onnx_load_memory(const void *bytes, size_t nbytes,
                                     const struct ree_progress *progress,
                                     struct ree_graph **out_graph, struct ree_error *err) {
    struct ree_error unused;
    if (!err) err = &unused;
    *out_graph = NULL;
    if (load(bytes, nbytes, "", NULL, progress, out_graph, err) == REE_OK) return REE_OK;
    return ree_onnx_fail_file(err, "model in memory");
}
