#include "graph/hf/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "graph/onnx/reader.h"

#define MAX_FILES 4096
#define MAX_JSON (64 << 20)

static const char single_name[] = "model.safetensors";
static const char index_name[] = "model.safetensors.index.json";

static enum ree_status map_file(int folder_fd, const char *name, struct ree_mapping **out,
                                struct ree_error *err) {
    int fd;
    *out = NULL;
    struct stat info;
    int64_t owner = fstat(folder_fd, &info) == 0 ? (int64_t)info.st_uid : -1;
    REE_TRY(ree_onnx_open_beneath(folder_fd, name, true, &fd, err));
    enum ree_status status = ree_onnx_check_links(fd, owner, err);
    if (status == REE_OK) status = ree_mapping_of_fd(fd, out, err);
    close(fd);
    return status;
}

static enum ree_status read_json(int folder_fd, const char *name, cJSON **out,
                                 struct ree_error *err) {
    struct ree_mapping *file;
    *out = NULL;
    enum ree_status status = map_file(folder_fd, name, &file, err);
    if (status == REE_OK) {
        if (file->size > MAX_JSON)
            status = ree_fail(err, REE_UNSUPPORTED, "it has %zu bytes; the maximum is %d",
                              file->size, MAX_JSON);
        else
            status = ree_json_parse_object(file->data, file->size, out, err);
        if (ree_mapping_check(file, err) != REE_OK) {
            cJSON_Delete(*out);
            *out = NULL;
            status = REE_IO;
        }
        ree_mapping_destroy(file);
    }
    return status == REE_OK ? REE_OK : ree_fail_prefix(err, "%s", name);
}

enum ree_status ree_checkpoint_add(struct ree_checkpoint *c, const char *name,
                                   struct ree_mapping *mapping, struct ree_error *err) {
    size_t file = c->n_files, n = 0;
    struct ree_stored_tensor *fresh;
    const char **files = ree_realloc(c->files, (file + 1) * sizeof *files);
    if (files) c->files = files;
    struct ree_mapping **mappings =
        ree_realloc(c->mappings, (file + 1) * sizeof(struct ree_mapping *));
    if (mappings) c->mappings = mappings;
    const char *copy = ree_arena_strdup(&c->arena, name);
    if (!files || !mappings || !copy) {
        ree_mapping_destroy(mapping);
        return ree_no_memory(err);
    }
    c->files[file] = mapping->location = copy;
    c->mappings[file] = mapping;
    c->n_files++;
    REE_TRY(ree_safetensors_parse(mapping->data, mapping->size, &c->arena, &fresh, &n, err));
    struct ree_stored_tensor *grown =
        ree_realloc(c->tensors, (c->n_tensors + n + 1) * sizeof *c->tensors);
    if (!grown) return ree_no_memory(err);
    c->tensors = grown;
    for (size_t i = 0; i < n; i++) {
        grown[c->n_tensors] = fresh[i];
        grown[c->n_tensors++].file = (uint32_t)file;
    }
    return REE_OK;
}

static enum ree_status add_file(struct ree_checkpoint *c, int folder_fd, const char *name,
                                struct ree_error *err) {
    struct ree_mapping *mapping;
    REE_TRY(map_file(folder_fd, name, &mapping, err));
    return ree_checkpoint_add(c, name, mapping, err);
}

static int by_name(const void *a, const void *b) {
    const struct ree_stored_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

enum ree_status ree_checkpoint_sort(struct ree_checkpoint *c, struct ree_error *err) {
    if (c->n_tensors) qsort(c->tensors, c->n_tensors, sizeof *c->tensors, by_name);
    for (size_t i = 1; i < c->n_tensors; i++)
        if (!strcmp(c->tensors[i - 1].name, c->tensors[i].name))
            return ree_fail(err, REE_INVALID, "tensor '%.128s' occurs twice", c->tensors[i].name);
    return REE_OK;
}

static bool is_open(const struct ree_checkpoint *c, const char *name) {
    // Search from the last file, because an index usually lists the tensors of a shard together.
    for (size_t i = c->n_files; i > 0; i--)
        if (!strcmp(c->files[i - 1], name)) return true;
    return false;
}

// Adds the shards in the order in which the index mentions them.
static enum ree_status add_shards(struct ree_checkpoint *c, int folder_fd, const cJSON *map,
                                  struct ree_error *err) {
    const cJSON *item;
    if (!cJSON_IsObject(map))
        return ree_fail(err, REE_INVALID, "%s: 'weight_map' is not an object", index_name);
    cJSON_ArrayForEach(item, map) {
        if (!cJSON_IsString(item))
            return ree_fail(err, REE_INVALID, "%s: the file of tensor '%.128s' is not a string",
                            index_name, item->string);
        if (is_open(c, item->valuestring)) continue;
        if (c->n_files == MAX_FILES)
            return ree_fail(err, REE_UNSUPPORTED, "%s: it names more than %d files", index_name,
                            MAX_FILES);
        if (add_file(c, folder_fd, item->valuestring, err) != REE_OK)
            return ree_fail_prefix(err, "shard '%.128s'", item->valuestring);
    }
    return ree_checkpoint_sort(c, err);
}

// Checks that every tensor of the index is in the file that the index names.
static enum ree_status check_index(const struct ree_checkpoint *c, const cJSON *map,
                                   struct ree_error *err) {
    const cJSON *item;
    cJSON_ArrayForEach(item, map) {
        const struct ree_stored_tensor *tensor = ree_checkpoint_find(c, item->string);
        if (!tensor || strcmp(c->files[tensor->file], item->valuestring) != 0)
            return ree_fail(err, REE_INVALID, "%s: tensor '%.128s' is not in '%.128s'", index_name,
                            item->string, item->valuestring);
    }
    return REE_OK;
}

static enum ree_status find_weights(struct ree_checkpoint *c, int folder_fd,
                                    struct ree_error *err) {
    if (faccessat(folder_fd, single_name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        if (add_file(c, folder_fd, single_name, err) != REE_OK)
            return ree_fail_prefix(err, "%s", single_name);
        return ree_checkpoint_sort(c, err);
    }
    if (faccessat(folder_fd, index_name, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
        return ree_fail(err, REE_NOT_FOUND,
                        "there is neither %s nor %s; weights in other formats (pytorch_model.bin) "
                        "must first be saved as safetensors",
                        single_name, index_name);
    cJSON *index;
    REE_TRY(read_json(folder_fd, index_name, &index, err));
    const cJSON *map = ree_json_find(index, "weight_map");
    enum ree_status status = add_shards(c, folder_fd, map, err);
    if (status == REE_OK) status = check_index(c, map, err);
    cJSON_Delete(index);
    return status;
}

static enum ree_status open_folder(struct ree_checkpoint *c, int folder_fd, struct ree_error *err) {
    if (faccessat(folder_fd, "config.json", F_OK, AT_SYMLINK_NOFOLLOW) != 0)
        return ree_fail(err, REE_NOT_FOUND,
                        "it is a folder without config.json, and so not a checkpoint");
    REE_TRY(read_json(folder_fd, "config.json", &c->config, err));
    if (faccessat(folder_fd, "generation_config.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        REE_TRY(read_json(folder_fd, "generation_config.json", &c->generation, err));
    if (faccessat(folder_fd, "adapter_config.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return ree_fail(err, REE_UNSUPPORTED,
                        "it has an adapter (adapter_config.json) that ree does not apply; merge it "
                        "into the weights first, or remove the file");
    c->has_code = ree_json_find(c->config, "auto_map") != NULL;
    if (faccessat(folder_fd, "tokenizer_config.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        struct ree_error unused; // ignored here: the reader of the tokenizer reports errors
        cJSON *tokenizer;
        if (read_json(folder_fd, "tokenizer_config.json", &tokenizer, &unused) == REE_OK)
            c->has_code = c->has_code || ree_json_find(tokenizer, "auto_map") != NULL;
        cJSON_Delete(tokenizer);
    }
    return find_weights(c, folder_fd, err);
}

enum ree_status ree_checkpoint_init(struct ree_checkpoint *c, const char *folder,
                                    struct ree_error *err) {
    memset(c, 0, sizeof *c);
    ree_arena_init(&c->arena);
    c->folder = folder;
    int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return ree_fail(err, errno == ENOENT || errno == ENOTDIR ? REE_NOT_FOUND : REE_IO, "%s",
                        errno == ENOTDIR ? "it is not a folder" : strerror(errno));
    enum ree_status status = open_folder(c, fd, err);
    close(fd);
    if (status != REE_OK) ree_checkpoint_finish(c);
    return status;
}

void ree_checkpoint_finish(struct ree_checkpoint *c) {
    cJSON_Delete(c->config);
    cJSON_Delete(c->generation);
    for (size_t i = 0; i < c->n_files; i++)
        ree_mapping_destroy(c->mappings[i]);
    ree_free(c->files);
    ree_free(c->mappings);
    ree_free(c->tensors);
    ree_arena_finish(&c->arena);
    memset(c, 0, sizeof *c);
}

const struct ree_stored_tensor *ree_checkpoint_find(const struct ree_checkpoint *c,
                                                    const char *name) {
    struct ree_stored_tensor key = {.name = name};
    return c->n_tensors ? bsearch(&key, c->tensors, c->n_tensors, sizeof key, by_name) : NULL;
}
