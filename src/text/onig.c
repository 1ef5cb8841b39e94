#include "text/onig_internal.h"

#include "text/utf8.h"

#define MAX_GROUPS 100

// Outside brackets, Oniguruma uses an older table for the first 256 characters. In it, superscripts
// and fractions are word characters.
#define WORD_ALONE REE_ONIG_WORD "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"

struct group {
    size_t start; // position in the output
    // Number of additional parentheses to close at the end of the group: one for each (?i) or
    // similar option in it, which holds until there.
    size_t extra;
    bool look; // (?=...) and similar groups, which cannot be repeated
};

struct translator {
    struct ree_onig t;
    struct ree_strbuf *out;
    struct group groups[MAX_GROUPS + 1];
    size_t depth;
    // Position in the output where the last item begins; SIZE_MAX: there is no item to repeat.
    size_t atom;
};

static void put_all(struct translator *x, const char *text) {
    x->atom = x->out->size;
    ree_onig_put(x->out, text);
}

static enum ree_status escape(struct translator *x) {
    struct ree_onig *t = &x->t;
    // Escapes that mean the same in both syntaxes.
    static const char *const same[] = {"A", "z", "Z", "G", "R", "X", "N", "K"};
    t->at++;
    if (t->at >= t->n) return ree_onig_wrong(t, "a backslash at the end");
    char c = t->s[t->at];
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        if (c != same[i][0]) continue;
        t->at++;
        put_all(x, "\\");
        ree_onig_put(x->out, same[i]);
        return REE_OK;
    }
    if (c == 'O' || c == 'w' || c == 'W' || c == 'b' || c == 'B') {
        t->at++;
        put_all(x, c == 'O'   ? "(?s:.)"
                   : c == 'w' ? "[" WORD_ALONE "]"
                   : c == 'W' ? "[^" WORD_ALONE "]"
                   : c == 'b' ? "(?:(?<=[" WORD_ALONE "])(?![" WORD_ALONE "])|(?<![" WORD_ALONE
                                "])(?=[" WORD_ALONE "]))"
                              : "(?:(?<=[" WORD_ALONE "])(?=[" WORD_ALONE "])|(?<![" WORD_ALONE
                                "])(?![" WORD_ALONE "]))");
        if (c == 'b' || c == 'B') x->atom = SIZE_MAX;
        return REE_OK;
    }
    if (c >= '1' && c <= '9') {
        uint32_t number;
        size_t size = ree_onig_take_number(t, 10, 3, &number);
        if (size == 3) return ree_onig_refuse(t, "the reference to a group");
        x->atom = x->out->size;
        ree_strbuf_printf(x->out, "\\g{%u}", number);
        return REE_OK;
    }
    if (c == 'k' && t->at + 1 < t->n && t->s[t->at + 1] == '<') {
        const char *end = memchr(t->s + t->at, '>', t->n - t->at);
        if (!end) return ree_onig_refuse(t, "the reference to a group");
        put_all(x, "\\");
        ree_strbuf_append(x->out, t->s + t->at, (size_t)(end - t->s) + 1 - t->at);
        t->at = (size_t)(end - t->s) + 1;
        return REE_OK;
    }
    struct ree_onig_set set = {0};
    bool found;
    uint32_t value;
    enum ree_status status = ree_onig_class_escape(t, &set, &found);
    x->atom = x->out->size;
    if (status == REE_OK && found) ree_onig_put_set(x->out, &set);
    ree_strbuf_finish(&set.items);
    ree_strbuf_finish(&set.rest);
    if (status != REE_OK || found) return status;
    REE_TRY(ree_onig_char_escape(t, &value));
    ree_onig_put_char(x->out, value);
    return REE_OK;
}

// Options (?imx-imx); the position is after the question mark. Oniguruma's m is PCRE2's s.
static enum ree_status options(struct translator *x) {
    struct ree_onig *t = &x->t;
    ree_onig_put(x->out, "(?");
    for (; t->at < t->n && t->s[t->at] != ':' && t->s[t->at] != ')'; t->at++) {
        char c = t->s[t->at];
        if (c != 'i' && c != 'm' && c != '-') return ree_onig_refuse(t, "the group or option");
        ree_onig_put(x->out, c == 'i' ? "i" : c == 'm' ? "s" : "-");
    }
    ree_onig_put(x->out, ":");
    if (ree_onig_take(t, ":")) return REE_OK;
    if (!ree_onig_take(t, ")")) return ree_onig_wrong(t, "an unclosed group");
    // The option holds for the rest of the group, including its alternatives, as one item.
    x->depth--;
    x->groups[x->depth].extra++;
    x->atom = SIZE_MAX;
    return x->groups[x->depth].extra > MAX_GROUPS ? ree_onig_refuse(t, "the number of options")
                                                  : REE_OK;
}

static enum ree_status open_group(struct translator *x) {
    struct ree_onig *t = &x->t;
    static const char *const same[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"};
    if (x->depth == MAX_GROUPS) return ree_onig_refuse(t, "the nesting depth of groups");
    if (ree_onig_take(t, "(?#")) {
        while (t->at < t->n && t->s[t->at] != ')')
            t->at += t->s[t->at] == '\\' && t->at + 1 < t->n ? 2 : 1;
        return ree_onig_take(t, ")") ? REE_OK : ree_onig_wrong(t, "an unclosed comment");
    }
    x->groups[++x->depth] = (struct group){x->out->size, 0, false};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        if (!ree_onig_take(t, same[i])) continue;
        put_all(x, same[i]);
        x->groups[x->depth].look = i >= 1 && i <= 4;
        x->atom = SIZE_MAX;
        return REE_OK;
    }
    if (ree_onig_next_is(t, "(*")) return ree_onig_refuse(t, "the group");
    if (ree_onig_take(t, "(?<")) {
        ree_onig_put(x->out, "(?<");
        while (t->at < t->n && t->s[t->at] != '>' && t->s[t->at] != ')')
            ree_strbuf_append(x->out, t->s + t->at++, 1);
        if (!ree_onig_take(t, ">")) return ree_onig_refuse(t, "the name of a group");
        ree_onig_put(x->out, ">");
    } else if (ree_onig_take(t, "(?")) {
        REE_TRY(options(x));
    } else {
        t->at++;
        ree_onig_put(x->out, "(");
    }
    x->atom = SIZE_MAX;
    return REE_OK;
}

static enum ree_status close_group(struct translator *x) {
    struct ree_onig *t = &x->t;
    if (x->depth == 0) return ree_onig_wrong(t, "the end of a group without a beginning");
    t->at++;
    struct group *group = &x->groups[x->depth--];
    for (; group->extra; group->extra--)
        ree_onig_put(x->out, ")");
    ree_onig_put(x->out, ")");
    x->atom = group->look ? SIZE_MAX : group->start;
    return REE_OK;
}

// Wraps the last item of the output in a group, so that it can be repeated as a whole.
static void wrap(struct translator *x) {
    ree_strbuf_append(x->out, "(?:)", 4); // adds as many bytes as "(?:" and ")" take
    if (x->out->failed) return;
    char *from = x->out->data + x->atom;
    memmove(from + 3, from, x->out->size - x->atom - 4);
    memcpy(from, "(?:", 3);
}

// Reads {n}, {n,}, {,m} or {n,m}. Returns false if it is none of these: then the brace is a
// character.
static bool interval(struct ree_onig *t, uint32_t *low, uint32_t *high, bool *fixed) {
    size_t before = t->at;
    t->at++;
    *low = 0;
    *high = UINT32_MAX;
    bool has_low = ree_onig_take_number(t, 10, 6, low) > 0, has_high = has_low;
    *fixed = !ree_onig_take(t, ",");
    if (*fixed)
        *high = *low;
    else if (!ree_onig_take_number(t, 10, 6, high))
        *high = UINT32_MAX;
    else
        has_high = true;
    if ((has_low || has_high) && ree_onig_take(t, "}")) return true;
    t->at = before;
    return false;
}

static enum ree_status repeat(struct translator *x) {
    struct ree_onig *t = &x->t;
    char c = t->s[t->at];
    if (c != '{') {
        if (x->atom == SIZE_MAX) return ree_onig_wrong(t, "a quantifier without an item");
        t->at++;
        ree_strbuf_append(x->out, &c, 1);
        if (ree_onig_next_is(t, "?") || ree_onig_next_is(t, "+"))
            ree_strbuf_append(x->out, t->s + t->at++, 1);
    } else {
        uint32_t low, high;
        bool fixed;
        if (!interval(t, &low, &high, &fixed)) {
            put_all(x, "\\{");
            t->at++;
            return REE_OK;
        }
        if (x->atom == SIZE_MAX) return ree_onig_wrong(t, "a quantifier without an item");
        if (high < low) return ree_onig_wrong(t, "a quantifier whose maximum is below its minimum");
        ree_strbuf_printf(x->out, high == UINT32_MAX ? "{%u,}" : "{%u,%u}", low, high);
        // After a fixed number, Oniguruma reads a question mark as "optional", not as "lazy".
        if (!fixed && ree_onig_take(t, "?")) ree_onig_put(x->out, "?");
    }
    // If another quantifier follows, it applies to the item with this quantifier.
    if (t->at < t->n && strchr("*+?{", t->s[t->at]) && t->s[t->at]) wrap(x);
    return REE_OK;
}

static enum ree_status item(struct translator *x) {
    struct ree_onig *t = &x->t;
    size_t size;
    switch (t->s[t->at]) {
    case '\\': return escape(x);
    case '(': return open_group(x);
    case ')': return close_group(x);
    case '*':
    case '+':
    case '?':
    case '{': return repeat(x);
    case '[': {
        struct ree_onig_set set = {0};
        enum ree_status status = ree_onig_bracket(t, 0, &set);
        x->atom = x->out->size;
        if (status == REE_OK) ree_onig_put_set(x->out, &set);
        x->out->failed |= set.items.failed || set.rest.failed;
        ree_strbuf_finish(&set.items);
        ree_strbuf_finish(&set.rest);
        return status;
    }
    case '^':
    case '$':
    case '.':
    case '|':
        x->atom = t->s[t->at] == '|' ? SIZE_MAX : x->out->size;
        ree_strbuf_append(x->out, t->s + t->at++, 1);
        return REE_OK;
    default:
        x->atom = x->out->size;
        ree_onig_put_char(x->out, ree_utf8_get(t->s + t->at, &size));
        t->at += size;
        return REE_OK;
    }
}

enum ree_status ree_onig_translate(struct ree_str pattern, struct ree_strbuf *out,
                                   struct ree_error *err) {
    struct translator x = {.t = {pattern.data, pattern.size, 0, err}, .out = out, .atom = SIZE_MAX};
    if (pattern.size > REE_ONIG_MAX)
        return ree_fail(err, REE_UNSUPPORTED,
                        "a regular expression of %zu bytes; the maximum is %d", pattern.size,
                        REE_ONIG_MAX);
    if (ree_utf8_valid_prefix(pattern.data, pattern.size) != pattern.size)
        return ree_fail(err, REE_INVALID, "a regular expression that is not UTF-8");
    while (x.t.at < x.t.n)
        REE_TRY(item(&x));
    if (x.depth) return ree_onig_wrong(&x.t, "an unclosed group");
    for (; x.groups[0].extra; x.groups[0].extra--)
        ree_onig_put(out, ")");
    return REE_OK;
}
