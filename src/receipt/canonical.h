// Canonical JSON (RFC 8785, JCS): one text for one value, so that it can be hashed. Keys in the
// order of their UTF-16 code units, no white space, numbers as ECMAScript prints them.
#ifndef REE_RECEIPT_CANONICAL_H
#define REE_RECEIPT_CANONICAL_H

#include "base/json.h"
#include "base/strbuf.h"
#include "receipt/merkle.h"

// Appends the canonical text. REE_INVALID for what has none: a number that is not finite, a string
// that is not UTF-8, a key twice in one object, more than 64 levels.
enum ree_status ree_canonical_json(const cJSON *value, struct ree_strbuf *out,
                                   struct ree_error *err);
// Whether it has one: what other readers of JSON could read otherwise is refused so.
enum ree_status ree_canonical_check(const cJSON *value, struct ree_error *err);
// SHA-256 over a tag, with its NUL, and the canonical text; `tag` NULL: over the text alone.
enum ree_status ree_canonical_sha256(const cJSON *value, const char *tag, ree_digest out,
                                     struct ree_error *err);
// 64 hexadecimal digits in lower case to bytes; false for anything else.
bool ree_unhex(const char *hex, ree_digest out);

#endif
