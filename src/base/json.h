// Parses untrusted JSON with cJSON, with checks. If a key is absent or null, a getter does not
// change *inout, which therefore holds the default. A value that is present must have the right
// type and be in range; otherwise the getter fails with REE_INVALID.
#ifndef REE_BASE_JSON_H
#define REE_BASE_JSON_H

#include <cjson/cJSON.h>

#include "base/status.h"

// Limits on a JSON text. All texts are read in the same way: ree_json_scan checks the text, then
// cJSON parses it. Only the limits differ. None of them depends on free memory.
struct ree_json_limits {
    uint32_t depth; // maximum nesting of arrays and objects, at most 1000
    size_t values;
    // maximum number of long numbers: those with a point or an exponent, and integers of more than
    // 15 characters
    size_t long_numbers;
    bool allows_bom; // a byte order mark in front of the text is skipped
    bool only_exact; // fails for an integer that is no double, and for more than 17 digits
};
// Limits for files of other programs, such as configurations.
extern const struct ree_json_limits ree_json_lenient;
// Limits for texts that are hashed, such as receipts.
extern const struct ree_json_limits ree_json_strict;

// Fails with REE_INVALID if the text does not consist of exactly one value according to RFC 8259,
// has a \u0000 in a string, or exceeds the limits. Does not allocate. base/canonical_json.h checks
// UTF-8 and duplicate keys.
enum ree_status ree_json_scan(const char *text, size_t size, const struct ree_json_limits *limits,
                              struct ree_error *err);
// Checks and parses a text. Release *out with cJSON_Delete. Fails like ree_json_scan, and with
// REE_NO_MEMORY if cJSON could not allocate.
enum ree_status ree_json_read(const void *text, size_t size, const struct ree_json_limits *limits,
                              cJSON **out, struct ree_error *err);
// ree_json_parse is ree_json_read with ree_json_lenient; ree_json_parse_strict is ree_json_read
// with ree_json_strict.
enum ree_status ree_json_parse(const void *text, size_t size, cJSON **out, struct ree_error *err);
enum ree_status ree_json_parse_strict(const void *text, size_t size, cJSON **out,
                                      struct ree_error *err);
// As ree_json_parse; fails with REE_INVALID if the value is not an object.
enum ree_status ree_json_parse_object(const void *text, size_t size, cJSON **out,
                                      struct ree_error *err);

// Adds an item to an array or an object, which takes ownership. Returns false, and deletes the
// item, if memory is exhausted. Each argument may be NULL, which counts as an earlier allocation
// failure.
bool ree_json_put(cJSON *array, cJSON *item);
bool ree_json_put_as(cJSON *object, const char *key, cJSON *item);

const cJSON *ree_json_find(const cJSON *object, const char *key); // NULL if absent or null

// Returns whether the item is an integer in [min, max] of magnitude at most 2^53; if so, sets *out.
bool ree_json_is_whole(const cJSON *item, int64_t min, int64_t max, int64_t *out);

enum ree_status ree_json_int(const cJSON *object, const char *key, int64_t min, int64_t max,
                             int64_t *inout, struct ree_error *err);
// As ree_json_int, but fails if the key is absent or null.
enum ree_status ree_json_need_int(const cJSON *object, const char *key, int64_t min, int64_t max,
                                  int64_t *out, struct ree_error *err);
// Reads the number under `key`, which must be finite and in [min, max].
enum ree_status ree_json_number(const cJSON *object, const char *key, double min, double max,
                                double *inout, struct ree_error *err);
enum ree_status ree_json_bool(const cJSON *object, const char *key, bool *inout,
                              struct ree_error *err);
// Reads the string under `key`; *inout borrows it from the object.
enum ree_status ree_json_string(const cJSON *object, const char *key, const char **inout,
                                struct ree_error *err);

#endif
