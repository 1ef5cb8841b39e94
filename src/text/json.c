#include "text/json.h"

#include "base/json.h"
#include "base/strbuf.h"
#include "text/utf8.h"

#include <stdlib.h>

// Finds the next escape \u0000 whose backslash is not itself escaped. NULL: none.
static const char *find_nul(const char *text, const char *at, const char *end) {
    while (at < end && (at = memmem(at, (size_t)(end - at), "\\u0000", 6))) {
        size_t slashes = 0;
        while (at - slashes > text && at[-(ptrdiff_t)slashes - 1] == '\\')
            slashes++;
        if (slashes % 2 == 0) return at;
        at += 6;
    }
    return NULL;
}

static void replace_nuls(struct ree_strbuf *out, const char *text, size_t nbytes) {
    const char *done = text, *end = text + nbytes, *at = text;
    while ((at = find_nul(text, at, end))) {
        ree_strbuf_append(out, done, (size_t)(at - done));
        ree_strbuf_append(out, REE_TEXT_JSON_NUL, 2);
        done = at += 6;
    }
    ree_strbuf_append(out, done, (size_t)(end - done));
}

size_t ree_text_json_restore(char *text) {
    size_t n = strlen(text), kept = 0;
    if (!strstr(text, REE_TEXT_JSON_NUL)) return n;
    for (size_t i = 0; i < n; i++) {
        bool nul = text[i] == '\xC0';
        text[kept++] = nul ? 0 : text[i];
        i += nul;
    }
    text[kept] = 0;
    return kept;
}

enum ree_status ree_text_json_parse(const char *text, size_t nbytes, cJSON **out_json,
                                    struct ree_error *err) {
    *out_json = NULL;
    size_t valid = ree_utf8_valid_prefix(text, nbytes);
    if (valid != nbytes) return ree_fail(err, REE_INVALID, "not UTF-8 at byte %zu", valid);
    if (find_nul(text, text, text + nbytes)) {
        struct ree_strbuf replaced;
        ree_strbuf_init(&replaced);
        replace_nuls(&replaced, text, nbytes);
        enum ree_status status = replaced.failed
                                     ? ree_fail(err, REE_NO_MEMORY, "no memory for JSON")
                                     : ree_json_parse(replaced.data, replaced.size, out_json, err);
        ree_strbuf_finish(&replaced);
        return status;
    }
    return ree_json_parse(text, nbytes, out_json, err);
}

const cJSON *ree_text_json_get(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNull(item) ? NULL : item;
}

enum ree_status ree_text_json_want(const cJSON *object, const char *name, const cJSON **out,
                                   struct ree_error *err) {
    *out = ree_text_json_get(object, name);
    if (!*out) return ree_fail(err, REE_INVALID, "'%s' is missing", name);
    return REE_OK;
}

enum ree_status ree_text_json_copy(struct ree_arena *arena, const char *text, struct ree_str *out,
                                   struct ree_error *err) {
    char *copy = ree_arena_strdup(arena, text);
    if (!copy) return ree_fail(err, REE_NO_MEMORY, "no memory for a string");
    *out = (struct ree_str){copy, ree_text_json_restore(copy)};
    return REE_OK;
}

enum ree_status ree_text_json_string(struct ree_arena *arena, const cJSON *object, const char *name,
                                     const char *fallback, struct ree_str *out,
                                     struct ree_error *err) {
    const cJSON *item = ree_text_json_get(object, name);
    if (item && !cJSON_IsString(item))
        return ree_fail(err, REE_INVALID, "'%s' is not a string", name);
    const char *text = item ? item->valuestring : fallback;
    *out = (struct ree_str){NULL, 0};
    return text ? ree_text_json_copy(arena, text, out, err) : REE_OK;
}

enum ree_status ree_text_json_bool(const cJSON *object, const char *name, bool fallback,
                                   uint32_t *out, struct ree_error *err) {
    const cJSON *item = ree_text_json_get(object, name);
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

enum ree_status ree_text_json_u32(const cJSON *object, const char *name, uint32_t fallback,
                                  uint32_t *out, struct ree_error *err) {
    const cJSON *item = ree_text_json_get(object, name);
    *out = fallback;
    if (item && !whole(item, 1u << 31, out))
        return ree_fail(err, REE_INVALID, "'%s' is not a non-negative integer", name);
    return REE_OK;
}

enum ree_status ree_text_json_id(const cJSON *number, int32_t *out, struct ree_error *err) {
    uint32_t id;
    if (!whole(number, REE_VOCAB_MAX, &id))
        return ree_fail(err, REE_INVALID, "an id is not an integer from 0 to %u",
                        REE_VOCAB_MAX - 1);
    *out = (int32_t)id;
    return REE_OK;
}
