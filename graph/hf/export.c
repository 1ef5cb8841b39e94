// Writes a checkpoint's model to an ONNX file, or loads it as a graph directly.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "graph/hf/causal.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "graph/hf/hf.h"
#include "graph/ir/mapping.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx/reader.h"

static const char extension[] = ".onnx";

static char *join(const char *a, const char *b, const char *c) {
    size_t size = strlen(a) + strlen(b) + strlen(c) + 1;
    char *s = ree_alloc(size);
    if (s) snprintf(s, size, "%s%s%s", a, b, c);
    return s;
}

#define DEFAULT_TABLE_BITS 8

static enum ree_status check_variant(uint32_t bits, uint32_t block, uint32_t table,
                                     enum ree_dtype activations, struct ree_error *err) {
    if (activations != REE_DTYPE_NONE && activations != REE_F32 && activations != REE_F16 &&
        activations != REE_BF16 && activations != REE_I8)
        return ree_fail(err, REE_INVALID,
                        "activations cannot be %s; expected float32, float16, bfloat16 or int8",
                        ree_dtype_name(activations));
    if (activations == REE_I8 && !bits)
        return ree_fail(err, REE_INVALID,
                        "activations can be int8 only together with quantised weights");
    if (bits && bits != 4 && bits != 8)
        return ree_fail(err, REE_INVALID, "weights cannot be quantised to %u bits; expected 4 or 8",
                        bits);
    if (block && (block < 16 || block > 256 || (block & (block - 1))))
        return ree_fail(err, REE_INVALID, "the block size %u is not a power of two from 16 to 256",
                        block);
    if (table && table != 4 && table != 8 && table != REE_QUANTIZE_KEEP)
        return ree_fail(err, REE_INVALID,
                        "the embedding table cannot be quantised to %u bits; expected 4 or 8",
                        table);
    if (table && table != REE_QUANTIZE_KEEP && !bits)
        return ree_fail(err, REE_INVALID,
                        "the embedding table can be quantised only together with the layers");
    return REE_OK;
}

// Returns the type of the values between the layers. int8 applies only to the inputs of products,
// so the other values are then float32.
static enum ree_dtype stored_type(enum ree_dtype activations) {
    return activations == REE_F16 || activations == REE_BF16 ? activations : REE_F32;
}

// Returns the bits of an embedding table that is also the head; 0: not quantised.
static uint32_t table_bits(uint32_t bits, uint32_t table) {
    if (!bits || table == REE_QUANTIZE_KEEP) return 0;
    return table ? table : DEFAULT_TABLE_BITS;
}

// Location of the quantised weights in a model in memory. No shard can have this name, because the
// names of shards are relative to the folder.
static const char in_memory[] = "/quantised weights";

static void append_note(void *notes, const char *text) {
    ree_strbuf_printf(notes, "%s\n", text);
}

// Writes the bytes of the model to *out, which the caller releases with ree_free. If the weights
// are quantised, returns a mapping of them in *out_data, which the caller then owns.
static enum ree_status write_memory(struct ree_checkpoint *checkpoint,
                                    const struct ree_hf_options *o, unsigned char **out,
                                    size_t *out_size, struct ree_mapping **out_data,
                                    struct ree_strbuf *notes, struct ree_error *err) {
    struct ree_output data = {0};
    struct ree_causal_options options = {.bits = o->quantize_bits,
                                         .block = o->quantize_block ? o->quantize_block : 32,
                                         .table_bits =
                                             table_bits(o->quantize_bits, o->quantize_table),
                                         .activations = stored_type(o->activations),
                                         .int8 = o->activations == REE_I8,
                                         .progress = o->progress,
                                         .on_note = append_note,
                                         .note_user = notes};
    enum ree_status status = REE_OK;
    if (options.bits) {
        options.data = &data;
        options.data_name = in_memory;
        status = ree_output_open_memory(&data, in_memory + 1, err);
    }
    if (status == REE_OK) status = ree_causal_write(checkpoint, &options, out, out_size, err);
    if (status == REE_OK && options.bits) status = ree_output_map(&data, out_data, err);
    if (status == REE_OK && options.bits) (*out_data)->location = in_memory;
    ree_output_discard(&data);
    return status;
}

enum ree_status ree_hf_load(const char *folder, const struct ree_hf_options *options,
                            struct ree_graph **out_graph, struct ree_error *err) {
    struct ree_error unused;
    if (!err) err = &unused;
    *out_graph = NULL;
    REE_TRY(check_variant(options->quantize_bits, options->quantize_block, options->quantize_table,
                          options->activations, err));
    struct ree_checkpoint checkpoint;
    unsigned char *bytes = NULL;
    size_t size = 0;
    struct ree_mapping *data = NULL;
    struct ree_strbuf notes;
    ree_strbuf_init(&notes);
    enum ree_status status = ree_checkpoint_init(&checkpoint, folder, err);
    if (status == REE_OK) {
        status = write_memory(&checkpoint, options, &bytes, &size, &data, &notes, err);
        ree_checkpoint_finish(&checkpoint);
    }
    if (status != REE_OK) {
        ree_free(bytes);
        ree_strbuf_finish(&notes);
        return ree_onnx_fail_file(err, folder);
    }
    char *path = join(folder, "/", ""); // the path of a file without a name, in this folder
    if (path) {
        status = ree_onnx_load_as(path, bytes, size, data, &options->progress, out_graph, err);
    } else {
        ree_mapping_destroy(data);
        status = ree_no_memory(err);
    }
    if (status == REE_OK && notes.size)
        (*out_graph)->notes = ree_arena_strdup((*out_graph)->arena, notes.data);
    ree_strbuf_finish(&notes);
    ree_free(path);
    ree_free(bytes);
    return status;
}

static enum ree_status check_options(const struct ree_export_options *o, struct ree_error *err) {
    if (o->opset && o->opset != 17 && o->opset != 23)
        return ree_fail(err, REE_INVALID, "opset %lld is not supported; expected 17 or 23",
                        (long long)o->opset);
    REE_TRY(
        check_variant(o->quantize_bits, o->quantize_block, o->quantize_table, o->activations, err));
    if (o->opset == 17 && stored_type(o->activations) != REE_F32)
        return ree_fail(err, REE_UNSUPPORTED,
                        "with opset 17, activations are float32; %s requires opset 23",
                        ree_dtype_name(o->activations));
    return REE_OK;
}

// Returns the last component of a path.
static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static enum ree_status check_output_path(const char *hf_dir, const char *path, bool colocate,
                                         struct ree_error *err) {
    size_t n = strlen(file_name(path)), n_extension = sizeof extension - 1;
    // Ensures that a model does not replace weights or a config.json.
    if (n <= n_extension || strcmp(path + strlen(path) - n_extension, extension) != 0)
        return ree_fail(err, REE_INVALID, "%s: the name does not end in %s", path, extension);
    struct stat here, there;
    if (stat(hf_dir, &here) != 0)
        return ree_fail(err, REE_NOT_FOUND, "%s: %s", hf_dir, strerror(errno));
    if (!S_ISDIR(here.st_mode))
        return ree_fail(err, REE_INVALID, "%s: it is a file, not a folder with a checkpoint",
                        hf_dir);
    char *folder = ree_strndup(path, strlen(path) - n);
    if (!folder) return ree_no_memory(err);
    int found = stat(*folder ? folder : ".", &there);
    int cause = errno;
    ree_free(folder);
    if (found != 0)
        return ree_fail(err, REE_NOT_FOUND, "%s: its folder: %s", path, strerror(cause));
    if (colocate || (here.st_dev == there.st_dev && here.st_ino == there.st_ino)) return REE_OK;
    return ree_fail(err, REE_INVALID,
                    "%s: is outside of %s, but a model can refer only to weights in its own "
                    "folder: write it there, or copy the weights next to it (--colocate-tensors)",
                    path, hf_dir);
}

// Writes the model and, if weights are copied or quantised, their data file. The files get their
// names only when both are complete.
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
    if (status == REE_OK) status = ree_output_sync(&model, err);
    if (status == REE_OK && options->data) status = ree_output_commit(&data, err);
    if (status == REE_OK) status = ree_output_commit(&model, err);
    ree_output_discard(&model);
    ree_output_discard(&data);
    options->data = NULL;
    ree_free(bytes);
    return status;
}

static enum ree_status export_to(const char *hf_dir, const char *path, const char *data_path,
                                 const struct ree_export_options *o, struct ree_error *err) {
    REE_TRY(check_output_path(hf_dir, path, o->colocate_tensors, err));
    struct ree_causal_options options = {
        .steps = o->opset == 17,
        .bits = o->quantize_bits,
        .block = o->quantize_block ? o->quantize_block : 32,
        .table_bits = table_bits(o->quantize_bits, o->quantize_table),
        .copy = o->colocate_tensors,
        .activations = stored_type(o->activations),
        .int8 = o->activations == REE_I8,
        .progress = o->progress,
        .on_note = o->on_note,
        .note_user = o->user,
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
    REE_FLOAT_ENV_API();
    struct ree_export_options own;
    struct ree_error unused;
    if (!err) err = &unused;
    REE_TRY(ree_options_read(&own, sizeof own, options, "ree_export_options", err));
    REE_TRY(check_options(&own, err));
    char *path = out_path ? join(out_path, "", "") : join(hf_dir, "/model", extension);
    char *data_path = path ? join(path, ".data", "") : NULL;
    enum ree_status status;
    if (data_path)
        status = export_to(hf_dir, path, data_path, &own, err);
    else
        status = ree_no_memory(err);
    ree_free(data_path);
    ree_free(path);
    return status;
}
