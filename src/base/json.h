// Parses untrusted JSON with cJSON, with checks. If a key is absent or null, a getter does not
// change *inout, which therefore holds the default. A value that is present must have the right
// type and be in range; otherwise the getter fails with REE_INVALID.
#ifndef REE_BASE_JSON_H
#define REE_BASE_JSON_H

#include <cjson/cJSON.h>

#include "base/status.h"

// The text must consist of exactly one value. Release *out with cJSON_Delete. Fails with
// REE_INVALID if the text is not JSON, and with REE_NO_MEMORY if cJSON could not allocate.
enum ree_status ree_json_parse(const void *text, size_t size, cJSON **out, struct ree_error *err);
// Like ree_json_parse, for texts that are hashed: also rejects what cJSON accepts although RFC 8259
// forbids it (01, a control character in a string), \u0000 in a string, and more than 64 levels.
// base/canonical_json.h checks UTF-8 and duplicate keys.
enum ree_status ree_json_parse_strict(const void *text, size_t size, cJSON **out,
                                      struct ree_error *err);
enum ree_status ree_json_parse_object(const void *text, size_t size, cJSON **out,
                                      struct ree_error *err); // the value must be an object

// Whether the text is JSON according to both RFC 8259 and cJSON; false for some texts that only one
// of them accepts. Does not allocate.
bool ree_json_is_well_formed(const char *text, size_t size);

// Adds an item to an array or an object, which takes ownership. Returns false, and deletes the
// item, if memory is exhausted. Each argument may be NULL, which counts as an earlier allocation
// failure.
bool ree_json_put(cJSON *array, cJSON *item);
bool ree_json_put_as(cJSON *object, const char *key, cJSON *item);

const cJSON *ree_json_find(const cJSON *object, const char *key); // NULL: absent or null

// Whether the item is an integer in [min, max] of magnitude at most 2^53; if so, sets *out.
bool ree_json_is_whole(const cJSON *item, int64_t min, int64_t max, int64_t *out);

enum ree_status ree_json_int(const cJSON *object, const char *key, int64_t min, int64_t max,
                             int64_t *inout, struct ree_error *err);
// Like ree_json_int, but fails if the key is absent.
enum ree_status ree_json_need_int(const cJSON *object, const char *key, int64_t min, int64_t max,
                                  int64_t *out, struct ree_error *err);
// A finite number in [min, max].
enum ree_status ree_json_number(const cJSON *object, const char *key, double min, double max,
                                double *inout, struct ree_error *err);
enum ree_status ree_json_bool(const cJSON *object, const char *key, bool *inout,
                              struct ree_error *err);
// The string is borrowed from the object.
enum ree_status ree_json_string(const cJSON *object, const char *key, const char **inout,
                                struct ree_error *err);

#endif
