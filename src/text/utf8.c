#include "text/utf8.h"

#include <string.h>
#include <utf8proc.h>

size_t ree_utf8_check(const char *s, size_t n, size_t *out_bad, bool *out_cut) {
    const unsigned char *b = (const unsigned char *)s;
    *out_bad = 1;
    *out_cut = false;
    if (b[0] < 0x80) return 1;
    // The range of the second byte depends on the first; later bytes are 0x80 to 0xBF.
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

size_t ree_utf8_valid_prefix(const char *s, size_t n) {
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
        size_t size = ree_utf8_check(s + i, n - i, &bad, &cut);
        if (!size) break;
        i += size;
    }
    return i;
}

void ree_utf8_append_lossy(struct ree_strbuf *out, const char *s, size_t n) {
    while (n > 0) {
        size_t valid = ree_utf8_valid_prefix(s, n), bad;
        bool cut;
        ree_strbuf_append(out, s, valid);
        s += valid;
        n -= valid;
        if (n == 0) break;
        ree_utf8_check(s, n, &bad, &cut);
        ree_strbuf_append(out, REE_REPLACEMENT, 3);
        s += bad;
        n -= bad;
    }
}

size_t ree_utf8_put(uint32_t c, char out[4]) {
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

void ree_utf8_append(struct ree_strbuf *out, uint32_t c) {
    char bytes[4];
    ree_strbuf_append(out, bytes, ree_utf8_put(c, bytes));
}

size_t ree_utf8_count(const char *s, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += ((unsigned char)s[i] & 0xC0) != 0x80;
    return count;
}

static int category(uint32_t c) {
    return utf8proc_category((utf8proc_int32_t)c);
}

bool ree_char_is_space(uint32_t c) {
    if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
    if (c == 0x85) return true;
    int k = category(c);
    return k == UTF8PROC_CATEGORY_ZS || k == UTF8PROC_CATEGORY_ZL || k == UTF8PROC_CATEGORY_ZP;
}

bool ree_char_is_word(uint32_t c) {
    if (c < 0x80)
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
    // Joiners, and symbols that are Alphabetic but not of a letter category: circled and squared
    // letters.
    if (c == 0x200C || c == 0x200D) return true;
    if ((c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
        (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189))
        return true;
    switch (category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_PC: return true;
    default: return false;
    }
}

bool ree_char_is_punctuation(uint32_t c) {
    if (c < 0x80)
        return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
               (c >= '{' && c <= '~');
    int k = category(c);
    return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

bool ree_char_is_numeric(uint32_t c) {
    if (c < 0x80) return c >= '0' && c <= '9';
    int k = category(c);
    return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}

bool ree_char_is_mark(uint32_t c) {
    if (c < 0x300) return false;
    int k = category(c);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_ME;
}

bool ree_char_is_nonspacing(uint32_t c) {
    return c >= 0x300 && category(c) == UTF8PROC_CATEGORY_MN;
}

bool ree_char_is_other(uint32_t c) {
    if (c < 0x80) return c < 0x20 || c == 0x7F;
    int k = category(c);
    return k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_CS ||
           k == UTF8PROC_CATEGORY_CO;
}

bool ree_char_is_cjk(uint32_t c) {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
           (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
           (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

void ree_char_append_lower(struct ree_strbuf *out, uint32_t c) {
    if (c < 0x80) {
        char byte = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
        ree_strbuf_append(out, &byte, 1);
    } else if (c == 0x130) {
        ree_strbuf_append(out, "i\xCC\x87", 3); // the only unconditional mapping to two characters
    } else {
        ree_utf8_append(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c));
    }
}
