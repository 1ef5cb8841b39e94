// Regular expressions of tokenizer files: written for Oniguruma (Ruby's syntax), run by PCRE2.
//
// onig.h rewrites what the two take differently, and refuses what it does not know.
#ifndef REE_TEXT_REGEX_H
#define REE_TEXT_REGEX_H

#include "text/vocab.h"

struct ree_regex;

// REE_INVALID with PCRE2's message when the pattern does not compile; REE_UNSUPPORTED where onig.h
// refuses it.
enum ree_status ree_regex_create(struct ree_str pattern, struct ree_regex **out_regex,
                                 struct ree_error *err);
void ree_regex_destroy(struct ree_regex *regex);

// Searches in the texts of one call; a matcher belongs to one thread. What it may cost is limited
// over all its searches, by a constant and a multiple of the bytes that were matched.
struct ree_matcher;
enum ree_status ree_matcher_create(const struct ree_regex *regex, struct ree_matcher **out_matcher,
                                   struct ree_error *err);
void ree_matcher_destroy(struct ree_matcher *matcher);
// The first match at or after `from` in valid UTF-8. *out_found tells whether there is one. Fails
// when the pattern needs more steps or memory than allowed.
enum ree_status ree_matcher_find(struct ree_matcher *matcher, const char *text, size_t n,
                                 size_t from, bool *out_found, size_t *out_start, size_t *out_end,
                                 struct ree_error *err);

#endif
