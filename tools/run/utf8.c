#include "utf8.h"

#include <string.h>

size_t utf8_check(const char *s, size_t n, size_t *out_bad, bool *out_cut) {
    const unsigned char *b = (const unsigned char *)s;
    *out_bad = 1;
    *out_cut = false;
    if (b[0] < 0x80) return 1;
    // The range of the second byte depends on the first; later bytes are 80 to BF.
    unsigned low = 0x80, high = 0xBF;
    size_t size;
    if (b[0] >= 0xC2 && b[0] <= 0xDF) {
        size = 2;
    } else if (b[0] >= 0xE0 && b[0] <= 0xEF) {
        size = 3;
        if (b[0] == 0xE0) low = 0xA0;
        if (b[0] == 0xED) high = 0x9F;
    } else if (b[0] >= 0xF0 && b[0] <= 0xF4) {
        size = 4;
        if (b[0] == 0xF0) low = 0x90;
        if (b[0] == 0xF4) high = 0x8F;
    } else {
        return 0;
    }
    for (size_t i = 1; i < size; i++) {
        *out_bad = i;
        if (i == n) {
            *out_cut = true;
            return 0;
        }
        if (b[i] < low || b[i] > high) return 0;
        low = 0x80;
        high = 0xBF;
    }
    return size;
}

size_t utf8_valid_prefix(const char *s, size_t n) {
    size_t i = 0, bad;
    bool cut;
    while (i < n) {
        uint64_t word;
        if (n - i >= sizeof word) {
            memcpy(&word, s + i, sizeof word);
            if (!(word & 0x8080808080808080u)) {
                i += sizeof word;
                continue;
            }
        }
        size_t size = utf8_check(s + i, n - i, &bad, &cut);
        if (!size) break;
        i += size;
    }
    return i;
}

void utf8_append_lossy(struct strbuf *out, const char *s, size_t n) {
    while (n > 0) {
        size_t valid = utf8_valid_prefix(s, n), bad;
        bool cut;
        strbuf_append(out, s, valid);
        s += valid;
        n -= valid;
        if (n == 0) break;
        utf8_check(s, n, &bad, &cut);
        strbuf_append(out, "\xEF\xBF\xBD", 3);
        s += bad;
        n -= bad;
    }
}
