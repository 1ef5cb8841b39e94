#include "text/json.h"

#include "text/utf8.h"

#include <stdlib.h>

// An escape \u0000: a backslash that is not itself escaped.
static bool has_nul(const char *text, size_t n) {
    const char *at = text, *end = text + n;
    while ((at = memmem(at, (size_t)(end - at), "\\u0000", 6))) {
        size_t slashes = 0;
        while (at - slashes > text && at[-(ptrdiff_t)slashes - 1] == '\\')
            slashes++;
        if (slashes % 2 == 0) return true;
        at += 6;
    }
    return false;
}

enum ree_status ree_json_parse(const char *text, size_t nbytes, cJSON **out_json,
                               struct ree_error *err) {
    *out_json = NULL;
    if (memchr(text, 0, nbytes) || has_nul(text, nbytes))
        return ree_fail(err, REE_UNSUPPORTED, "JSON with the character U+0000 in it");
    size_t valid = ree_utf8_valid_prefix(text, nbytes);
    if (valid != nbytes) return ree_fail(err, REE_INVALID, "not UTF-8 at byte %zu", valid);
    const char *end = NULL;
    cJSON *json = cJSON_ParseWithLengthOpts(text, nbytes, &end, false);
    if (!json) {
        size_t place =
            end && end >= text && (size_t)(end - text) <= nbytes ? (size_t)(end - text) : 0;
        return ree_fail(err, REE_INVALID, "not JSON: see byte %zu of %zu", place, nbytes);
    }
    for (; end < text + nbytes; end++) {
        if (*end == ' ' || *end == '\t' || *end == '\r' || *end == '\n') continue;
        cJSON_Delete(json);
        return ree_fail(err, REE_INVALID, "not JSON: something follows at byte %zu of %zu",
                        (size_t)(end - text), nbytes);
    }
    *out_json = json;
    return REE_OK;
}

const cJSON *ree_json_get(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNull(item) ? NULL : item;
}

enum ree_status ree_json_want(const cJSON *object, const char *name, const cJSON **out,
                              struct ree_error *err) {
    *out = ree_json_get(object, name);
    if (!*out) return ree_fail(err, REE_INVALID, "'%s' is missing", name);
    return REE_OK;
}

enum ree_status ree_json_copy(struct ree_arena *arena, const char *text, struct ree_str *out,
                              struct ree_error *err) {
    out->size = strlen(text);
    out->data = ree_arena_strndup(arena, text, out->size);
    if (!out->data) return ree_fail(err, REE_NO_MEMORY, "no memory for a string");
    return REE_OK;
}

enum ree_status ree_json_string(struct ree_arena *arena, const cJSON *object, const char *name,
                                const char *fallback, struct ree_str *out, struct ree_error *err) {
    const cJSON *item = ree_json_get(object, name);
    if (item && !cJSON_IsString(item))
        return ree_fail(err, REE_INVALID, "'%s' is not a string", name);
    const char *text = item ? item->valuestring : fallback;
    *out = (struct ree_str){NULL, 0};
    return text ? ree_json_copy(arena, text, out, err) : REE_OK;
}

enum ree_status ree_json_bool(const cJSON *object, const char *name, bool fallback, uint32_t *out,
                              struct ree_error *err) {
    const cJSON *item = ree_json_get(object, name);
    *out = item ? cJSON_IsTrue(item) : fallback;
    if (item && !cJSON_IsBool(item))
        return ree_fail(err, REE_INVALID, "'%s' is neither true nor false", name);
    return REE_OK;
}

static bool whole(const cJSON *item, uint32_t limit, uint32_t *out) {
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || !(item->valuedouble < limit))
        return false;
    *out = (uint32_t)item->valuedouble;
    return (double)*out == item->valuedouble;
}

enum ree_status ree_json_u32(const cJSON *object, const char *name, uint32_t fallback,
                             uint32_t *out, struct ree_error *err) {
    const cJSON *item = ree_json_get(object, name);
    *out = fallback;
    if (item && !whole(item, 1u << 31, out))
        return ree_fail(err, REE_INVALID, "'%s' is not a whole number from 0", name);
    return REE_OK;
}

enum ree_status ree_json_id(const cJSON *number, int32_t *out, struct ree_error *err) {
    uint32_t id;
    if (!whole(number, REE_VOCAB_MAX, &id))
        return ree_fail(err, REE_INVALID, "an id is not a whole number from 0 to %u",
                        REE_VOCAB_MAX - 1);
    *out = (int32_t)id;
    return REE_OK;
}
