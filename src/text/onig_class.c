// Sets of characters in Oniguruma's syntax: brackets, escapes and properties.
#include "text/onig_internal.h"

#include "text/utf8.h"

#include <stdlib.h>

#define MAX_NESTED 16

enum ree_status ree_onig_wrong(struct ree_onig *t, const char *what) {
    return ree_fail(t->err, REE_INVALID,
                    "the regular expression '%.200s' does not compile: %s at byte %zu", t->s, what,
                    t->at);
}

enum ree_status ree_onig_refuse(struct ree_onig *t, const char *what) {
    return ree_fail(t->err, REE_UNSUPPORTED,
                    "the regular expression '%.200s': %s at byte %zu is not supported", t->s, what,
                    t->at);
}

void ree_onig_put(struct ree_strbuf *out, const char *text) {
    ree_strbuf_append(out, text, strlen(text));
}

void ree_onig_put_strbuf(struct ree_strbuf *out, const struct ree_strbuf *text) {
    // If a part is missing because memory was exhausted, the pattern would mean something else.
    out->failed = out->failed || text->failed;
    if (text->size) ree_strbuf_append(out, text->data, text->size);
}

void ree_onig_put_char(struct ree_strbuf *out, uint32_t c) {
    bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    ree_strbuf_printf(out, plain ? "%c" : "\\x{%x}", c);
}

bool ree_onig_next_is(const struct ree_onig *t, const char *text) {
    size_t size = strlen(text);
    return t->n - t->at >= size && memcmp(t->s + t->at, text, size) == 0;
}

bool ree_onig_take(struct ree_onig *t, const char *text) {
    if (!ree_onig_next_is(t, text)) return false;
    t->at += strlen(text);
    return true;
}

static int digit(char c, int base) {
    int value = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : 99;
    return value < base ? value : -1;
}

size_t ree_onig_take_number(struct ree_onig *t, int base, size_t most, uint32_t *out) {
    size_t size = 0;
    *out = 0;
    for (int d; size < most && t->at < t->n && (d = digit(t->s[t->at], base)) >= 0; size++, t->at++)
        *out = *out * (uint32_t)base + (uint32_t)d;
    return size;
}

static void add_rest(struct ree_onig_set *set, const char *open, const struct ree_strbuf *text,
                     const char *close) {
    if (set->rest.size) ree_onig_put(&set->rest, "|");
    ree_onig_put(&set->rest, open);
    ree_onig_put_strbuf(&set->rest, text);
    ree_onig_put(&set->rest, close);
}

void ree_onig_add_items(struct ree_onig_set *set, const char *items, bool opposite) {
    struct ree_strbuf text;
    ree_strbuf_init(&text);
    ree_onig_put(&text, items);
    if (opposite)
        add_rest(set, "[^", &text, "]");
    else
        ree_onig_put_strbuf(&set->items, &text);
    ree_strbuf_finish(&text);
}

void ree_onig_put_set(struct ree_strbuf *out, const struct ree_onig_set *set) {
    out->failed = out->failed || set->items.failed || set->rest.failed;
    if (!set->rest.size) {
        ree_strbuf_printf(out, "[");
        ree_onig_put_strbuf(out, &set->items);
        ree_onig_put(out, "]");
        return;
    }
    if (!set->items.size && !memchr(set->rest.data, '|', set->rest.size)) {
        ree_onig_put_strbuf(out, &set->rest);
        return;
    }
    ree_onig_put(out, "(?:");
    if (set->items.size) {
        ree_onig_put(out, "[");
        ree_onig_put_strbuf(out, &set->items);
        ree_onig_put(out, "]|");
    }
    ree_onig_put_strbuf(out, &set->rest);
    ree_onig_put(out, ")");
}

// Calls ree_onig_property and reports an unknown name as an error.
static enum ree_status find_property(struct ree_onig *t, const char *name, size_t n,
                                     const char *what, const char **out_items, bool *out_opposite,
                                     char buffer[80]) {
    enum ree_status status = ree_onig_property(name, n, out_items, out_opposite, buffer);
    if (status == REE_INVALID) return ree_onig_refuse(t, what);
    return status == REE_OK ? REE_OK : ree_fail(t->err, status, "out of memory");
}

// Reads \p{name}, \p{^name} and \P{name}; the position is after the letter.
static enum ree_status property(struct ree_onig *t, bool opposite, struct ree_onig_set *set) {
    if (!ree_onig_take(t, "{")) return ree_onig_refuse(t, "a property without braces");
    if (ree_onig_take(t, "^")) opposite = !opposite;
    const char *name = t->s + t->at, *end = memchr(name, '}', t->n - t->at), *items;
    char buffer[80];
    bool other;
    if (!end) return ree_onig_refuse(t, "the property of characters");
    REE_TRY(find_property(t, name, (size_t)(end - name), "the property of characters", &items,
                          &other, buffer));
    t->at += (size_t)(end - name) + 1;
    ree_onig_add_items(set, items, opposite != other);
    return REE_OK;
}

enum ree_status ree_onig_class_escape(struct ree_onig *t, struct ree_onig_set *set,
                                      bool *out_found) {
    char c = t->s[t->at];
    bool opposite = c >= 'A' && c <= 'Z';
    const char *items = NULL;
    *out_found = true;
    switch (c) {
    case 's':
    case 'S': items = REE_ONIG_SPACE; break;
    case 'w':
    case 'W': items = REE_ONIG_WORD; break;
    case 'h':
    case 'H': items = REE_ONIG_XDIGIT; break;
    case 'd':
    case 'D': items = "\\p{Nd}"; break;
    case 'p':
    case 'P': t->at++; return property(t, opposite, set);
    default: *out_found = false; return REE_OK;
    }
    t->at++;
    ree_onig_add_items(set, items, opposite);
    return REE_OK;
}

enum ree_status ree_onig_char_escape(struct ree_onig *t, uint32_t *out) {
    static const char names[] = "tnrfvae", values[] = "\t\n\r\f\v\a\x1B";
    char c = t->s[t->at];
    const char *name = c ? strchr(names, c) : NULL;
    size_t size;
    if (name) {
        t->at++;
        *out = (uint32_t)values[name - names];
    } else if (c == 'x' && t->at + 1 < t->n && t->s[t->at + 1] == '{') {
        t->at += 2;
        if (!ree_onig_take_number(t, 16, 8, out) || !ree_onig_take(t, "}") || *out > 0x10FFFF ||
            (*out >= 0xD800 && *out <= 0xDFFF))
            return ree_onig_refuse(t, "the number of a character");
    } else if (c == 'x' || c == 'u') {
        t->at++;
        size = ree_onig_take_number(t, 16, c == 'x' ? 2 : 4, out);
        // Oniguruma reads \xHH as a byte, so only ASCII is a character.
        if (c == 'x' ? !size || *out >= 0x80 : size != 4 || (*out >= 0xD800 && *out <= 0xDFFF))
            return ree_onig_refuse(t, "the number of a character");
    } else if (c == '0') {
        ree_onig_take_number(t, 8, 3, out);
        if (*out >= 0x80) return ree_onig_refuse(t, "the number of a character");
    } else if (c && strchr("cCMoQEKRXNOyYkgGAzZbB123456789", c)) {
        return ree_onig_refuse(t, "the escape");
    } else {
        *out = ree_utf8_get(t->s + t->at, &size);
        t->at += size;
    }
    return REE_OK;
}

// Reads one character inside brackets.
static enum ree_status class_char(struct ree_onig *t, uint32_t *out) {
    if (t->at >= t->n) return ree_onig_wrong(t, "an unclosed bracket");
    if (ree_onig_take(t, "\\")) {
        if (t->at >= t->n) return ree_onig_wrong(t, "a backslash at the end");
        if (strchr("sSwWhHdDpP", t->s[t->at]))
            return ree_onig_wrong(t, "a range that ends with a class of characters");
        if (!ree_onig_take(t, "b")) return ree_onig_char_escape(t, out);
        *out = '\b';
        return REE_OK;
    }
    size_t size;
    *out = ree_utf8_get(t->s + t->at, &size);
    t->at += size;
    return REE_OK;
}

// Reads [:name:] and [:^name:]. *out_found is false if it is neither.
static enum ree_status posix_bracket(struct ree_onig *t, struct ree_onig_set *set,
                                     bool *out_found) {
    size_t from = t->at + 2;
    bool opposite = from < t->n && t->s[from] == '^';
    from += opposite;
    size_t end = from;
    while (end < t->n && t->s[end] >= 'a' && t->s[end] <= 'z')
        end++;
    *out_found = ree_onig_next_is(t, "[:") && t->n - end >= 2 && memcmp(t->s + end, ":]", 2) == 0;
    if (!*out_found) return REE_OK;
    const char *items;
    char buffer[80];
    bool other;
    bool punct = end - from == 5 && memcmp(t->s + from, "punct", 5) == 0;
    const char *name = punct ? "posixpunct" : t->s + from;
    REE_TRY(find_property(t, name, punct ? strlen(name) : end - from, "the class of characters",
                          &items, &other, buffer));
    if (items == buffer) return ree_onig_refuse(t, "the class of characters");
    t->at = end + 2;
    ree_onig_add_items(set, items, opposite != other);
    return REE_OK;
}

static enum ree_status class_item(struct ree_onig *t, int depth, struct ree_onig_set *set) {
    bool found = false;
    if (ree_onig_next_is(t, "[")) {
        REE_TRY(posix_bracket(t, set, &found));
        return found ? REE_OK : ree_onig_bracket(t, depth + 1, set);
    }
    if (ree_onig_next_is(t, "\\") && t->n - t->at > 1) {
        t->at++;
        REE_TRY(ree_onig_class_escape(t, set, &found));
        if (!found) t->at--;
        bool range = ree_onig_next_is(t, "-") && t->n - t->at > 1 && t->s[t->at + 1] != ']';
        if (found)
            return range ? ree_onig_refuse(t, "a range that begins with a class of characters")
                         : REE_OK;
    }
    uint32_t low, high;
    REE_TRY(class_char(t, &low));
    ree_onig_put_char(&set->items, low);
    if (!ree_onig_next_is(t, "-") || t->n - t->at < 2 || t->s[t->at + 1] == ']') return REE_OK;
    t->at++;
    if (ree_onig_next_is(t, "[") || ree_onig_next_is(t, "&&"))
        return ree_onig_refuse(t, "a range that ends with a class of characters");
    REE_TRY(class_char(t, &high));
    if (high < low) return ree_onig_wrong(t, "a range without characters");
    ree_onig_put(&set->items, "-");
    ree_onig_put_char(&set->items, high);
    return REE_OK;
}

// Reads the contents of a bracket up to its end: parts separated by &&, whose intersection is the
// set.
static enum ree_status class_body(struct ree_onig *t, int depth, bool opposite,
                                  struct ree_onig_set *whole) {
    struct ree_onig_set part = {0};
    struct ree_strbuf before;
    ree_strbuf_init(&before);
    bool first = true;
    enum ree_status status = REE_OK;
    while (status == REE_OK) {
        bool end = t->at >= t->n || (!first && ree_onig_next_is(t, "]"));
        if (!end && !ree_onig_next_is(t, "&&")) {
            status = class_item(t, depth, &part);
            first = false;
            continue;
        }
        if (t->at >= t->n) status = ree_onig_wrong(t, "an unclosed bracket");
        bool failed = part.items.failed || part.rest.failed; // ree_regex_create reports it
        if (status == REE_OK && !part.items.size && !part.rest.size && !failed)
            status = ree_onig_refuse(t, "a set without characters");
        if (status != REE_OK) break;
        t->at += end ? 1 : 2;
        first = false;
        if (end) break;
        ree_onig_put(&before, "(?=");
        ree_onig_put_set(&before, &part);
        ree_onig_put(&before, ")");
        part.items.size = part.rest.size = 0;
    }
    if (status == REE_OK && !before.size && !opposite) {
        ree_onig_put_strbuf(&whole->items, &part.items);
        if (part.rest.size) add_rest(whole, "", &part.rest, "");
    } else if (status == REE_OK && !before.size && !part.rest.size) {
        add_rest(whole, "[^", &part.items, "]");
    } else if (status == REE_OK) {
        ree_onig_put_set(&before, &part);
        add_rest(whole, opposite ? "(?:(?!" : "(?:", &before, opposite ? ")(?s:.))" : ")");
    }
    whole->items.failed |= part.items.failed || part.rest.failed || before.failed;
    ree_strbuf_finish(&part.items);
    ree_strbuf_finish(&part.rest);
    ree_strbuf_finish(&before);
    return status;
}

enum ree_status ree_onig_bracket(struct ree_onig *t, int depth, struct ree_onig_set *set) {
    if (depth > MAX_NESTED) return ree_onig_refuse(t, "the nesting depth of brackets");
    t->at++;
    bool opposite = ree_onig_take(t, "^");
    return class_body(t, depth, opposite, set);
}
