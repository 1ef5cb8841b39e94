// Converts NumPy's '<U' strings (UTF-32 of equal length, padded with NULs) from and to UTF-8.
#include "base/memory.h"
#include "base/npy.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

// Writes the UTF-8 encoding of a code point and returns its length in bytes; 0 if it is not a
// character.
static size_t encode(uint32_t c, char *out) {
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if ((c >= 0xD800 && c < 0xE000) || c > 0x10FFFF) return 0;
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char leads[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)(leads[n] | c);
    return n;
}

// Returns the code point at `text` and sets *out_n to its length in bytes; UINT32_MAX for malformed
// UTF-8.
static uint32_t decode(const char *text, size_t *out_n) {
    const unsigned char *s = (const unsigned char *)text;
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : s[0] >= 0xC0 ? 2 : 0;
    if (n == 0 || s[0] > 0xF4) return UINT32_MAX;
    uint32_t c = n == 1 ? s[0] : s[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80) return UINT32_MAX; // also stops at a NUL
        c = c << 6 | (s[i] & 0x3Fu);
    }
    // Reject overlong forms and surrogates: encoding the result must give the same bytes.
    char again[4];
    *out_n = n;
    return encode(c, again) == n && memcmp(again, s, n) == 0 ? c : UINT32_MAX;
}

enum ree_status ree_npy_read_strings(char **strings, size_t n, size_t length,
                                     const unsigned char *elements, bool big_endian,
                                     const char *where, struct ree_error *err) {
    for (size_t i = 0; i < n; i++, elements += 4 * length) {
        char *s = ree_alloc(4 * length + 1);
        if (!s) return ree_no_memory(err);
        strings[i] = s;
        size_t used = length;
        while (used && !memcmp(elements + 4 * (used - 1), "\0\0\0", 4))
            used--;
        for (size_t k = 0; k < used; k++) {
            const unsigned char *e = elements + 4 * k;
            uint32_t c = big_endian ? (uint32_t)e[0] << 24 | e[1] << 16 | e[2] << 8 | e[3]
                                    : (uint32_t)e[3] << 24 | e[2] << 16 | e[1] << 8 | e[0];
            size_t bytes = c ? encode(c, s) : 0;
            if (!bytes) {
                *s = 0;
                return ree_fail(err, REE_INVALID,
                                "%s: string %zu has the code point %u, which is not a character",
                                where, i, c);
            }
            s += bytes;
        }
        *s = 0;
    }
    return REE_OK;
}

enum ree_status ree_npy_write_strings(const struct ree_tensor *tensor, void **out,
                                      size_t *out_nbytes, size_t *out_length,
                                      struct ree_error *err) {
    const char *const *strings = tensor->data;
    size_t n = tensor->nbytes / sizeof *strings, longest = 1, bytes;
    for (size_t i = 0; i < n; i++) {
        size_t length = 0;
        for (const char *s = strings[i] ? strings[i] : ""; *s; s += bytes, length++)
            if (decode(s, &bytes) == UINT32_MAX)
                return ree_fail(err, REE_INVALID, "tensor '%s': string %zu is not UTF-8",
                                tensor->name ? tensor->name : "", i);
        if (length > longest) longest = length;
    }
    uint64_t nbytes;
    if (!ree_mul_size(n, 4 * longest, &nbytes) || nbytes > SIZE_MAX / 2) return ree_no_memory(err);
    uint32_t *points = ree_alloc_zeroed(1, nbytes ? nbytes : 1);
    if (!points)
        return ree_fail(err, REE_NO_MEMORY, "out of memory for %llu bytes",
                        (unsigned long long)nbytes);
    for (size_t i = 0; i < n; i++) {
        uint32_t *at = points + i * longest;
        for (const char *s = strings[i] ? strings[i] : ""; *s; s += bytes)
            *at++ = decode(s, &bytes);
    }
    *out = points;
    *out_nbytes = (size_t)nbytes;
    *out_length = longest;
    return REE_OK;
}
