// Regular expressions of tokenizer files. They are written in Oniguruma's syntax (Ruby) and run by
// PCRE2. onig.h translates the differences and rejects what it does not know.
#ifndef REE_TEXT_REGEX_H
#define REE_TEXT_REGEX_H

#include "text/vocab.h"

struct ree_regex;

// Fails with REE_INVALID and PCRE2's message if the pattern does not compile, and with
// REE_UNSUPPORTED if onig.h rejects it.
enum ree_status ree_regex_create(struct ree_str pattern, struct ree_regex **out_regex,
                                 struct ree_error *err);
void ree_regex_destroy(struct ree_regex *regex);

// Searches in the texts of one call. A matcher belongs to one thread. The work of all its searches
// together is limited, by a constant plus a multiple of the matched bytes.
struct ree_matcher;
enum ree_status ree_matcher_create(const struct ree_regex *regex, struct ree_matcher **out_matcher,
                                   struct ree_error *err);
void ree_matcher_destroy(struct ree_matcher *matcher);
// Finds the first match at or after `from` in valid UTF-8; *out_found is false if there is none.
// Fails if the pattern needs more steps or memory than allowed.
enum ree_status ree_matcher_find(struct ree_matcher *matcher, const char *text, size_t n,
                                 size_t from, bool *out_found, size_t *out_start, size_t *out_end,
                                 struct ree_error *err);

#endif
