// What onig.c and onig_class.c share: the place in a pattern, and sets of characters.
#ifndef REE_TEXT_ONIG_PARTS_H
#define REE_TEXT_ONIG_PARTS_H

#include "text/onig.h"

struct ree_onig {
    const char *s; // the pattern, valid UTF-8
    size_t n, at;
    struct ree_error *err;
};

// Characters: those that `items` says inside brackets, and those that match one of the alternatives
// in `rest`.
struct ree_onig_set {
    struct ree_strbuf items, rest;
};

// What is not rewritten here, and what is no pattern.
enum ree_status ree_onig_refuse(struct ree_onig *t, const char *what);
enum ree_status ree_onig_wrong(struct ree_onig *t, const char *what);
bool ree_onig_next_is(const struct ree_onig *t, const char *text);
bool ree_onig_take(struct ree_onig *t, const char *text); // moves behind it if it is next
size_t ree_onig_take_number(struct ree_onig *t, int base, size_t most_digits, uint32_t *out);

void ree_onig_put(struct ree_strbuf *out, const char *text);
void ree_onig_put_strbuf(struct ree_strbuf *out, const struct ree_strbuf *text);
void ree_onig_put_char(struct ree_strbuf *out, uint32_t c); // stands for itself everywhere
// One character of the set, as a pattern.
void ree_onig_put_set(struct ree_strbuf *out, const struct ree_onig_set *set);
// Adds what `items` says inside brackets, or its opposite.
void ree_onig_add_items(struct ree_onig_set *set, const char *items, bool opposite);

// [...], from its bracket on.
enum ree_status ree_onig_bracket(struct ree_onig *t, int depth, struct ree_onig_set *set);
// An escape that stands for a set, behind its backslash; *out_found tells whether it is one.
enum ree_status ree_onig_class_escape(struct ree_onig *t, struct ree_onig_set *set,
                                      bool *out_found);
// An escape that stands for one character, behind its backslash.
enum ree_status ree_onig_char_escape(struct ree_onig *t, uint32_t *out);

#endif
