// Reads and writes UTF-8, and classifies characters as tokenizers do (by Unicode's properties and
// general categories, from utf8proc).
#ifndef REE_TEXT_UTF8_H
#define REE_TEXT_UTF8_H

#include "base/strbuf.h"

#include <stdint.h>

#define REE_REPLACEMENT "\xEF\xBF\xBD" // U+FFFD

// Returns the length in bytes, 1 to 4, of the character at the beginning of `s`, which has n > 0
// bytes, or 0 if that is not valid UTF-8. Then *out_bad receives the number of bytes that one
// U+FFFD replaces (the maximal subpart: Unicode 15, section 3.9, table 3-8), and *out_cut is true
// if the text ends within a character that more bytes could complete.
size_t ree_utf8_check(const char *s, size_t n, size_t *out_bad, bool *out_cut);
// Returns the number of bytes before the first one that is not valid UTF-8.
size_t ree_utf8_valid_prefix(const char *s, size_t n);
// Appends the text, with U+FFFD in place of invalid bytes.
void ree_utf8_append_lossy(struct ree_strbuf *out, const char *s, size_t n);

// Decodes the character at `s`, which must be valid UTF-8. *out_size receives its length in bytes.
static inline uint32_t ree_utf8_get(const char *s, size_t *out_size) {
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
// Returns the length in bytes of the last character of `s`, which must be valid UTF-8 of n > 0
// bytes.
static inline size_t ree_utf8_last_size(const char *s, size_t n) {
    size_t size = 1;
    while (size < n && ((unsigned char)s[n - size] & 0xC0) == 0x80)
        size++;
    return size;
}
size_t ree_utf8_put(uint32_t c, char out[4]); // encodes c; returns its length in bytes
void ree_utf8_append(struct ree_strbuf *out, uint32_t c);
size_t ree_utf8_count(const char *s, size_t n); // number of characters

// Classes of a character, by Unicode's properties and general categories. M, N and P stand for all
// categories that begin with this letter.
bool ree_char_is_space(uint32_t c);       // property White_Space
bool ree_char_is_word(uint32_t c);        // Alphabetic, Join_Control, category M, Nd or Pc
bool ree_char_is_punctuation(uint32_t c); // category P, or ASCII punctuation
bool ree_char_is_numeric(uint32_t c);     // category N: Nd, Nl, No
bool ree_char_is_mark(uint32_t c);        // category M: Mn, Mc, Me
bool ree_char_is_nonspacing(uint32_t c);  // category Mn
bool ree_char_is_other(uint32_t c);       // category Cc, Cf, Cs or Co
bool ree_char_is_cjk(uint32_t c);         // ideographs, in the ranges that BERT uses
// Appends c in lower case. The result is one character, except for U+0130.
void ree_char_append_lower(struct ree_strbuf *out, uint32_t c);

#endif
