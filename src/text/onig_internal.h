// Internal interface of onig.c and onig_class.c, which translate patterns from Oniguruma's syntax
// to PCRE2's: the position in a pattern, and sets of characters.
#ifndef REE_TEXT_ONIG_INTERNAL_H
#define REE_TEXT_ONIG_INTERNAL_H

#include "text/onig.h"

struct ree_onig {
    const char *s; // the pattern, valid UTF-8
    size_t n, at;
    struct ree_error *err;
};

// A set of characters: the union of PCRE2's [items] and of the alternatives in `rest`, which are
// separated by |. Each alternative matches one character.
struct ree_onig_set {
    struct ree_strbuf items, rest;
};

// Both functions write a message with `what`, the construct at the current position, and return an
// error: ree_onig_refuse REE_UNSUPPORTED (cannot be translated), ree_onig_wrong REE_INVALID (not a
// valid pattern).
enum ree_status ree_onig_refuse(struct ree_onig *t, const char *what);
enum ree_status ree_onig_wrong(struct ree_onig *t, const char *what);
bool ree_onig_next_is(const struct ree_onig *t, const char *text);
// Skips `text` and returns true if it is next in the pattern; otherwise returns false.
bool ree_onig_take(struct ree_onig *t, const char *text);
size_t ree_onig_take_number(struct ree_onig *t, int base, size_t most_digits, uint32_t *out);

void ree_onig_put(struct ree_strbuf *out, const char *text);
void ree_onig_put_strbuf(struct ree_strbuf *out, const struct ree_strbuf *text);
// Appends the character c, escaped so that it is literal anywhere in a pattern.
void ree_onig_put_char(struct ree_strbuf *out, uint32_t c);
// Appends a pattern that matches one character of the set.
void ree_onig_put_set(struct ree_strbuf *out, const struct ree_onig_set *set);
// Adds the characters of PCRE2's [items] to the set, or all others if `opposite`.
void ree_onig_add_items(struct ree_onig_set *set, const char *items, bool opposite);

// Reads a bracket [...] and adds its characters to the set. The position must be at the opening
// bracket. `depth` is the number of brackets around it.
enum ree_status ree_onig_bracket(struct ree_onig *t, int depth, struct ree_onig_set *set);
// Reads an escape that stands for a set of characters, such as \w, and adds them to the set. The
// position must be after the backslash. If it is another escape, *out_found is false and nothing is
// read.
enum ree_status ree_onig_class_escape(struct ree_onig *t, struct ree_onig_set *set,
                                      bool *out_found);
// Reads an escape that stands for one character, such as \n or \x41, into *out. The position must
// be after the backslash.
enum ree_status ree_onig_char_escape(struct ree_onig *t, uint32_t *out);

#endif
