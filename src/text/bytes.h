// The two ways in which bytes become text in vocabularies: GPT-2's alphabet, in which each byte has
// a printable character, and base64.
#ifndef REE_TEXT_BYTES_H
#define REE_TEXT_BYTES_H

#include "base/strbuf.h"

#include <stdint.h>

// The character of GPT-2's alphabet for a byte: itself where Latin-1 prints it, else U+0100 and up.
uint32_t ree_byte_char(unsigned char byte);
int ree_char_byte(uint32_t c); // the way back; -1: no character of the alphabet
void ree_bytes_append(struct ree_strbuf *out, const char *bytes, size_t n); // as characters
// The bytes that a piece spells; false, with nothing appended, where a character is not of the
// alphabet.
bool ree_bytes_parse(struct ree_strbuf *out, const char *text, size_t n);

// Decodes base64 with or without padding; false when it is not base64.
bool ree_base64_decode(struct ree_strbuf *out, const char *text, size_t n);

#endif
