// The two encodings of bytes as text in vocabularies: GPT-2's alphabet, which has a printable
// character for each byte, and base64.
#ifndef REE_TEXT_BYTES_H
#define REE_TEXT_BYTES_H

#include "base/strbuf.h"

#include <stdint.h>

// Returns the character of GPT-2's alphabet for a byte: the Latin-1 character if it is printable,
// otherwise one from U+0100 up.
uint32_t ree_byte_char(unsigned char byte);
int ree_char_byte(uint32_t c); // the inverse; -1: not in the alphabet
// Encodes with the alphabet.
void ree_bytes_append(struct ree_strbuf *out, const char *bytes, size_t n);
// Decodes a piece to bytes. Returns false and appends nothing if a character is not in the
// alphabet.
bool ree_bytes_parse(struct ree_strbuf *out, const char *text, size_t n);

// Decodes base64 with or without padding. Returns false if the text is not base64.
bool ree_base64_decode(struct ree_strbuf *out, const char *text, size_t n);

#endif
