// The public functions of receipts of trainings: make, sign, write, load.
#include "train/training_receipt.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "receipt/receipt_internal.h"
#include "session/model.h"
#include "train/training.h"

enum ree_status ree_training_receipt_new(struct ree_training_receipt **out, struct ree_error *err) {
    *out = ree_alloc_zeroed(1, sizeof **out);
    if (!*out) return ree_no_memory(err);
    ree_arena_init(&(*out)->arena);
    return REE_OK;
}

void ree_training_receipt_destroy(struct ree_training_receipt *r) {
    REE_FLOAT_ENV_API();
    if (!r) return;
    ree_arena_finish(&r->arena);
    ree_free(r);
}

void ree_training_receipt_describe(struct ree_training_receipt *r) {
    r->info = (struct ree_training_receipt_info){.receipt_hash = r->receipt_hash,
                                                 .numerics = r->numerics,
                                                 .operation_set = r->operation_set,
                                                 .graph_sha256 = r->graph_sha256,
                                                 .weights_sha256 = r->weights_sha256,
                                                 .roles_sha256 = r->roles_sha256,
                                                 .data_sha256 = r->data_sha256,
                                                 .n_samples = r->n_samples,
                                                 .batch_size = r->batch_size,
                                                 .seed = r->seed,
                                                 .in_order = r->in_order,
                                                 .interval = r->interval,
                                                 .n_points = r->n_points,
                                                 .points = r->points,
                                                 .trace_root = r->trace_root,
                                                 .public_key = r->public_key,
                                                 .device = r->device,
                                                 .ree_version = r->ree_version,
                                                 .created = r->created};
}

static enum ree_status fill(struct ree_training_receipt *r, const struct ree_training *t,
                            const char *trace_root, struct ree_error *err) {
    ree_digest root;
    if (trace_root && t->model->no_fold) return ree_receipt_needs_folding(err);
    if (trace_root && !ree_unhex(trace_root, root))
        return ree_fail(err, REE_INVALID, "the root of the trace is not 64 hexadecimal digits");
    if (trace_root) ree_hex(root, r->trace_root);
    const struct ree_training_log *log = &t->log;
    bool is_after = log->points[log->n_points - 1].step != log->last.step;
    char date[32];
    r->numerics = ree_numerics_version();
    r->operation_set = ree_operation_set_name(ree_device_operation_set(t->device));
    memcpy(r->graph_sha256, t->hashes.graph, sizeof r->graph_sha256);
    memcpy(r->weights_sha256, t->hashes.weights, sizeof r->weights_sha256);
    memcpy(r->roles_sha256, t->roles_sha256, sizeof r->roles_sha256);
    memcpy(r->data_sha256, t->data_sha256, sizeof r->data_sha256);
    r->n_samples = t->batches.n_samples;
    r->batch_size = (uint64_t)t->step.batch_size;
    r->seed = t->options.seed;
    r->in_order = t->options.in_order;
    r->interval = log->interval;
    r->n_points = log->n_points + is_after;
    r->points = ree_arena_alloc_array(&r->arena, r->n_points, sizeof *r->points);
    r->device = ree_arena_strdup(&r->arena, ree_device_name(t->device));
    r->ree_version = ree_version();
    ree_receipt_date(date);
    if (date[0]) r->created = ree_arena_strdup(&r->arena, date);
    if (!r->points || !r->device || (date[0] && !r->created)) return ree_no_memory(err);
    memcpy(r->points, log->points, log->n_points * sizeof *r->points);
    if (is_after) r->points[log->n_points] = log->last;
    return ree_training_receipt_seal(r, err);
}

enum ree_status ree_training_receipt_create(const struct ree_training *t, const char *trace_root,
                                            struct ree_training_receipt **out,
                                            struct ree_error *err) {
    REE_FLOAT_ENV_API();
    *out = NULL;
    if (!t->log.interval || t->log.last.step == t->log.points[0].step)
        return ree_fail(err, REE_INVALID, "no step was recorded, so there is nothing to receipt");
    REE_TRY(ree_training_receipt_new(out, err));
    enum ree_status status = fill(*out, t, trace_root, err);
    if (status == REE_OK) ree_training_receipt_describe(*out);
    if (status == REE_OK) return REE_OK;
    ree_training_receipt_destroy(*out);
    *out = NULL;
    return status;
}

enum ree_status ree_training_receipt_sign(struct ree_training_receipt *r, const char *key_path,
                                          struct ree_error *err) {
    REE_FLOAT_ENV_API();
    REE_TRY(ree_hash_sign(r->receipt_hash, key_path, r->public_key, r->signature, err));
    r->is_signed = true;
    return REE_OK;
}

enum ree_status ree_training_receipt_write(const struct ree_training_receipt *r, const char *path,
                                           struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    struct ree_training_receipt *read;
    char *text;
    size_t n;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    if (ree_training_receipt_encode(r, &text, &n, err) != REE_OK)
        return ree_fail_prefix(err, "%s", path);
    // Do not write a file that cannot be read again.
    enum ree_status status = ree_training_receipt_parse(text, n, path, &read, err);
    ree_training_receipt_destroy(read);
    if (status == REE_OK) status = ree_file_write(path, text, n, err);
    ree_free(text);
    return status;
}

enum ree_status ree_training_receipt_load(const char *path, struct ree_training_receipt **out,
                                          struct ree_error *err) {
    REE_FLOAT_ENV_API();
    void *bytes;
    size_t n;
    *out = NULL;
    REE_TRY(ree_file_read_small(path, REE_RECEIPT_MAX_SIZE, &bytes, &n, err));
    enum ree_status status = ree_training_receipt_parse(bytes, n, path, out, err);
    ree_free(bytes);
    return status;
}

const struct ree_training_receipt_info *
ree_training_receipt_info(const struct ree_training_receipt *r) {
    return &r->info;
}
