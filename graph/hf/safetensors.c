#include "graph/hf/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static const struct {
    const char *name;
    enum ree_dtype dtype;
} types[] = {
    {"F64", REE_F64},   {"F32", REE_F32},          {"F16", REE_F16},        {"BF16", REE_BF16},
    {"I64", REE_I64},   {"I32", REE_I32},          {"I16", REE_I16},        {"I8", REE_I8},
    {"U64", REE_U64},   {"U32", REE_U32},          {"U16", REE_U16},        {"U8", REE_U8},
    {"BOOL", REE_BOOL}, {"F8_E4M3", REE_F8E4M3FN}, {"F8_E5M2", REE_F8E5M2}, {"F8_E8M0", REE_F8E8M0},
};

static enum ree_dtype dtype_of_name(const char *name) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!strcmp(name, types[i].name)) return types[i].dtype;
    return REE_DTYPE_NONE;
}

const char *ree_safetensors_type(enum ree_dtype dtype) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].dtype == dtype) return types[i].name;
    return NULL;
}

static enum ree_status read_shape(const cJSON *entry, struct ree_stored_tensor *tensor,
                                  struct ree_error *err) {
    const cJSON *shape = ree_json_find(entry, "shape"), *item;
    if (!cJSON_IsArray(shape)) return ree_fail(err, REE_INVALID, "'shape' is not a list");
    cJSON_ArrayForEach(item, shape) {
        if (tensor->rank == REE_MAX_RANK)
            return ree_fail(err, REE_UNSUPPORTED, "has more than %d dimensions", REE_MAX_RANK);
        if (!ree_json_is_whole(item, 0, INT64_MAX, &tensor->dims[tensor->rank]))
            return ree_fail(err, REE_INVALID, "dimension %u is not a size", tensor->rank);
        tensor->rank++;
    }
    return REE_OK;
}

// Reads one entry of the header. `data_size` bytes of data follow the header.
static enum ree_status read_tensor(const cJSON *entry, uint64_t data_size,
                                   struct ree_stored_tensor *tensor, struct ree_error *err) {
    if (!cJSON_IsObject(entry)) return ree_fail(err, REE_INVALID, "is not described by an object");
    const char *type = "";
    REE_TRY(ree_json_string(entry, "dtype", &type, err));
    if (!*type) return ree_fail(err, REE_INVALID, "'dtype' is missing");
    tensor->dtype = dtype_of_name(type);
    if (!tensor->dtype) return ree_fail(err, REE_UNSUPPORTED, "the type '%.32s' is unknown", type);
    REE_TRY(read_shape(entry, tensor, err));

    const cJSON *offsets = ree_json_find(entry, "data_offsets");
    int64_t begin, end, count;
    if (!cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2 ||
        !ree_json_is_whole(offsets->child, 0, INT64_MAX, &begin) ||
        !ree_json_is_whole(offsets->child->next, begin, INT64_MAX, &end))
        return ree_fail(err, REE_INVALID, "'data_offsets' is not [begin, end]");
    if ((uint64_t)end > data_size)
        return ree_fail(err, REE_INVALID,
                        "its data ends at byte %lld, but the file has %llu bytes of data",
                        (long long)end, (unsigned long long)data_size);
    if (!ree_count_elements(tensor->rank, tensor->dims, &count) ||
        !ree_mul_size((uint64_t)count, ree_dtype_size(tensor->dtype), &tensor->nbytes))
        return ree_fail(err, REE_INVALID, "its shape has too many elements");
    if (tensor->nbytes != (uint64_t)(end - begin))
        return ree_fail(err, REE_INVALID,
                        "its shape requires %llu bytes, but 'data_offsets' has %lld",
                        (unsigned long long)tensor->nbytes, (long long)(end - begin));
    tensor->offset = (uint64_t)begin;
    return REE_OK;
}

static int by_offset(const void *a, const void *b) {
    const struct ree_stored_tensor *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    // An empty tensor comes before the tensor that begins at the same offset.
    if (x->nbytes != y->nbytes) return x->nbytes < y->nbytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

// Checks that the tensors cover the data: each must begin where the previous one ends, and the last
// must end at the end of the file. They must be sorted by offset.
static enum ree_status check_cover(const struct ree_stored_tensor *tensors, size_t n,
                                   uint64_t data_size, struct ree_error *err) {
    uint64_t end = 0;
    for (size_t i = 0; i < n; i++) {
        if (tensors[i].offset < end)
            return ree_fail(err, REE_INVALID, "tensors '%s' and '%s' overlap", tensors[i - 1].name,
                            tensors[i].name);
        if (tensors[i].offset > end) break;
        end += tensors[i].nbytes;
    }
    if (end == data_size) return REE_OK;
    return ree_fail(
        err, REE_INVALID,
        "byte %llu of its %llu bytes of data belongs to no tensor; the file may be incomplete",
        (unsigned long long)end, (unsigned long long)data_size);
}

static enum ree_status read_entries(const cJSON *header, uint64_t data_size, uint64_t data_start,
                                    struct ree_arena *arena, struct ree_stored_tensor **out,
                                    size_t *out_n, struct ree_error *err) {
    size_t n = 0;
    const cJSON *entry;
    cJSON_ArrayForEach(entry, header) n++;
    struct ree_stored_tensor *tensors = ree_arena_alloc_array(arena, n + 1, sizeof *tensors);
    if (!tensors) return ree_no_memory(err);
    n = 0;
    cJSON_ArrayForEach(entry, header) {
        if (!strcmp(entry->string, "__metadata__")) continue;
        struct ree_stored_tensor *tensor = &tensors[n++];
        tensor->name = ree_arena_strdup(arena, entry->string);
        if (!tensor->name) return ree_no_memory(err);
        if (read_tensor(entry, data_size, tensor, err) != REE_OK)
            return ree_fail_prefix(err, "tensor '%.128s'", tensor->name);
    }
    qsort(tensors, n, sizeof *tensors, by_offset);
    REE_TRY(check_cover(tensors, n, data_size, err));
    for (size_t i = 0; i < n; i++)
        tensors[i].offset += data_start;
    *out = tensors;
    *out_n = n;
    return REE_OK;
}

// Reads and parses the header. Its text begins at byte 8 and has *out_size bytes. Release *out with
// cJSON_Delete.
static enum ree_status read_header(const unsigned char *bytes, size_t size, cJSON **out,
                                   uint64_t *out_size, struct ree_error *err) {
    *out = NULL;
    if (size < 8) return ree_fail(err, REE_INVALID, "it is too short for a safetensors file");
    uint64_t header_size = 0;
    for (int i = 7; i >= 0; i--)
        header_size = header_size << 8 | bytes[i];
    if (header_size > size - 8)
        return ree_fail(err, REE_INVALID,
                        "its header has %llu bytes, but the file has %zu; it is truncated, or not "
                        "a safetensors file",
                        (unsigned long long)header_size, size);
    if (header_size > REE_SAFETENSORS_MAX_HEADER)
        return ree_fail(err, REE_UNSUPPORTED, "its header has %llu bytes; the maximum is %d",
                        (unsigned long long)header_size, REE_SAFETENSORS_MAX_HEADER);
    // Strict parsing: a name with \u0000 would be cut off and could equal another name.
    enum ree_status status = ree_json_parse_strict(bytes + 8, (size_t)header_size, out, err);
    if (status == REE_OK && !cJSON_IsObject(*out)) {
        cJSON_Delete(*out);
        *out = NULL;
        status = ree_fail(err, REE_INVALID, "it is not a JSON object");
    }
    *out_size = header_size;
    return status == REE_OK ? REE_OK : ree_fail_prefix(err, "its header");
}

enum ree_status ree_safetensors_parse(const unsigned char *bytes, size_t size,
                                      struct ree_arena *arena, struct ree_stored_tensor **out,
                                      size_t *out_n, struct ree_error *err) {
    cJSON *header;
    uint64_t n;
    *out = NULL;
    *out_n = 0;
    REE_TRY(read_header(bytes, size, &header, &n, err));
    enum ree_status status = read_entries(header, size - 8 - n, 8 + n, arena, out, out_n, err);
    cJSON_Delete(header);
    return status;
}

enum ree_status ree_safetensors_metadata(const unsigned char *bytes, size_t size, const char *key,
                                         struct ree_arena *arena, const char **out,
                                         struct ree_error *err) {
    cJSON *header;
    uint64_t n;
    *out = NULL;
    REE_TRY(read_header(bytes, size, &header, &n, err));
    const char *text =
        cJSON_GetStringValue(ree_json_find(ree_json_find(header, "__metadata__"), key));
    if (text) *out = ree_arena_strdup(arena, text);
    cJSON_Delete(header);
    return text && !*out ? ree_no_memory(err) : REE_OK;
}
