// JSON files of others, read with checks, by way of cJSON. Getters leave *inout alone where the key
// is absent or null, so that it holds the default; what is there has to be of the right type and in
// range.
#ifndef REE_BASE_JSON_H
#define REE_BASE_JSON_H

#include <cjson/cJSON.h>

#include "base/status.h"

// The text has to be one value and nothing else. Release with cJSON_Delete. REE_INVALID: it is not
// JSON; REE_NO_MEMORY if it is and cJSON could not allocate.
enum ree_status ree_json_parse(const void *text, size_t size, cJSON **out, struct ree_error *err);
// The same, with nothing let through that RFC 8259 forbids and cJSON takes (01, a control character
// or \u0000 in a string), and at most 64 levels: for what is hashed. UTF-8 and keys that are there
// twice are left to receipt/canonical.h.
enum ree_status ree_json_parse_strict(const void *text, size_t size, cJSON **out,
                                      struct ree_error *err);
enum ree_status ree_json_parse_object(const void *text, size_t size, cJSON **out,
                                      struct ree_error *err); // one object

// Whether the text is JSON, as RFC 8259 and cJSON both have it: false for some texts that one of
// them accepts. Allocates nothing.
bool ree_json_is_well_formed(const char *text, size_t size);

// Adds an item to an array or an object, or deletes it: false if there was no memory for one of
// the three. Each may be NULL, which is such a failure before.
bool ree_json_put(cJSON *array, cJSON *item);
bool ree_json_put_as(cJSON *object, const char *key, cJSON *item);

const cJSON *ree_json_find(const cJSON *object, const char *key); // NULL: absent or null

// A whole number of at most 2^53 in magnitude.
bool ree_json_is_whole(const cJSON *item, int64_t min, int64_t max, int64_t *out);

enum ree_status ree_json_int(const cJSON *object, const char *key, int64_t min, int64_t max,
                             int64_t *inout, struct ree_error *err);
// The same, absent: an error.
enum ree_status ree_json_need_int(const cJSON *object, const char *key, int64_t min, int64_t max,
                                  int64_t *out, struct ree_error *err);
// A finite number in [min, max].
enum ree_status ree_json_number(const cJSON *object, const char *key, double min, double max,
                                double *inout, struct ree_error *err);
enum ree_status ree_json_bool(const cJSON *object, const char *key, bool *inout,
                              struct ree_error *err);
// The string belongs to the object.
enum ree_status ree_json_string(const cJSON *object, const char *key, const char **inout,
                                struct ree_error *err);

#endif
