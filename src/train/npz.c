// NumPy's .npz files: ZIP archives with a .npy file for each array, named NAME.npy. Source:
// numpy.savez's documentation. libzip reads the archive and checks its checksums.
#include <stdio.h>
#include <string.h>
#include <zip.h>

#include "base/memory.h"
#include "base/npy.h"
#include "train/dataset.h"

#define DEFLATE_FACTOR 1032

static enum ree_status zip_failed(zip_error_t *error, struct ree_error *err) {
    bool is_memory = zip_error_code_zip(error) == ZIP_ER_MEMORY;
    enum ree_status status = is_memory ? REE_NO_MEMORY : REE_INVALID;
    return ree_fail(err, status, "%s", zip_error_strerror(error));
}

// Reads a whole entry. zip_fread fails at the last byte if the checksum is wrong.
static enum ree_status read_entry(zip_file_t *file, unsigned char *bytes, uint64_t size,
                                  struct ree_error *err) {
    uint64_t done = 0;
    unsigned char end;
    while (done < size) {
        zip_int64_t n = zip_fread(file, bytes + done, size - done);
        if (n < 0) return zip_failed(zip_file_get_error(file), err);
        if (n == 0) return ree_fail(err, REE_INVALID, "it is shorter than the archive says");
        done += (uint64_t)n;
    }
    zip_int64_t n = zip_fread(file, &end, 1);
    if (n < 0) return zip_failed(zip_file_get_error(file), err);
    return n ? ree_fail(err, REE_INVALID, "it is longer than the archive says") : REE_OK;
}

// Returns the name of an array: the entry's without ".npy". NULL: out of memory.
static char *array_name(const char *entry) {
    size_t n = strlen(entry);
    if (n > 4 && !strcmp(entry + n - 4, ".npy")) n -= 4;
    return ree_strndup(entry, n);
}

// *inout_left: bytes that this entry and those after it can have.
static enum ree_status add_entry(struct ree_dataset *d, zip_t *archive, uint64_t i,
                                 uint64_t *inout_left, const zip_stat_t *entry,
                                 struct ree_error *err) {
    struct ree_tensor tensor;
    if (!(entry->valid & ZIP_STAT_SIZE) || entry->size > *inout_left)
        return ree_fail(err, REE_INVALID, "its size is missing, or larger than the archive allows");
    *inout_left -= entry->size;
    if (entry->valid & ZIP_STAT_COMP_METHOD && entry->comp_method != ZIP_CM_STORE &&
        entry->comp_method != ZIP_CM_DEFLATE)
        return ree_fail(err, REE_UNSUPPORTED, "its compression is neither none nor deflate");
    zip_file_t *file = zip_fopen_index(archive, i, 0);
    if (!file) return zip_failed(zip_get_error(archive), err);
    unsigned char *bytes = ree_alloc(entry->size + 1);
    enum ree_status status = bytes ? read_entry(file, bytes, entry->size, err) : ree_no_memory(err);
    zip_fclose(file);
    // Arrays that no training can use, such as names of classes, are left out.
    const bool is_text = status == REE_OK && ree_npy_has_strings(bytes, entry->size);
    if (status == REE_OK && !is_text)
        status = ree_npy_decode(&tensor, bytes, entry->size, "its contents", err);
    ree_free(bytes);
    if (status == REE_UNSUPPORTED) {
        ree_error_clear(err);
        return REE_OK;
    }
    if (is_text) return REE_OK;
    REE_TRY(status);
    ree_free(tensor.name);
    tensor.name = array_name(entry->name);
    if (!tensor.name) {
        ree_tensor_finish(&tensor);
        return ree_no_memory(err);
    }
    return ree_dataset_add(d, &tensor, err);
}

static enum ree_status add_entries(struct ree_dataset *d, zip_t *archive, size_t size,
                                   struct ree_error *err) {
    // Deflate makes nothing smaller than by this factor. Without this limit, false sizes and
    // entries that overlap would decide how much memory is requested.
    uint64_t left;
    if (!ree_mul_size(size, DEFLATE_FACTOR, &left)) left = UINT64_MAX;
    zip_int64_t n = zip_get_num_entries(archive, 0);
    for (zip_int64_t i = 0; i < n; i++) {
        zip_stat_t entry;
        zip_stat_init(&entry);
        if (zip_stat_index(archive, (zip_uint64_t)i, ZIP_FL_ENC_RAW, &entry) != 0)
            return zip_failed(zip_get_error(archive), err);
        if (!(entry.valid & ZIP_STAT_NAME) || !entry.name[0])
            return ree_fail(err, REE_INVALID, "entry %lld has no name", (long long)i);
        if (add_entry(d, archive, (uint64_t)i, &left, &entry, err) != REE_OK)
            return ree_fail_prefix(err, "'%.128s'", entry.name);
    }
    return REE_OK;
}

enum ree_status ree_npz_read(struct ree_dataset *d, const unsigned char *bytes, size_t size,
                             struct ree_error *err) {
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t *source = zip_source_buffer_create(bytes, size, 0, &error);
    zip_t *archive =
        source ? zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error) : NULL;
    enum ree_status status = archive ? add_entries(d, archive, size, err) : zip_failed(&error, err);
    if (archive)
        zip_discard(archive); // also releases the source
    else
        zip_source_free(source);
    zip_error_fini(&error);
    return status;
}
