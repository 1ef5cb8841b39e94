// A checkpoint's model as a file, or as a graph right away.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "graph/hf/causal.h"
#include "graph/hf/hf.h"
#include "graph/onnx/reader.h"

static const char extension[] = ".onnx";

bool ree_hf_is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static char *join(const char *a, const char *b, const char *c) {
    size_t size = strlen(a) + strlen(b) + strlen(c) + 1;
    char *s = malloc(size);
    if (s) snprintf(s, size, "%s%s%s", a, b, c);
    return s;
}

enum ree_status ree_hf_load(const char *folder,
                            void (*on_progress)(void *, const char *, uint64_t, uint64_t),
                            void *user, struct ree_graph **out_graph, struct ree_error *err) {
    struct ree_error unused;
    if (!err) err = &unused;
    *out_graph = NULL;
    struct ree_checkpoint checkpoint;
    struct ree_causal_options options = {0};
    unsigned char *bytes = NULL;
    size_t size = 0;
    enum ree_status status = ree_checkpoint_init(&checkpoint, folder, err);
    if (status == REE_OK) {
        status = ree_causal_write(&checkpoint, &options, &bytes, &size, err);
        ree_checkpoint_finish(&checkpoint);
    }
    if (status != REE_OK) return ree_onnx_fail_file(err, folder);
    char *path = join(folder, "/", ""); // a file without a name, in this folder
    if (path)
        status = ree_onnx_load_as(path, bytes, size, on_progress, user, out_graph, err);
    else
        status = ree_fail(err, REE_NO_MEMORY, "out of memory");
    free(path);
    free(bytes);
    return status;
}

static enum ree_status check_options(const struct ree_export_options *o, struct ree_error *err) {
    if (o->opset && o->opset != 17 && o->opset != 23)
        return ree_fail(err, REE_INVALID, "opset %lld cannot be written; 17 and 23 can",
                        (long long)o->opset);
    if (o->quantize_bits && o->quantize_bits != 4 && o->quantize_bits != 8)
        return ree_fail(err, REE_INVALID,
                        "weights cannot be quantised to %u bits; to 4 and 8 they can",
                        o->quantize_bits);
    uint32_t block = o->quantize_block;
    if (block && (block < 16 || block > 256 || (block & (block - 1))))
        return ree_fail(err, REE_INVALID, "a block of %u is no power of two from 16 to 256", block);
    return REE_OK;
}

// The last part of a path.
static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static enum ree_status check_place(const char *hf_dir, const char *path, bool colocate,
                                   struct ree_error *err) {
    size_t n = strlen(file_name(path)), n_extension = sizeof extension - 1;
    // So that a model does not take the place of weights or of a config.json.
    if (n <= n_extension || strcmp(path + strlen(path) - n_extension, extension) != 0)
        return ree_fail(err, REE_INVALID, "%s: the name does not end in %s", path, extension);
    struct stat here, there;
    char *folder = strndup(path, strlen(path) - n);
    if (!folder) return ree_fail(err, REE_NO_MEMORY, "out of memory");
    int found = stat(*folder ? folder : ".", &there);
    int cause = errno;
    free(folder);
    if (found != 0)
        return ree_fail(err, REE_NOT_FOUND, "%s: its folder: %s", path, strerror(cause));
    if (stat(hf_dir, &here) != 0)
        return ree_fail(err, REE_NOT_FOUND, "%s: %s", hf_dir, strerror(errno));
    if (colocate || (here.st_dev == there.st_dev && here.st_ino == there.st_ino)) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "%s: it would lie outside of %s, and a model can only point to weights in its "
                    "own folder: write it there, or copy the weights beside it "
                    "(--colocate-tensors)",
                    path, hf_dir);
}

// Writes both files under temporary names, then gives them theirs.
static enum ree_status write_files(struct ree_checkpoint *checkpoint, const char *path,
                                   const char *data_path, struct ree_causal_options *options,
                                   struct ree_error *err) {
    struct ree_output data = {0}, model = {0};
    unsigned char *bytes = NULL;
    size_t size = 0;
    enum ree_status status = REE_OK;
    if (options->bits || options->copy) {
        options->data = &data;
        options->data_name = file_name(data_path);
        status = ree_output_open(&data, data_path, err);
    }
    if (status == REE_OK) {
        status = ree_causal_write(checkpoint, options, &bytes, &size, err);
        if (status != REE_OK) ree_onnx_fail_file(err, checkpoint->folder);
    }
    if (status == REE_OK) status = ree_output_open(&model, path, err);
    if (status == REE_OK) status = ree_output_write(&model, bytes, size, err);
    if (status == REE_OK && options->data) status = ree_output_commit(&data, err);
    if (status == REE_OK) status = ree_output_commit(&model, err);
    ree_output_discard(&model);
    ree_output_discard(&data);
    free(bytes);
    return status;
}

static enum ree_status export_to(const char *hf_dir, const char *path, const char *data_path,
                                 const struct ree_export_options *o, struct ree_error *err) {
    REE_TRY(check_place(hf_dir, path, o->colocate_tensors, err));
    struct ree_causal_options options = {
        .steps = o->opset == 17,
        .bits = o->quantize_bits,
        .block = o->quantize_block ? o->quantize_block : 32,
        .copy = o->colocate_tensors,
        .on_progress = o->on_progress,
        .user = o->user,
    };
    struct ree_checkpoint checkpoint;
    if (ree_checkpoint_init(&checkpoint, hf_dir, err) != REE_OK)
        return ree_onnx_fail_file(err, hf_dir);
    enum ree_status status = write_files(&checkpoint, path, data_path, &options, err);
    ree_checkpoint_finish(&checkpoint);
    return status;
}

enum ree_status ree_export(const char *hf_dir, const char *out_path,
                           const struct ree_export_options *options, struct ree_error *err) {
    static const struct ree_export_options defaults;
    struct ree_error unused;
    if (!err) err = &unused;
    if (!options) options = &defaults;
    REE_TRY(check_options(options, err));
    char *path = out_path ? join(out_path, "", "") : join(hf_dir, "/model", extension);
    char *data_path = path ? join(path, ".data", "") : NULL;
    enum ree_status status;
    if (data_path)
        status = export_to(hf_dir, path, data_path, options, err);
    else
        status = ree_fail(err, REE_NO_MEMORY, "out of memory");
    free(data_path);
    free(path);
    return status;
}
