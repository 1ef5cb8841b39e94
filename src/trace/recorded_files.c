#include "trace/recorded_files.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void ree_recorded_folder_finish(struct ree_recorded_folder *folder) {
    if (folder->files) ree_arena_finish(&folder->names);
    ree_free(folder->files);
    folder->files = NULL;
    folder->n = 0;
}

// Reads the number between `begin` and `end`, which must be written as printf writes it with at
// least `width` digits.
static bool read_number(const char *begin, const char *end, int width, uint32_t *out) {
    char text[16];
    size_t n = (size_t)(end - begin);
    uint64_t number = 0;
    if (n == 0 || n > 10) return false;
    for (size_t i = 0; i < n; i++) {
        if (begin[i] < '0' || begin[i] > '9') return false;
        number = 10 * number + (uint64_t)(begin[i] - '0');
    }
    snprintf(text, sizeof text, "%0*" PRIu64, width, number);
    *out = (uint32_t)number;
    return number <= UINT32_MAX && strlen(text) == n;
}

// Reads the key from a file's name: input-INDEX-NAME.npy or NODE-NAME-OUTPUT.npy.
static bool read_key(const char *name, struct ree_recorded_key *out) {
    static const char input[] = "input-", suffix[] = ".npy";
    size_t n = strlen(name);
    if (n < sizeof suffix || strcmp(name + n - sizeof suffix + 1, suffix) != 0) return false;
    const char *end = name + n - sizeof suffix + 1;
    *out = (struct ree_recorded_key){.is_input = strncmp(name, input, sizeof input - 1) == 0};
    const char *begin = name + (out->is_input ? sizeof input - 1 : 0);
    const char *dash = strchr(begin, '-');
    if (!dash || !read_number(begin, dash, 5, &out->number)) return false;
    if (out->is_input) return true;
    const char *last = end;
    while (last > dash + 1 && *last != '-')
        last--;
    return last > dash && *last == '-' && read_number(last + 1, end, 1, &out->output);
}

static int compare_keys(const struct ree_recorded_key *a, const struct ree_recorded_key *b) {
    if (a->is_input != b->is_input) return a->is_input ? 1 : -1;
    if (a->number != b->number) return a->number < b->number ? -1 : 1;
    return (a->output > b->output) - (a->output < b->output);
}

static int compare(const void *a, const void *b) {
    const struct ree_recorded_file *x = a, *y = b;
    int order = compare_keys(&x->key, &y->key);
    return order ? order : strcmp(x->name, y->name);
}

static bool add(struct ree_recorded_folder *folder, size_t *capacity, const char *name) {
    struct ree_recorded_file file;
    if (!read_key(name, &file.key)) return true;
    if (folder->n == *capacity) {
        struct ree_recorded_file *grown =
            ree_realloc(folder->files, 2 * *capacity * sizeof *folder->files);
        if (!grown) return false;
        folder->files = grown;
        *capacity *= 2;
    }
    file.name = ree_arena_strdup(&folder->names, name);
    folder->files[folder->n++] = file;
    return file.name != NULL;
}

static enum ree_status read_names(struct ree_recorded_folder *folder, const char *path,
                                  struct ree_error *err) {
    size_t capacity = 16;
    folder->files = ree_alloc(capacity * sizeof *folder->files);
    if (!folder->files) return ree_no_memory(err);
    ree_arena_init(&folder->names);
    DIR *dir = opendir(path);
    if (!dir) return ree_fail(err, REE_NOT_FOUND, "%s: %s", path, strerror(errno));
    bool ok = true;
    for (const struct dirent *entry; ok && (entry = readdir(dir));)
        ok = add(folder, &capacity, entry->d_name);
    closedir(dir);
    if (!ok) return ree_no_memory(err);
    qsort(folder->files, folder->n, sizeof *folder->files, compare);
    return REE_OK;
}

static const struct ree_recorded_file *search(const struct ree_recorded_folder *folder,
                                              const struct ree_recorded_key *key) {
    size_t low = 0, high = folder->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_keys(&folder->files[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < folder->n && compare_keys(&folder->files[low].key, key) == 0;
    return found ? &folder->files[low] : NULL;
}

static enum ree_status find(struct ree_recorded_folder *folder, uint64_t step, const char *path,
                            const struct ree_recorded_key *key, char **out, struct ree_error *err) {
    if (!folder->files || folder->step != step) {
        ree_recorded_folder_finish(folder);
        enum ree_status status = read_names(folder, path, err);
        if (status != REE_OK) {
            ree_recorded_folder_finish(folder);
            return status;
        }
        folder->step = step;
    }
    const struct ree_recorded_file *file = search(folder, key);
    if (!file && key->is_input)
        return ree_fail(err, REE_NOT_FOUND, "%s: no file input-%05u-*.npy in this folder", path,
                        key->number);
    if (!file)
        return ree_fail(err, REE_NOT_FOUND, "%s: no file %05u-*-%u.npy in this folder", path,
                        key->number, key->output);
    size_t size = strlen(path) + strlen(file->name) + 2;
    *out = ree_alloc(size);
    if (!*out) return ree_no_memory(err);
    snprintf(*out, size, "%s/%s", path, file->name);
    return REE_OK;
}

enum ree_status ree_recorded_find(struct ree_recorded_folder *folder, uint64_t step,
                                  const struct ree_recorded_key *key, char **out,
                                  struct ree_error *err) {
    size_t size = strlen(folder->path) + 32;
    char *path = ree_alloc(size);
    *out = NULL;
    if (!path) return ree_no_memory(err);
    snprintf(path, size, "%s/step-%05" PRIu64, folder->path, step);
    enum ree_status status = find(folder, step, path, key, out, err);
    ree_free(path);
    return status;
}
