// Members of JSON objects, with their types checked. Messages name the member; who calls adds
// where.
#ifndef REE_TEXT_JSON_H
#define REE_TEXT_JSON_H

#include "text/vocab.h"

#include <cjson/cJSON.h>

// cJSON ends strings at U+0000. So that one which is spelled \u0000 survives, it becomes these
// bytes, which UTF-8 does not have; ree_text_json_restore turns them back.
#define REE_TEXT_JSON_NUL "\xC0\x80"

// Parses a whole text. Strings in which \u0000 is spelled go through ree_text_json_restore or
// ree_text_json_copy. *out_json is released with cJSON_Delete.
enum ree_status ree_text_json_parse(const char *text, size_t nbytes, cJSON **out_json,
                                    struct ree_error *err);
// A member; NULL when there is none or it is null.
const cJSON *ree_text_json_get(const cJSON *object, const char *name);
enum ree_status ree_text_json_want(const cJSON *object, const char *name, const cJSON **out,
                                   struct ree_error *err); // one that must be there
// A string, copied; `fallback` (may be NULL, then *out has NULL) when there is none.
enum ree_status ree_text_json_string(struct ree_arena *arena, const cJSON *object, const char *name,
                                     const char *fallback, struct ree_str *out,
                                     struct ree_error *err);
enum ree_status ree_text_json_bool(const cJSON *object, const char *name, bool fallback,
                                   uint32_t *out, struct ree_error *err);
enum ree_status ree_text_json_u32(const cJSON *object, const char *name, uint32_t fallback,
                                  uint32_t *out, struct ree_error *err);
// The number as an id: whole and below REE_VOCAB_MAX.
enum ree_status ree_text_json_id(const cJSON *number, int32_t *out, struct ree_error *err);
// Puts the NULs back into a string of a parsed file, in place, and gives its length.
size_t ree_text_json_restore(char *text);
// Copies the text of a string node, NULs restored.
enum ree_status ree_text_json_copy(struct ree_arena *arena, const char *text, struct ree_str *out,
                                   struct ree_error *err);

#endif
