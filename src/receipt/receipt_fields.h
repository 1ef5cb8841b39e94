// Members of the objects of a receipt, read strictly: null is no way to leave one out. For
// receipt_decode.c.
#ifndef REE_RECEIPT_RECEIPT_FIELDS_H
#define REE_RECEIPT_RECEIPT_FIELDS_H

#include "base/arena.h"
#include "base/json.h"

// An object of the file, with its name for messages: "body.model". Strings and arrays are copied
// into the arena.
struct ree_fields {
    const cJSON *json;
    const char *name;
    struct ree_arena *arena;
};

const cJSON *ree_field(const struct ree_fields *part, const char *key); // NULL: none
enum ree_status ree_fields_wrong(const struct ree_fields *part, const char *key,
                                 const char *expected, struct ree_error *err);
#ifdef __clang_analyzer__
#define ree_fields_wrong(...) ree_never_ok(ree_fields_wrong(__VA_ARGS__)) // base/status.h
#endif
// It is an object, all of `required` are there (names separated by spaces), and nothing but them
// and `optional` (NULL: anything more).
enum ree_status ree_fields_check(const struct ree_fields *part, const char *required,
                                 const char *optional, struct ree_error *err);
// A member that is an object, checked like that.
enum ree_status ree_fields_open(const struct ree_fields *outer, const char *key, const char *name,
                                const char *required, const char *optional, struct ree_fields *out,
                                struct ree_error *err);

// These leave *out alone where there is no such member; ree_fields_check sees to those that must be
// there.
enum ree_status ree_field_string(const struct ree_fields *part, const char *key, const char **out,
                                 struct ree_error *err);
// size - 1 hexadecimal digits in lower case.
enum ree_status ree_field_hex(const struct ree_fields *part, const char *key, char *out,
                              size_t size, struct ree_error *err);
enum ree_status ree_field_whole(const struct ree_fields *part, const char *key, int64_t min,
                                int64_t max, int64_t *out, struct ree_error *err);
enum ree_status ree_field_ids(const struct ree_fields *part, const char *key, const int32_t **out,
                              size_t *out_n, struct ree_error *err);

// These fail where it is missing.

// A string out of a few: its number.
enum ree_status ree_field_name(const struct ree_fields *part, const char *key,
                               const char *const *names, size_t n, size_t *out,
                               struct ree_error *err);
// A binary32 number from 0 (or, without `zero`, above 0) to max.
enum ree_status ree_field_float(const struct ree_fields *part, const char *key, bool zero,
                                double max, float *out, struct ree_error *err);
// Memory for `size` bytes for each item.
enum ree_status ree_field_array(const struct ree_fields *part, const char *key, size_t size,
                                const cJSON **out_first, void **out, size_t *out_n,
                                struct ree_error *err);
enum ree_status ree_field_strings(const struct ree_fields *part, const char *key,
                                  const char *const **out, size_t *out_n, struct ree_error *err);
// Stop texts: none empty, within REE_RECEIPT_MAX_STOPS and REE_RECEIPT_MAX_STOP_BYTES.
enum ree_status ree_field_stops(const struct ree_fields *part, const char *key,
                                const char *const **out, size_t *out_n, struct ree_error *err);

#endif
