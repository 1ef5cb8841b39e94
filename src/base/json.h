// Parses untrusted JSON with cJSON, with checks. If a key is absent or null, a getter does not
// change *inout, which therefore holds the default. A value that is present must have the right
// type and be in range; otherwise the getter fails with REE_INVALID.
#ifndef REE_BASE_JSON_H
#define REE_BASE_JSON_H

#include <cjson/cJSON.h>

#include "base/status.h"

// One reader for every JSON text: ree_json_scan checks it, then cJSON makes values of it. Readers
// differ only in what a text may have at most. No limit depends on memory that is free.
struct ree_json_limits {
    uint32_t depth; // levels of arrays and objects; at most 1000
    size_t values;
    size_t long_numbers; // numbers that are not integers of at most 15 characters
    bool allows_bom;     // a byte order mark in front of the text is skipped
};
extern const struct ree_json_limits
    ree_json_lenient;                                // files of other programs: configurations, ...
extern const struct ree_json_limits ree_json_strict; // texts that are hashed: receipts, ...

// Fails with REE_INVALID if the text does not consist of exactly one value according to RFC 8259,
// has a \u0000 in a string, or exceeds the limits. Does not allocate. base/canonical_json.h checks
// UTF-8 and duplicate keys.
enum ree_status ree_json_scan(const char *text, size_t size, const struct ree_json_limits *limits,
                              struct ree_error *err);
// Release *out with cJSON_Delete. Fails like ree_json_scan, and with REE_NO_MEMORY if cJSON could
// not allocate.
enum ree_status ree_json_read(const void *text, size_t size, const struct ree_json_limits *limits,
                              cJSON **out, struct ree_error *err);
// ree_json_read with ree_json_lenient and with ree_json_strict.
enum ree_status ree_json_parse(const void *text, size_t size, cJSON **out, struct ree_error *err);
enum ree_status ree_json_parse_strict(const void *text, size_t size, cJSON **out,
                                      struct ree_error *err);
enum ree_status ree_json_parse_object(const void *text, size_t size, cJSON **out,
                                      struct ree_error *err); // lenient; it must be an object

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
