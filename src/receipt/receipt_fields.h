// Strict access to the members of JSON objects, for the decoders of receipts, checkpoints and
// requests. A member with the value null counts as present.
#ifndef REE_RECEIPT_RECEIPT_FIELDS_H
#define REE_RECEIPT_RECEIPT_FIELDS_H

#include "base/arena.h"
#include "base/json.h"

// An object of the file and its name in messages, for example "body.model". Decoded strings and
// arrays are copied into the arena.
struct ree_fields {
    const cJSON *json;
    const char *name;
    struct ree_arena *arena;
};

const cJSON *ree_field(const struct ree_fields *part, const char *key); // NULL: no such member
// Fails with REE_INVALID: "NAME.KEY is not EXPECTED".
enum ree_status ree_fields_wrong(const struct ree_fields *part, const char *key,
                                 const char *expected, struct ree_error *err);
#ifdef __clang_analyzer__
#define ree_fields_wrong(...) ree_never_ok(ree_fields_wrong(__VA_ARGS__)) // base/status.h
#endif
// Checks that it is an object, that it has all members of `required` (names separated by spaces),
// and that it has no others than these and those of `optional` (NULL: any others are allowed).
enum ree_status ree_fields_check(const struct ree_fields *part, const char *required,
                                 const char *optional, struct ree_error *err);
// Opens the member `key`, which must be an object, and checks it with ree_fields_check.
enum ree_status ree_fields_open(const struct ree_fields *outer, const char *key, const char *name,
                                const char *required, const char *optional, struct ree_fields *out,
                                struct ree_error *err);

// These functions leave *out unchanged if the member does not exist. ree_fields_check checks that
// the required ones exist.
enum ree_status ree_field_string(const struct ree_fields *part, const char *key, const char **out,
                                 struct ree_error *err);
// Exactly size - 1 lower-case hexadecimal digits; `out` has `size` bytes.
enum ree_status ree_field_hex(const struct ree_fields *part, const char *key, char *out,
                              size_t size, struct ree_error *err);
enum ree_status ree_field_whole(const struct ree_fields *part, const char *key, int64_t min,
                                int64_t max, int64_t *out, struct ree_error *err);
enum ree_status ree_field_ids(const struct ree_fields *part, const char *key, const int32_t **out,
                              size_t *out_n, struct ree_error *err);

// These functions fail if the member does not exist.

// A string that must be one of names[n]; *out receives its index.
enum ree_status ree_field_name(const struct ree_fields *part, const char *key,
                               const char *const *names, size_t n, size_t *out,
                               struct ree_error *err);
// A binary32 number from 0 (above 0 unless `zero`) to max.
enum ree_status ree_field_float(const struct ree_fields *part, const char *key, bool zero,
                                double max, float *out, struct ree_error *err);
// Allocates `size` bytes for each item.
enum ree_status ree_field_array(const struct ree_fields *part, const char *key, size_t size,
                                const cJSON **out_first, void **out, size_t *out_n,
                                struct ree_error *err);
enum ree_status ree_field_strings(const struct ree_fields *part, const char *key,
                                  const char *const **out, size_t *out_n, struct ree_error *err);

#endif
