#include "base/json.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WHOLE 9007199254740992.0 // 2^53: doubles represent every integer up to this

enum ree_status ree_json_read(const void *text, size_t size, const struct ree_json_limits *limits,
                              cJSON **out, struct ree_error *err) {
    *out = NULL;
    REE_TRY(ree_json_scan(text, size, limits, err));
    // cJSON requires a NUL at the end.
    char *copy = ree_alloc(size + 1);
    if (!copy) return ree_no_memory(err);
    if (size) memcpy(copy, text, size);
    copy[size] = 0;
    *out = cJSON_ParseWithLengthOpts(copy, size + 1, NULL, true);
    ree_free(copy);
    // cJSON reads every text that ree_json_scan accepts (tests/base/json_grammar_test.c), so it can
    // only fail because memory is exhausted.
    if (!*out) return ree_fail(err, REE_NO_MEMORY, "out of memory for its %zu bytes", size);
    return REE_OK;
}

enum ree_status ree_json_parse(const void *text, size_t size, cJSON **out, struct ree_error *err) {
    return ree_json_read(text, size, &ree_json_lenient, out, err);
}

enum ree_status ree_json_parse_strict(const void *text, size_t size, cJSON **out,
                                      struct ree_error *err) {
    return ree_json_read(text, size, &ree_json_strict, out, err);
}

enum ree_status ree_json_parse_object(const void *text, size_t size, cJSON **out,
                                      struct ree_error *err) {
    REE_TRY(ree_json_parse(text, size, out, err));
    if (cJSON_IsObject(*out)) return REE_OK;
    cJSON_Delete(*out);
    *out = NULL;
    return ree_fail(err, REE_INVALID, "it is not a JSON object");
}

bool ree_json_put(cJSON *array, cJSON *item) {
    if (item && cJSON_AddItemToArray(array, item)) return true;
    cJSON_Delete(item);
    return false;
}

bool ree_json_put_as(cJSON *object, const char *key, cJSON *item) {
    if (item && cJSON_AddItemToObject(object, key, item)) return true;
    cJSON_Delete(item);
    return false;
}

const cJSON *ree_json_find(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return item && !cJSON_IsNull(item) ? item : NULL;
}

bool ree_json_is_whole(const cJSON *item, int64_t min, int64_t max, int64_t *out) {
    if (!cJSON_IsNumber(item)) return false;
    double value = item->valuedouble;
    if (!(value >= -MAX_WHOLE && value <= MAX_WHOLE) || value != floor(value)) return false;
    int64_t whole = (int64_t)value;
    if (whole < min || whole > max) return false;
    *out = whole;
    return true;
}

enum ree_status ree_json_int(const cJSON *object, const char *key, int64_t min, int64_t max,
                             int64_t *inout, struct ree_error *err) {
    const cJSON *item = ree_json_find(object, key);
    if (!item || ree_json_is_whole(item, min, max, inout)) return REE_OK;
    if (cJSON_IsNumber(item))
        return ree_fail(err, REE_INVALID, "'%s' is %.17g, expected an integer from %lld to %lld",
                        key, item->valuedouble, (long long)min, (long long)max);
    return ree_fail(err, REE_INVALID, "'%s' is not a number", key);
}

enum ree_status ree_json_need_int(const cJSON *object, const char *key, int64_t min, int64_t max,
                                  int64_t *out, struct ree_error *err) {
    if (!ree_json_find(object, key)) return ree_fail(err, REE_INVALID, "'%s' is missing", key);
    return ree_json_int(object, key, min, max, out, err);
}

enum ree_status ree_json_number(const cJSON *object, const char *key, double min, double max,
                                double *inout, struct ree_error *err) {
    const cJSON *item = ree_json_find(object, key);
    if (!item) return REE_OK;
    if (!cJSON_IsNumber(item)) return ree_fail(err, REE_INVALID, "'%s' is not a number", key);
    double value = item->valuedouble;
    if (!isfinite(value) || value < min || value > max)
        return ree_fail(err, REE_INVALID, "'%s' is %.17g, expected a number from %g to %g", key,
                        value, min, max);
    *inout = value;
    return REE_OK;
}

enum ree_status ree_json_bool(const cJSON *object, const char *key, bool *inout,
                              struct ree_error *err) {
    const cJSON *item = ree_json_find(object, key);
    if (!item) return REE_OK;
    if (!cJSON_IsBool(item)) return ree_fail(err, REE_INVALID, "'%s' is not true or false", key);
    *inout = cJSON_IsTrue(item);
    return REE_OK;
}

enum ree_status ree_json_string(const cJSON *object, const char *key, const char **inout,
                                struct ree_error *err) {
    const cJSON *item = ree_json_find(object, key);
    if (!item) return REE_OK;
    if (!cJSON_IsString(item)) return ree_fail(err, REE_INVALID, "'%s' is not a string", key);
    *inout = item->valuestring;
    return REE_OK;
}
