// The two encodings of bytes as text in vocabularies: GPT-2's alphabet, which has a printable
// character for each byte, and base64.
#ifndef REE_TEXT_BYTES_H
#define REE_TEXT_BYTES_H

#include "base/strbuf.h"

#include <stdint.h>

// Returns the character of GPT-2's alphabet for a byte: the Latin-1 character if it is printable,
// otherwise one from U+0100 up.
uint32_t ree_byte_char(unsigned char byte);
// Returns the byte that a character of GPT-2's alphabet stands for, or -1 for any other character.
int ree_char_byte(uint32_t c);
// Appends n bytes encoded in GPT-2's alphabet, as UTF-8.
void ree_bytes_append(struct ree_strbuf *out, const char *bytes, size_t n);
// Appends the bytes that a text in GPT-2's alphabet stands for. The text must be valid UTF-8 of n
// bytes. Returns false and appends nothing if a character is not in the alphabet.
bool ree_bytes_parse(struct ree_strbuf *out, const char *text, size_t n);

// Decodes base64, with or without padding, and appends the bytes. Returns false if the text is not
// base64; it may then have appended some bytes.
bool ree_base64_decode(struct ree_strbuf *out, const char *text, size_t n);

#endif
