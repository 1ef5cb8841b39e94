// Strict access to the members of JSON objects, for the decoders of receipts, checkpoints and
// requests. A member with the value null exists.
#ifndef REE_RECEIPT_RECEIPT_FIELDS_H
#define REE_RECEIPT_RECEIPT_FIELDS_H

#include "base/arena.h"
#include "base/json.h"

// A JSON object and its name in messages, for example "body.model". The functions below copy
// decoded strings and arrays into the arena.
struct ree_fields {
    const cJSON *json;
    const char *name;
    struct ree_arena *arena;
};

// Returns the member `key`, borrowed; NULL if it does not exist.
const cJSON *ree_field(const struct ree_fields *part, const char *key);
// Always fails, with REE_INVALID and the message "NAME.KEY is not EXPECTED".
enum ree_status ree_fields_wrong(const struct ree_fields *part, const char *key,
                                 const char *expected, struct ree_error *err);
#ifdef __clang_analyzer__
#define ree_fields_wrong(...) ree_never_ok(ree_fields_wrong(__VA_ARGS__)) // base/status.h
#endif
// Checks that `part` is a JSON object and has all members that `required` lists (names separated by
// spaces). Unless `optional` is NULL, also checks that it has no members other than those in
// `required` and `optional`. Otherwise fails with REE_INVALID.
enum ree_status ree_fields_check(const struct ree_fields *part, const char *required,
                                 const char *optional, struct ree_error *err);
// Sets *out to the member `key` of `outer`, with the name `name` in messages, and checks it with
// ree_fields_check; the member must be an object.
enum ree_status ree_fields_open(const struct ree_fields *outer, const char *key, const char *name,
                                const char *required, const char *optional, struct ree_fields *out,
                                struct ree_error *err);

// The next four functions decode the member `key`, and fail with REE_INVALID if it has another type
// or is out of range. If the member does not exist, they succeed and leave *out unchanged:
// ree_fields_check has already checked that required members exist.
enum ree_status ree_field_string(const struct ree_fields *part, const char *key, const char **out,
                                 struct ree_error *err);
// Decodes a string of exactly size - 1 lower-case hexadecimal digits. `out` has `size` bytes.
enum ree_status ree_field_hex(const struct ree_fields *part, const char *key, char *out,
                              size_t size, struct ree_error *err);
enum ree_status ree_field_whole(const struct ree_fields *part, const char *key, int64_t min,
                                int64_t max, int64_t *out, struct ree_error *err);
enum ree_status ree_field_ids(const struct ree_fields *part, const char *key, const int32_t **out,
                              size_t *out_n, struct ree_error *err);

// The next five functions decode the member `key`, and fail with REE_INVALID if it does not exist,
// has another type or is out of range.

// Decodes a string with the decimal digits of a number below 2^64, without a leading zero.
enum ree_status ree_field_digits(const struct ree_fields *part, const char *key, uint64_t *out,
                                 struct ree_error *err);

// Decodes a string that must equal one of the n `names`; *out receives its index in `names`.
enum ree_status ree_field_name(const struct ree_fields *part, const char *key,
                               const char *const *names, size_t n, size_t *out,
                               struct ree_error *err);
// Decodes a number that binary32 represents exactly, from 0 to `max`; 0 is allowed only if `zero`
// is true.
enum ree_status ree_field_float(const struct ree_fields *part, const char *key, bool zero,
                                double max, float *out, struct ree_error *err);
// Opens an array: *out_n receives its number of items, *out_first its first item (NULL: none), and
// *out memory of `size` bytes for each item.
enum ree_status ree_field_array(const struct ree_fields *part, const char *key, size_t size,
                                const cJSON **out_first, void **out, size_t *out_n,
                                struct ree_error *err);
enum ree_status ree_field_strings(const struct ree_fields *part, const char *key,
                                  const char *const **out, size_t *out_n, struct ree_error *err);

#endif
