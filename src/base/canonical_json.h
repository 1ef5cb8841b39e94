// Canonical JSON (RFC 8785, JCS): exactly one text for each value, so that the text can be hashed.
// Keys are sorted by their UTF-16 code units, there is no white space, and numbers are printed as
// ECMAScript prints them.
#ifndef REE_BASE_CANONICAL_JSON_H
#define REE_BASE_CANONICAL_JSON_H

#include "base/json.h"
#include "base/strbuf.h"
#include "base/merkle.h"

#define REE_CANONICAL_NUMBER_SIZE 32
// Writes the canonical text of a finite number, and a NUL.
void ree_canonical_number(double value, char out[REE_CANONICAL_NUMBER_SIZE]);
// Appends the canonical text of `value` to *out. Fails with REE_INVALID if there is none: a number
// is not finite, a string is not UTF-8, an object has the same key twice, or nesting exceeds 64
// levels.
enum ree_status ree_canonical_json(const cJSON *value, struct ree_strbuf *out,
                                   struct ree_error *err);
// Fails with REE_INVALID if `value` has no canonical text (see ree_canonical_json). This rejects
// JSON that other readers may interpret differently.
enum ree_status ree_canonical_check(const cJSON *value, struct ree_error *err);
// Sets `out` to the SHA-256 of the tag, including its NUL, followed by the canonical text. If `tag`
// is NULL, only the text is hashed.
enum ree_status ree_canonical_sha256(const cJSON *value, const char *tag, ree_digest out,
                                     struct ree_error *err);
// Converts exactly 64 lower-case hexadecimal digits to bytes. Returns false for any other string.
bool ree_unhex(const char *hex, ree_digest out);

#endif
