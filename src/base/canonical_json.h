// Canonical JSON (RFC 8785, JCS): exactly one text for each value, so that the text can be hashed.
// Keys are sorted by their UTF-16 code units, there is no white space, and numbers are printed as
// ECMAScript prints them.
#ifndef REE_BASE_CANONICAL_JSON_H
#define REE_BASE_CANONICAL_JSON_H

#include "base/json.h"
#include "base/strbuf.h"
#include "base/merkle.h"

// Appends the canonical text of `value`. Fails with REE_INVALID if the value has none: a number is
// not finite, a string is not UTF-8, an object has the same key twice, or it is nested more than 64
// levels deep.
enum ree_status ree_canonical_json(const cJSON *value, struct ree_strbuf *out,
                                   struct ree_error *err);
// Checks that `value` has a canonical form. This rejects JSON that other readers may interpret
// differently.
enum ree_status ree_canonical_check(const cJSON *value, struct ree_error *err);
// SHA-256 of the tag, including its NUL, followed by the canonical text. If `tag` is NULL, only the
// text is hashed.
enum ree_status ree_canonical_sha256(const cJSON *value, const char *tag, ree_digest out,
                                     struct ree_error *err);
// Converts exactly 64 lower-case hexadecimal digits to bytes. Returns false for any other string.
bool ree_unhex(const char *hex, ree_digest out);

#endif
