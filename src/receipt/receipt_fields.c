#include "receipt/receipt_fields.h"

#include <stdio.h>
#include <string.h>

#undef ree_fields_wrong // the header wraps it for the clang analyzer
enum ree_status ree_fields_wrong(const struct ree_fields *part, const char *key,
                                 const char *expected, struct ree_error *err) {
    return ree_fail(err, REE_INVALID, "%s.%s is not %s", part->name, key, expected);
}

const cJSON *ree_field(const struct ree_fields *part, const char *key) {
    return cJSON_GetObjectItemCaseSensitive(part->json, key);
}

// True if `words`, a list separated by spaces, contains `word`.
static bool has_word(const char *words, const char *word) {
    size_t n = strlen(word);
    for (const char *at = words; n && (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == 0 || at[n] == ' '))
            return !strchr(word, ' ');
    return false;
}

enum ree_status ree_fields_check(const struct ree_fields *part, const char *required,
                                 const char *optional, struct ree_error *err) {
    if (!cJSON_IsObject(part->json))
        return ree_fail(err, REE_INVALID, "%s is not an object", part->name);
    for (const char *at = required; *at;) {
        char key[32];
        size_t n = strcspn(at, " ");
        snprintf(key, sizeof key, "%.*s", (int)n, at);
        if (!ree_field(part, key))
            return ree_fail(err, REE_INVALID, "%s.%s is missing", part->name, key);
        at += n + (at[n] == ' ');
    }
    for (const cJSON *item = part->json->child; optional && item; item = item->next)
        if (!has_word(required, item->string) && !has_word(optional, item->string))
            return ree_fail(err, REE_INVALID, "%s.%.64s is unknown", part->name, item->string);
    return REE_OK;
}

enum ree_status ree_fields_open(const struct ree_fields *outer, const char *key, const char *name,
                                const char *required, const char *optional, struct ree_fields *out,
                                struct ree_error *err) {
    *out = (struct ree_fields){ree_field(outer, key), name, outer->arena};
    return ree_fields_check(out, required, optional, err);
}

enum ree_status ree_field_string(const struct ree_fields *part, const char *key, const char **out,
                                 struct ree_error *err) {
    const cJSON *item = ree_field(part, key);
    if (!item) return REE_OK;
    if (!cJSON_IsString(item)) return ree_fields_wrong(part, key, "a string", err);
    *out = ree_arena_strdup(part->arena, item->valuestring);
    return *out ? REE_OK : ree_no_memory(err);
}

enum ree_status ree_field_hex(const struct ree_fields *part, const char *key, char *out,
                              size_t size, struct ree_error *err) {
    const cJSON *item = ree_field(part, key);
    if (!item) return REE_OK;
    const char *hex = cJSON_GetStringValue(item);
    if (!hex || strlen(hex) != size - 1 || strspn(hex, "0123456789abcdef") != size - 1)
        return ree_fail(err, REE_INVALID, "%s.%s is not %zu hexadecimal digits in lower case",
                        part->name, key, size - 1);
    memcpy(out, hex, size);
    return REE_OK;
}

enum ree_status ree_field_whole(const struct ree_fields *part, const char *key, int64_t min,
                                int64_t max, int64_t *out, struct ree_error *err) {
    const cJSON *item = ree_field(part, key);
    if (!item || ree_json_is_whole(item, min, max, out)) return REE_OK;
    return ree_fail(err, REE_INVALID, "%s.%s is not an integer from %lld to %lld", part->name, key,
                    (long long)min, (long long)max);
}

enum ree_status ree_field_name(const struct ree_fields *part, const char *key,
                               const char *const *names, size_t n, size_t *out,
                               struct ree_error *err) {
    const char *value = cJSON_GetStringValue(ree_field(part, key));
    for (size_t i = 0; value && i < n; i++) {
        *out = i;
        if (strcmp(value, names[i]) == 0) return REE_OK;
    }
    if (!value) return ree_fields_wrong(part, key, "a string", err);
    return ree_fail(err, REE_INVALID, "%s.%s is '%.64s', which this version of ree does not know",
                    part->name, key, value);
}

// The value must be a binary32 number, so that encoding it again gives the same text.
enum ree_status ree_field_float(const struct ree_fields *part, const char *key, bool zero,
                                double max, float *out, struct ree_error *err) {
    const cJSON *item = ree_field(part, key);
    double value = cJSON_GetNumberValue(item);
    if (!(value >= 0 && value <= max) || (value == 0 && !zero) || (double)(float)value != value)
        return ree_fail(err, REE_INVALID, "%s.%s is not a binary32 number %s 0 to %g", part->name,
                        key, zero ? "from" : "above", max);
    *out = (float)value;
    return REE_OK;
}

enum ree_status ree_field_array(const struct ree_fields *part, const char *key, size_t size,
                                const cJSON **out_first, void **out, size_t *out_n,
                                struct ree_error *err) {
    const cJSON *array = ree_field(part, key);
    if (!cJSON_IsArray(array)) return ree_fields_wrong(part, key, "an array", err);
    *out_n = 0;
    for (const cJSON *item = array->child; item; item = item->next)
        ++*out_n;
    *out_first = array->child;
    *out = ree_arena_alloc_array(part->arena, *out_n, size);
    return *out ? REE_OK : ree_no_memory(err);
}

enum ree_status ree_field_ids(const struct ree_fields *part, const char *key, const int32_t **out,
                              size_t *out_n, struct ree_error *err) {
    const cJSON *item;
    void *memory;
    int64_t id;
    if (!ree_field(part, key)) return REE_OK;
    REE_TRY(ree_field_array(part, key, sizeof(int32_t), &item, &memory, out_n, err));
    int32_t *ids = memory;
    for (size_t i = 0; item; i++, item = item->next) {
        if (!ree_json_is_whole(item, 0, INT32_MAX, &id))
            return ree_fail(err, REE_INVALID, "%s.%s[%zu] is not a token id", part->name, key, i);
        ids[i] = (int32_t)id;
    }
    *out = ids;
    return REE_OK;
}

enum ree_status ree_field_strings(const struct ree_fields *part, const char *key,
                                  const char *const **out, size_t *out_n, struct ree_error *err) {
    const cJSON *item;
    void *memory;
    REE_TRY(ree_field_array(part, key, sizeof(char *), &item, &memory, out_n, err));
    const char **strings = memory;
    for (size_t i = 0; item; i++, item = item->next) {
        if (!cJSON_IsString(item)) return ree_fields_wrong(part, key, "an array of strings", err);
        strings[i] = ree_arena_strdup(part->arena, item->valuestring);
        if (!strings[i]) return ree_no_memory(err);
    }
    *out = strings;
    return REE_OK;
}

enum ree_status ree_field_digits(const struct ree_fields *part, const char *key, uint64_t *out,
                                 struct ree_error *err) {
    const char *text = cJSON_GetStringValue(ree_field(part, key));
    bool ok = text && *text && (text[0] != '0' || !text[1]);
    *out = 0;
    for (; ok && *text; text++)
        ok = *text >= '0' && *text <= '9' && !__builtin_mul_overflow(*out, 10, out) &&
             !__builtin_add_overflow(*out, (uint64_t)(*text - '0'), out);
    return ok ? REE_OK : ree_fields_wrong(part, key, "a string of a number below 2^64", err);
}
