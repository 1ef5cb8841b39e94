#include "text/chat_texts.h"

#include "base/strbuf.h"

#include <ctype.h>
#include <string.h>

struct walk {
    bool (*visit)(void *user, const char *text);
    void *user;
    struct ree_strbuf text;
};

static bool give(struct walk *walk) {
    ree_strbuf_append(&walk->text, "", 0);
    bool ok = !walk->text.failed && walk->visit(walk->user, walk->text.data ? walk->text.data : "");
    walk->text.size = 0;
    if (walk->text.data) walk->text.data[0] = '\0';
    return ok;
}

// Appends the contents of a string literal to walk->text; `at` is at its opening quote. Returns the
// position after the literal, or NULL if it is malformed.
static const char *literal(struct walk *walk, const char *at) {
    char quote = *at++;
    for (; *at && *at != quote; at++) {
        char c = *at;
        if (c == '\\') {
            c = *++at;
            const char *name = c ? strchr("nrt", c) : NULL;
            if (name)
                c = "\n\r\t"[name - "nrt"];
            else if (!c || !strchr("\\'\"", c))
                return NULL;
        }
        ree_strbuf_append(&walk->text, &c, 1);
    }
    return *at ? at + 1 : NULL;
}

static const char *skip_space(const char *at) {
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

// Skips the arguments of raise_exception; `at` is at the parenthesis. Returns the position after
// them, or NULL if a literal is malformed.
static const char *skip_call(struct walk *walk, const char *at) {
    int depth = 0;
    while (at && *at) {
        if (*at == '\'' || *at == '"') {
            at = literal(walk, at);
            continue;
        }
        depth += (*at == '(') - (*at == ')');
        at++;
        if (depth == 0) break;
    }
    walk->text.size = 0;
    return at;
}

// Visits the literals of {{ ... }} or {% ... %}; `at` is after the opening. Returns the position
// after the end, or NULL if the tag is malformed or a visit returned false.
static const char *tag(struct walk *walk, const char *at, char closing) {
    static const char raise[] = "raise_exception";
    while (at && *at && !(at[0] == closing && at[1] == '}')) {
        if (strncmp(at, raise, sizeof raise - 1) == 0) {
            at = skip_call(walk, skip_space(at + sizeof raise - 1));
            continue;
        }
        if (*at != '\'' && *at != '"') {
            at++;
            continue;
        }
        for (;;) {
            at = literal(walk, at);
            const char *next = at ? skip_space(at) : "";
            if (*next != '+') break;
            next = skip_space(next + 1);
            if (*next != '\'' && *next != '"') break;
            at = next;
        }
        if (!at || !give(walk)) return NULL;
    }
    return at && *at ? at + 2 : NULL;
}

// Visits a text outside tags, without the white space that Jinja removes. `before` is the closing
// character of the tag before the text (0: none), `strip` tells whether that tag ends with a minus
// sign, and `next` is the tag after the text ("": none).
static bool outside(struct walk *walk, const char *from, const char *to, char before, bool strip,
                    const char *next) {
    bool strip_end = next[0] && (next[2] == '-');
    bool block = next[0] && (next[1] == '%' || next[1] == '#');
    if (strip)
        while (from < to && isspace((unsigned char)*from))
            from++;
    else if ((before == '%' || before == '#') && from < to && *from == '\n')
        from++;
    if (strip_end) {
        while (to > from && isspace((unsigned char)to[-1]))
            to--;
    } else if (block && next[2] != '+') {
        const char *line = to;
        while (line > from && (line[-1] == ' ' || line[-1] == '\t'))
            line--;
        if (line == from ? before == '\0' || (from[-1] == '\n') : line[-1] == '\n') to = line;
    } else if (!next[0] && to > from && to[-1] == '\n') {
        to--; // Jinja removes the template's last newline
    }
    if (from == to) return true;
    ree_strbuf_append(&walk->text, from, (size_t)(to - from));
    return give(walk);
}

static const char *next_tag(const char *at) {
    for (; *at; at++)
        if (at[0] == '{' && (at[1] == '{' || at[1] == '%' || at[1] == '#')) return at;
    return at;
}

static bool each_text(struct walk *walk, const char *at) {
    char before = '\0';
    bool strip = false;
    for (;;) {
        const char *next = next_tag(at);
        if (!outside(walk, at, next, before, strip, next)) return false;
        if (!*next) return true;
        char closing = next[1] == '{' ? '}' : next[1];
        if (closing == '#') {
            at = strstr(next + 2, "#}");
            at = at ? at + 2 : NULL;
        } else {
            at = tag(walk, next + 2, closing);
        }
        if (!at) return false;
        before = closing;
        strip = at[-3] == '-';
    }
}

bool ree_chat_each_text(const char *jinja, bool (*visit)(void *user, const char *text),
                        void *user) {
    struct walk walk = {visit, user, {0}};
    bool ok = each_text(&walk, jinja);
    ree_strbuf_finish(&walk.text);
    return ok;
}
