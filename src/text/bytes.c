#include "text/bytes.h"

#include "text/utf8.h"

static bool is_printed(unsigned byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

// The bytes that are not printable (0 to 20, 7F to A0, AD, in hexadecimal) map in order to U+0100,
// U+0101, ...
uint32_t ree_byte_char(unsigned char byte) {
    if (is_printed(byte)) return byte;
    if (byte <= 0x20) return 0x100u + byte;
    if (byte <= 0xA0) return 0x121u + (byte - 0x7Fu);
    return 0x143;
}

int ree_char_byte(uint32_t c) {
    if (c < 0x100) return is_printed(c) ? (int)c : -1;
    if (c <= 0x120) return (int)(c - 0x100);
    if (c <= 0x142) return (int)(c - 0x121 + 0x7F);
    return c == 0x143 ? 0xAD : -1;
}

void ree_bytes_append(struct ree_strbuf *out, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        ree_utf8_append(out, ree_byte_char((unsigned char)bytes[i]));
}

bool ree_bytes_parse(struct ree_strbuf *out, const char *text, size_t n) {
    size_t size = out->size, step;
    for (size_t i = 0; i < n; i += step) {
        int byte = ree_char_byte(ree_utf8_get(text + i, &step));
        if (byte < 0) {
            out->size = size;
            return false;
        }
        char c = (char)byte;
        ree_strbuf_append(out, &c, 1);
    }
    return true;
}

static int base64_digit(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool ree_base64_decode(struct ree_strbuf *out, const char *text, size_t n) {
    while (n > 0 && text[n - 1] == '=')
        n--;
    if (n % 4 == 1) return false;
    uint32_t bits = 0;
    for (size_t i = 0; i < n; i++) {
        int digit = base64_digit(text[i]);
        if (digit < 0) return false;
        bits = bits << 6 | (uint32_t)digit;
        // Four digits encode three bytes: each digit but the first of the four completes a byte.
        if (i % 4 == 0) continue;
        char byte = (char)(bits >> (6 - 2 * (i % 4)));
        ree_strbuf_append(out, &byte, 1);
    }
    return true;
}
