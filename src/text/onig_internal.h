// Internal interface of onig.c and onig_class.c: the position in a pattern, and sets of characters.
#ifndef REE_TEXT_ONIG_INTERNAL_H
#define REE_TEXT_ONIG_INTERNAL_H

#include "text/onig.h"

struct ree_onig {
    const char *s; // the pattern, valid UTF-8
    size_t n, at;
    struct ree_error *err;
};

// A set of characters: those that match [items], and those that match one of the alternatives in
// `rest`.
struct ree_onig_set {
    struct ree_strbuf items, rest;
};

// These functions fail: ree_onig_refuse with REE_UNSUPPORTED (cannot be translated), ree_onig_wrong
// with REE_INVALID (not a valid pattern). `what` names the construct.
enum ree_status ree_onig_refuse(struct ree_onig *t, const char *what);
enum ree_status ree_onig_wrong(struct ree_onig *t, const char *what);
bool ree_onig_next_is(const struct ree_onig *t, const char *text);
bool ree_onig_take(struct ree_onig *t, const char *text); // skips `text` if it is next
size_t ree_onig_take_number(struct ree_onig *t, int base, size_t most_digits, uint32_t *out);

void ree_onig_put(struct ree_strbuf *out, const char *text);
void ree_onig_put_strbuf(struct ree_strbuf *out, const struct ree_strbuf *text);
// Escaped, so that it is literal anywhere.
void ree_onig_put_char(struct ree_strbuf *out, uint32_t c);
// Appends a pattern that matches one character of the set.
void ree_onig_put_set(struct ree_strbuf *out, const struct ree_onig_set *set);
// Adds [items], or its complement.
void ree_onig_add_items(struct ree_onig_set *set, const char *items, bool opposite);

// Reads [...]; the position must be at the bracket.
enum ree_status ree_onig_bracket(struct ree_onig *t, int depth, struct ree_onig_set *set);
// Reads an escape that stands for a set; the position must be after the backslash. *out_found is
// false if it is another escape.
enum ree_status ree_onig_class_escape(struct ree_onig *t, struct ree_onig_set *set,
                                      bool *out_found);
// Reads an escape that stands for one character; the position must be after the backslash.
enum ree_status ree_onig_char_escape(struct ree_onig *t, uint32_t *out);

#endif
