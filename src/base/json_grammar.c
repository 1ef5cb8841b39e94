// Checks RFC 8259's grammar without allocating: cJSON does not tell whether it failed because
// memory was exhausted or because of the text.
#include "base/json.h"

#include <string.h>

#define MAX_DEPTH 1000 // CJSON_NESTING_LIMIT
#define MAX_NUMBER 62  // longest number, in characters, that every release of cJSON reads

struct scanner {
    const char *at, *end;
    uint32_t depth;
    bool is_object[MAX_DEPTH]; // for each open level: object or array
};

static bool take(struct scanner *s, char c) {
    if (s->at == s->end || *s->at != c) return false;
    s->at++;
    return true;
}

static void spaces(struct scanner *s) {
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
        s->at++;
}

static bool digits(struct scanner *s) {
    const char *start = s->at;
    while (s->at < s->end && *s->at >= '0' && *s->at <= '9')
        s->at++;
    return s->at > start;
}

static bool number(struct scanner *s) {
    const char *start = s->at;
    take(s, '-');
    if (!take(s, '0') && !digits(s)) return false;
    if (take(s, '.') && !digits(s)) return false;
    if (take(s, 'e') || take(s, 'E')) {
        if (!take(s, '+')) take(s, '-');
        if (!digits(s)) return false;
    }
    return s->at - start <= MAX_NUMBER;
}

static bool literal(struct scanner *s, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0) return false;
    s->at += n;
    return true;
}

static bool hex4(struct scanner *s, uint32_t *out) {
    *out = 0;
    for (int i = 0; i < 4; i++, s->at++) {
        if (s->at == s->end) return false;
        char c = *s->at, lower = (char)(c | 0x20);
        if (c >= '0' && c <= '9')
            *out = *out * 16 + (uint32_t)(c - '0');
        else if (lower >= 'a' && lower <= 'f')
            *out = *out * 16 + (uint32_t)(lower - 'a' + 10);
        else
            return false;
    }
    return true;
}

// Reads what follows "\u". Like cJSON, rejects an unpaired surrogate.
static bool unicode_escape(struct scanner *s) {
    uint32_t high, low;
    if (!hex4(s, &high) || high == 0) return false;
    if (high < 0xD800 || high > 0xDFFF) return true;
    return high < 0xDC00 && take(s, '\\') && take(s, 'u') && hex4(s, &low) && low >= 0xDC00 &&
           low <= 0xDFFF;
}

static bool string(struct scanner *s) {
    if (!take(s, '"')) return false;
    while (s->at < s->end) {
        char c = *s->at++;
        if (c == '"') return true;
        if ((unsigned char)c < 0x20) return false;
        if (c != '\\') continue;
        if (s->at == s->end) return false;
        c = *s->at++;
        if (c == 'u' ? !unicode_escape(s) : !memchr("\"\\/bfnrt", c, 8)) return false;
    }
    return false;
}

static bool key(struct scanner *s) {
    spaces(s);
    if (!string(s)) return false;
    spaces(s);
    return take(s, ':');
}

// Called after a value: closes the levels that end with it. *out_more: another value follows.
static bool close_levels(struct scanner *s, bool *out_more) {
    for (*out_more = false; s->depth > 0;) {
        spaces(s);
        bool is_object = s->is_object[s->depth - 1];
        if (take(s, ',')) {
            *out_more = true;
            return !is_object || key(s);
        }
        if (!take(s, is_object ? '}' : ']')) return false;
        s->depth--;
    }
    return true;
}

// Reads up to the first value that is not a non-empty array or object.
static bool open_levels(struct scanner *s) {
    for (;;) {
        spaces(s);
        bool is_object = take(s, '{');
        if (!is_object && !take(s, '[')) break;
        spaces(s);
        if (take(s, is_object ? '}' : ']')) return true;
        if (s->depth == MAX_DEPTH - 1) return false;
        s->is_object[s->depth++] = is_object;
        if (is_object && !key(s)) return false;
    }
    if (s->at == s->end) return false;
    switch (*s->at) {
    case '"': return string(s);
    case 't': return literal(s, "true");
    case 'f': return literal(s, "false");
    case 'n': return literal(s, "null");
    default: return number(s);
    }
}

bool ree_json_is_well_formed(const char *text, size_t size) {
    struct scanner s = {.at = text, .end = text + size};
    bool more = true;
    while (more)
        if (!open_levels(&s) || !close_levels(&s, &more)) return false;
    spaces(&s);
    return s.at == s.end;
}
