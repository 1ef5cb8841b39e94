// Checks and decodes UTF-8, to escape or repair text that comes from files and models.
#ifndef REE_TOOLS_RUN_UTF8_H
#define REE_TOOLS_RUN_UTF8_H

#include "strbuf.h"

#include <stdint.h>

// Returns the length in bytes, 1 to 4, of the character at the beginning of `s`, or 0 if no valid
// character begins there. n: number of bytes of `s`, at least 1. If the result is 0, *out_bad is
// the number of bytes that one U+FFFD replaces (the maximal subpart: Unicode 15, section 3.9, table
// 3-8), and *out_cut is true if more bytes after the end of `s` could complete the character.
size_t utf8_check(const char *s, size_t n, size_t *out_bad, bool *out_cut);
// Returns the number of bytes at the beginning of `s` (n bytes) that are valid UTF-8.
size_t utf8_valid_prefix(const char *s, size_t n);
// Appends n bytes of text, with U+FFFD in place of bytes that are not valid UTF-8.
void utf8_append_lossy(struct strbuf *out, const char *s, size_t n);

// Decodes the character at `s`, which must be valid UTF-8. *out_size receives its length in bytes.
static inline uint32_t utf8_get(const char *s, size_t *out_size) {
    const unsigned char *b = (const unsigned char *)s;
    if (b[0] < 0x80) {
        *out_size = 1;
        return b[0];
    }
    if (b[0] < 0xE0) {
        *out_size = 2;
        return (b[0] & 0x1Fu) << 6 | (b[1] & 0x3Fu);
    }
    if (b[0] < 0xF0) {
        *out_size = 3;
        return (b[0] & 0x0Fu) << 12 | (b[1] & 0x3Fu) << 6 | (b[2] & 0x3Fu);
    }
    *out_size = 4;
    return (b[0] & 0x07u) << 18 | (b[1] & 0x3Fu) << 12 | (b[2] & 0x3Fu) << 6 | (b[3] & 0x3Fu);
}

#endif
