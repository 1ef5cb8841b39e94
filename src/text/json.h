// Parses JSON, and reads members of JSON objects with type checks. Error messages name the member;
// the caller adds the names of the file and of the object.
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
// Returns the object's member of this name, or NULL if it does not exist or is null.
const cJSON *ree_text_json_get(const cJSON *object, const char *name);
// Like ree_text_json_get, but fails with REE_INVALID if the member does not exist or is null.
enum ree_status ree_text_json_want(const cJSON *object, const char *name, const cJSON **out,
                                   struct ree_error *err);
// Copies a string member into the arena. If the member does not exist, copies `fallback`; if that
// is NULL too, out->data is NULL. Fails with REE_INVALID if the member is not a string.
enum ree_status ree_text_json_string(struct ree_arena *arena, const cJSON *object, const char *name,
                                     const char *fallback, struct ree_str *out,
                                     struct ree_error *err);
enum ree_status ree_text_json_bool(const cJSON *object, const char *name, bool fallback,
                                   uint32_t *out, struct ree_error *err);
enum ree_status ree_text_json_u32(const cJSON *object, const char *name, uint32_t fallback,
                                  uint32_t *out, struct ree_error *err);
// Reads a JSON number as a token id. Fails with REE_INVALID unless it is an integer from 0 to
// REE_VOCAB_MAX - 1.
enum ree_status ree_text_json_id(const cJSON *number, int32_t *out, struct ree_error *err);
// Replaces each REE_TEXT_JSON_NUL in a parsed string by U+0000, in place. Returns the new length in
// bytes.
size_t ree_text_json_restore(char *text);
// Copies a parsed string into the arena, as ree_text_json_restore does: with U+0000 in place of
// REE_TEXT_JSON_NUL.
enum ree_status ree_text_json_copy(struct ree_arena *arena, const char *text, struct ree_str *out,
                                   struct ree_error *err);

#endif
