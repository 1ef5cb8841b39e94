// Checks a text against RFC 8259's grammar and against limits, without allocating. Two properties
// of cJSON make this necessary. It accepts more than the RFC (01, a control character in a string),
// so a text could mean something else to another reader. And it does not tell whether it failed
// because of the text or because memory was exhausted.
#include "base/json.h"

#include "base/canonical_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 1000 // CJSON_NESTING_LIMIT
#define MAX_NUMBER 62  // longest number, in characters, that every release of cJSON reads
#define MAX_SHORT 15   // maximum characters of a short integer
#define MAX_DIGITS 17  // significant digits that some doubles need

// For configurations and tokenizers. cJSON takes about a hundred bytes for each value. The largest
// tokenizers have a million values, and a score for each token.
const struct ree_json_limits ree_json_lenient = {
    .depth = MAX_DEPTH, .values = 1 << 24, .long_numbers = 1 << 24, .allows_bom = true};
// Printing the canonical form of a number that is not a short integer takes 20 microseconds, so
// such numbers have a low limit. The limit of values is far above the number of token ids in the
// longest contexts.
const struct ree_json_limits ree_json_strict = {
    .depth = 64, .values = 1 << 22, .long_numbers = 1 << 16, .only_exact = true};

struct scanner {
    const char *start, *at, *end;
    const struct ree_json_limits *limits;
    struct ree_error *err;
    size_t n_values, n_long_numbers;
    uint32_t depth;
    bool is_object[MAX_DEPTH]; // for each open level: object or array
};

static enum ree_status fail(const struct scanner *s, const char *why) {
    return ree_fail(s->err, REE_INVALID, "%s, near byte %zu", why, (size_t)(s->at - s->start));
}

static enum ree_status fail_limit(const struct scanner *s, const char *format, size_t limit) {
    char why[80];
    snprintf(why, sizeof why, format, limit);
    return fail(s, why);
}

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

// Refuses numbers that a double cannot tell from another: both have one canonical form, and so one
// hash, but readers with longer numbers see different values. n: characters of the number, at most
// MAX_NUMBER.
static enum ree_status exact(const struct scanner *s, const char *start, size_t n,
                             bool is_integer) {
    char text[MAX_NUMBER + 1], canonical[REE_CANONICAL_NUMBER_SIZE];
    size_t n_digits = 0;
    for (size_t i = 0; i < n && start[i] != 'e' && start[i] != 'E'; i++)
        n_digits += start[i] >= '1' || (n_digits && start[i] == '0');
    if (n_digits > MAX_DIGITS && !is_integer)
        return fail_limit(s, "it has a number of more than %zu digits", MAX_DIGITS);
    if (n_digits <= MAX_SHORT || !is_integer) return REE_OK;
    memcpy(text, start, n);
    text[n] = 0;
    ree_canonical_number(strtod(text, NULL), canonical);
    if (strcmp(text, canonical) == 0) return REE_OK;
    return fail(s, "it has an integer that is no double: its last digits would be lost");
}

static enum ree_status number(struct scanner *s) {
    const char *const malformed = "it is not JSON: a number is malformed", *start = s->at;
    bool is_long = false;
    take(s, '-');
    if (take(s, '0')) {
        if (digits(s)) return fail(s, malformed);
    } else if (!digits(s)) {
        return fail(s, s->at == start ? "it is not JSON" : malformed);
    }
    if (take(s, '.')) {
        is_long = true;
        if (!digits(s)) return fail(s, malformed);
    }
    if (take(s, 'e') || take(s, 'E')) {
        is_long = true;
        if (!take(s, '+')) take(s, '-');
        if (!digits(s)) return fail(s, malformed);
    }
    size_t n = (size_t)(s->at - start);
    if (n > MAX_NUMBER)
        return fail_limit(s, "it has a number of more than %zu characters", MAX_NUMBER);
    if (s->limits->only_exact) REE_TRY(exact(s, start, n, !is_long));
    s->n_long_numbers += is_long || n > MAX_SHORT;
    if (s->n_long_numbers > s->limits->long_numbers)
        return fail_limit(s, "it has more than %zu numbers that are not short integers",
                          s->limits->long_numbers);
    return REE_OK;
}

static enum ree_status literal(struct scanner *s, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
        return fail(s, "it is not JSON");
    s->at += n;
    return REE_OK;
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

// Reads what follows "\u". Like cJSON, rejects an unpaired surrogate; cJSON would truncate a string
// at \u0000.
static enum ree_status unicode_escape(struct scanner *s) {
    const char *const malformed = "it is not JSON: an escape is malformed";
    uint32_t high, low;
    if (!hex4(s, &high)) return fail(s, malformed);
    if (high == 0) return fail(s, "it has a \\u0000 in a string");
    if (high < 0xD800 || high > 0xDFFF) return REE_OK;
    bool is_pair = high < 0xDC00 && take(s, '\\') && take(s, 'u') && hex4(s, &low) &&
                   low >= 0xDC00 && low <= 0xDFFF;
    return is_pair ? REE_OK : fail(s, malformed);
}

static enum ree_status string(struct scanner *s) {
    if (!take(s, '"')) return fail(s, "it is not JSON");
    while (s->at < s->end) {
        char c = *s->at;
        if ((unsigned char)c < 0x20) return fail(s, "it has a control character in a string");
        s->at++;
        if (c == '"') return REE_OK;
        if (c != '\\') continue;
        if (s->at == s->end) break;
        c = *s->at++;
        if (c == 'u')
            REE_TRY(unicode_escape(s));
        else if (!memchr("\"\\/bfnrt", c, 8))
            return fail(s, "it is not JSON: an escape is malformed");
    }
    return fail(s, "it is not JSON: a string has no end");
}

static enum ree_status key(struct scanner *s) {
    spaces(s);
    REE_TRY(string(s));
    spaces(s);
    return take(s, ':') ? REE_OK : fail(s, "it is not JSON");
}

static enum ree_status count_value(struct scanner *s) {
    if (++s->n_values <= s->limits->values) return REE_OK;
    return fail_limit(s, "it has more than %zu values", s->limits->values);
}

// Called after a value: closes the levels that end with it. *out_more: another value follows.
static enum ree_status close_levels(struct scanner *s, bool *out_more) {
    for (*out_more = false; s->depth > 0;) {
        spaces(s);
        bool is_object = s->is_object[s->depth - 1];
        if (take(s, ',')) {
            *out_more = true;
            REE_TRY(count_value(s));
            return is_object ? key(s) : REE_OK;
        }
        if (!take(s, is_object ? '}' : ']')) return fail(s, "it is not JSON");
        s->depth--;
    }
    return REE_OK;
}

// Opens nested arrays and objects up to the first value that is a scalar or is empty, and reads
// that value.
static enum ree_status open_levels(struct scanner *s) {
    for (;;) {
        spaces(s);
        bool is_object = take(s, '{');
        if (!is_object && !take(s, '[')) break;
        REE_TRY(count_value(s));
        if (s->depth == s->limits->depth)
            return fail_limit(s, "it is nested more than %zu levels deep", s->limits->depth);
        spaces(s);
        if (take(s, is_object ? '}' : ']')) return REE_OK;
        s->is_object[s->depth++] = is_object;
        if (is_object) REE_TRY(key(s));
    }
    switch (s->at == s->end ? 0 : *s->at) {
    case '"': return string(s);
    case 't': return literal(s, "true");
    case 'f': return literal(s, "false");
    case 'n': return literal(s, "null");
    default: return number(s);
    }
}

enum ree_status ree_json_scan(const char *text, size_t size, const struct ree_json_limits *limits,
                              struct ree_error *err) {
    struct scanner s = {
        .start = text, .at = text, .end = text + size, .limits = limits, .err = err};
    bool more = true;
    if (size && memchr(text, 0, size))
        return ree_fail(err, REE_INVALID, "it is not JSON: it has a zero byte");
    if (limits->allows_bom && size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) s.at += 3;
    while (more) {
        REE_TRY(open_levels(&s));
        REE_TRY(close_levels(&s, &more));
    }
    spaces(&s);
    return s.at == s.end ? REE_OK : fail(&s, "it is not JSON");
}
