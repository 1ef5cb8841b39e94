#include "train/dataset.h"

#include <string.h>

#include "base/dtype.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "graph/ir/mapping.h"
#include "ree/train.h"

enum ree_status ree_dataset_add(struct ree_dataset *d, struct ree_tensor *tensor,
                                struct ree_error *err) {
    if (d->n == d->capacity) {
        size_t capacity = d->capacity ? 2 * d->capacity : 8;
        struct ree_tensor *tensors = ree_realloc(d->tensors, capacity * sizeof *tensors);
        if (!tensors) {
            ree_tensor_finish(tensor);
            return ree_no_memory(err);
        }
        d->tensors = tensors;
        d->capacity = capacity;
    }
    d->tensors[d->n++] = *tensor;
    memset(tensor, 0, sizeof *tensor);
    return REE_OK;
}

static const char *name_of(const void *list, size_t i) {
    return ((const struct ree_tensor *)list)[i].name;
}

// Must be called after the last tensor was added. Fails if two have the same name.
static enum ree_status index_names(struct ree_dataset *d, struct ree_error *err) {
    if (!ree_name_index_init(&d->names, d->n, name_of, d->tensors)) return ree_no_memory(err);
    for (size_t i = 1; i < d->names.n; i++)
        if (!strcmp(d->names.entries[i - 1].name, d->names.entries[i].name))
            return ree_fail(err, REE_INVALID, "two tensors are called '%.128s'",
                            d->names.entries[i].name);
    return REE_OK;
}

const struct ree_tensor *ree_dataset_find(const struct ree_dataset *d, const char *name) {
    size_t i = ree_name_index_find(&d->names, name);
    return i == REE_NO_NAME ? NULL : &d->tensors[i];
}

enum ree_status ree_dataset_read(struct ree_dataset *d, const char *path, bool is_npz,
                                 const char *key, struct ree_arena *arena,
                                 const char **out_metadata, struct ree_error *err) {
    struct ree_mapping *file;
    if (ree_mapping_of_path(path, &file, err) != REE_OK) return ree_fail_prefix(err, "%s", path);
    file->location = path;
    enum ree_status status =
        is_npz ? ree_npz_read(d, file->data, file->size, err)
               : ree_stored_read(d, file->data, file->size, key, arena, out_metadata, err);
    if (status == REE_OK) status = index_names(d, err);
    if (status != REE_OK) status = ree_fail_prefix(err, "%s", path);
    // A file that shrank is read as zeros.
    struct ree_error changed;
    if (ree_mapping_check(file, &changed) != REE_OK) {
        status = changed.status;
        if (err) *err = changed;
    }
    ree_mapping_destroy(file);
    return status;
}

static enum ree_status create(struct ree_dataset **out, struct ree_error *err) {
    *out = ree_alloc_zeroed(1, sizeof **out);
    return *out ? REE_OK : ree_no_memory(err);
}

static enum ree_status finish_create(struct ree_dataset **inout, enum ree_status status) {
    if (status == REE_OK) return REE_OK;
    ree_dataset_destroy(*inout);
    *inout = NULL;
    return status;
}

static bool ends_with(const char *path, const char *suffix) {
    size_t n = strlen(path), m = strlen(suffix);
    return n >= m && !strcmp(path + n - m, suffix);
}

enum ree_status ree_dataset_load(const char *path, struct ree_dataset **out,
                                 struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_error local;
    if (!err) err = &local; // ree_fail_prefix needs a message to extend
    *out = NULL;
    bool is_npz = ends_with(path, ".npz");
    if (!is_npz && !ends_with(path, ".safetensors"))
        return ree_fail(err, REE_UNSUPPORTED,
                        "%s: its name ends neither with .npz nor with .safetensors", path);
    REE_TRY(create(out, err));
    (*out)->file = ree_strdup(path);
    if (!(*out)->file) return finish_create(out, ree_no_memory(err));
    return finish_create(out, ree_dataset_read(*out, path, is_npz, NULL, NULL, NULL, err));
}

static enum ree_status copy_of(const struct ree_tensor *from, struct ree_tensor *out,
                               struct ree_error *err) {
    int64_t count;
    uint64_t nbytes;
    memset(out, 0, sizeof *out);
    if (!from->name || !from->name[0]) return ree_fail(err, REE_INVALID, "a tensor has no name");
    if (from->kind != REE_TENSOR || from->dtype == REE_STRING || !ree_dtype_size(from->dtype))
        return ree_fail(err, REE_INVALID, "'%.128s' is not a tensor of numbers", from->name);
    if (from->rank > REE_MAX_RANK || !ree_count_elements(from->rank, from->dims, &count) ||
        !ree_mul_size((uint64_t)count, ree_dtype_size(from->dtype), &nbytes) ||
        from->nbytes != nbytes || (nbytes && !from->data))
        return ree_fail(err, REE_INVALID, "'%.128s': the size of its data does not match its shape",
                        from->name);
    REE_TRY(ree_tensor_init(out, from->name, from->dtype, from->rank, from->dims, err));
    if (nbytes) memcpy(out->data, from->data, nbytes);
    return REE_OK;
}

enum ree_status ree_dataset_create(const struct ree_tensor *tensors, size_t n,
                                   struct ree_dataset **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_tensor copy;
    REE_TRY(create(out, err));
    enum ree_status status = REE_OK;
    for (size_t i = 0; status == REE_OK && i < n; i++) {
        status = copy_of(&tensors[i], &copy, err);
        if (status == REE_OK) status = ree_dataset_add(*out, &copy, err);
    }
    if (status == REE_OK) status = index_names(*out, err);
    return finish_create(out, status);
}

void ree_dataset_destroy(struct ree_dataset *d) {
    REE_FLOAT_ENV_API();
    if (!d) return;
    for (size_t i = 0; i < d->n; i++)
        ree_tensor_finish(&d->tensors[i]);
    ree_free(d->tensors);
    ree_name_index_finish(&d->names);
    ree_free(d->file);
    ree_free(d);
}

size_t ree_dataset_tensors(const struct ree_dataset *d, const struct ree_tensor **out) {
    *out = d->tensors;
    return d->n;
}
