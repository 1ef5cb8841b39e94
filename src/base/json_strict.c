// Rejects what cJSON accepts and RFC 8259 forbids, so that a text has the same meaning for ree as
// for any other reader.
#include "base/json.h"

#include <string.h>

#define MAX_DEPTH 64
// cJSON takes about a hundred bytes for each value, and the canonical form of a number that is not
// a short integer takes 20 microseconds. Token ids of the longest contexts stay far below.
#define MAX_VALUES (1 << 22)
#define MAX_LONG_NUMBERS (1 << 16)
#define MAX_SHORT 15 // characters

// The text being scanned; `at` is never past `end`.
struct text {
    const char *start, *at, *end;
    size_t n_values, n_long_numbers;
};

static bool is_digit(const struct text *t) {
    return t->at < t->end && *t->at >= '0' && *t->at <= '9';
}

static bool take(struct text *t, const char *any_of) {
    if (t->at == t->end || !strchr(any_of, *t->at)) return false;
    t->at++;
    return true;
}

static bool digits(struct text *t) {
    if (!is_digit(t)) return false;
    while (is_digit(t))
        t->at++;
    return true;
}

// cJSON accepts what strtod accepts: 01, 1. and similar.
static bool number(struct text *t) {
    take(t, "-");
    if (take(t, "0")) {
        if (is_digit(t)) return false;
    } else if (!digits(t)) {
        return false;
    }
    if (take(t, ".") && !digits(t)) return false;
    if (take(t, "eE")) {
        take(t, "+-");
        return digits(t);
    }
    return true;
}

// Reads a string after its opening quote. cJSON checks the escapes, except that it would truncate a
// string at \u0000.
static const char *string(struct text *t) {
    while (t->at < t->end && *t->at != '"') {
        if ((unsigned char)*t->at < 0x20) return "it has a control character in a string";
        if (*t->at++ != '\\' || t->at == t->end) continue;
        if (t->end - t->at >= 5 && memcmp(t->at, "u0000", 5) == 0)
            return "it has a \\u0000 in a string";
        t->at++;
    }
    return take(t, "\"") ? NULL : "it is not JSON: a string has no end";
}

// Returns NULL, or what is wrong at t->at.
static const char *scan(struct text *t) {
    int depth = 0;
    while (t->at < t->end) {
        const char *why = NULL;
        if (take(t, "\"")) {
            why = string(t);
        } else if (*t->at == '-' || is_digit(t)) {
            const char *first = t->at;
            if (!number(t)) why = "it is not JSON: a number is malformed";
            size_t n = (size_t)(t->at - first);
            bool is_long = n > MAX_SHORT || memchr(first, '.', n) || memchr(first, 'e', n) ||
                           memchr(first, 'E', n);
            t->n_long_numbers += is_long;
            if (t->n_long_numbers > MAX_LONG_NUMBERS)
                why = "it has more than 65536 numbers that are not short integers";
        } else if (take(t, "[{")) {
            t->n_values++;
            if (++depth > MAX_DEPTH) why = "it is nested more than 64 levels deep";
        } else if (take(t, "]}")) {
            depth--;
        } else if (take(t, ",")) {
            t->n_values++;
        } else if (!take(t, " \t\r\n:truefalsn")) { // letters of literals, which cJSON checks
            why = "it is not JSON";
        }
        if (t->n_values > MAX_VALUES) why = "it has more than 4194304 values";
        if (why) return why;
    }
    return NULL;
}

enum ree_status ree_json_parse_strict(const void *bytes, size_t size, cJSON **out,
                                      struct ree_error *err) {
    *out = NULL;
    if (size && memchr(bytes, 0, size)) // strchr above matches NUL in every set
        return ree_fail(err, REE_INVALID, "it is not JSON: it has a zero byte");
    struct text t = {.start = bytes, .at = bytes, .end = (const char *)bytes + size};
    const char *why = size ? scan(&t) : NULL;
    if (why) return ree_fail(err, REE_INVALID, "%s, near byte %zu", why, (size_t)(t.at - t.start));
    return ree_json_parse(bytes, size, out, err);
}
