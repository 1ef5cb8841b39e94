// Access to members of JSON objects, with type checks. Messages name the member; the caller adds
// the names of the file and of the object.
#ifndef REE_TEXT_JSON_H
#define REE_TEXT_JSON_H

#include "text/vocab.h"

#include <cjson/cJSON.h>

// cJSON ends strings at U+0000. To preserve a \u0000 in a string, parsing replaces it by these
// bytes, which do not occur in UTF-8. ree_text_json_restore reverses this.
#define REE_TEXT_JSON_NUL "\xC0\x80"

// Parses a whole text. Strings that may contain \u0000 must be read with ree_text_json_restore or
// ree_text_json_copy. Release *out_json with cJSON_Delete.
enum ree_status ree_text_json_parse(const char *text, size_t nbytes, cJSON **out_json,
                                    struct ree_error *err);
// Returns a member, or NULL if it does not exist or is null.
const cJSON *ree_text_json_get(const cJSON *object, const char *name);
// Like ree_text_json_get, but fails if the member does not exist.
enum ree_status ree_text_json_want(const cJSON *object, const char *name, const cJSON **out,
                                   struct ree_error *err);
// Copies a string member into the arena. If it does not exist, `fallback` is copied (NULL: *out has
// NULL data).
enum ree_status ree_text_json_string(struct ree_arena *arena, const cJSON *object, const char *name,
                                     const char *fallback, struct ree_str *out,
                                     struct ree_error *err);
enum ree_status ree_text_json_bool(const cJSON *object, const char *name, bool fallback,
                                   uint32_t *out, struct ree_error *err);
enum ree_status ree_text_json_u32(const cJSON *object, const char *name, uint32_t fallback,
                                  uint32_t *out, struct ree_error *err);
// Reads a number as an id: an integer below REE_VOCAB_MAX.
enum ree_status ree_text_json_id(const cJSON *number, int32_t *out, struct ree_error *err);
// Restores the NULs in a string of a parsed file, in place, and returns its length in bytes.
size_t ree_text_json_restore(char *text);
// Copies a parsed string into the arena, with its NULs restored.
enum ree_status ree_text_json_copy(struct ree_arena *arena, const char *text, struct ree_str *out,
                                   struct ree_error *err);

#endif
