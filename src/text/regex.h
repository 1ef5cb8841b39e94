// Regular expressions of tokenizer files. They are written in Oniguruma's syntax (Ruby) and run by
// PCRE2. onig.h translates the differences and rejects what it does not know.
#ifndef REE_TEXT_REGEX_H
#define REE_TEXT_REGEX_H

#include "text/vocab.h"

struct ree_regex;

// Compiles a pattern. Fails with REE_INVALID and PCRE2's message if the pattern does not compile,
// and with REE_UNSUPPORTED if onig.h rejects it.
enum ree_status ree_regex_create(struct ree_str pattern, struct ree_regex **out_regex,
                                 struct ree_error *err);
void ree_regex_destroy(struct ree_regex *regex);

// The state for searching with a regex, which must outlive it. A matcher belongs to one thread. The
// work of all its searches together is limited: a constant plus a multiple of the matched bytes.
struct ree_matcher;
enum ree_status ree_matcher_create(const struct ree_regex *regex, struct ree_matcher **out_matcher,
                                   struct ree_error *err);
void ree_matcher_destroy(struct ree_matcher *matcher);
// Finds the first match at or after byte `from` of a text, which must be valid UTF-8 of n bytes.
// The match is bytes *out_start to *out_end - 1; *out_found is false if there is none. Fails with
// REE_INVALID if the search takes more work or memory than allowed, and with REE_UNSUPPORTED if the
// pattern moves the start of its match (\K).
enum ree_status ree_matcher_find(struct ree_matcher *matcher, const char *text, size_t n,
                                 size_t from, bool *out_found, size_t *out_start, size_t *out_end,
                                 struct ree_error *err);

#endif
