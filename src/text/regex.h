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

// The memory for searches with any number of regexes, and the limit of their work. One matcher
// serves a whole call (an encoding, a decoder, the loading of a tokenizer). So the number of
// regexes and of texts in the call does not multiply memory or work. A matcher belongs to one
// thread.
struct ree_matcher;
enum ree_status ree_matcher_create(struct ree_matcher **out_matcher, struct ree_error *err);
void ree_matcher_destroy(struct ree_matcher *matcher);
// The work of all searches together is limited: a constant plus a multiple of the bytes of text.
// Call this function for each text of the call. `nbytes` is the size before any stage makes the
// text longer.
void ree_matcher_add_text(struct ree_matcher *matcher, size_t nbytes);
// Finds the first match of `regex` at or after byte `from` of a text, which must be valid UTF-8 of
// n bytes. The match is bytes *out_start to *out_end - 1; *out_found is false if there is none.
// Fails with
// - REE_UNSUPPORTED if the searches take more work or memory than allowed, or if the pattern moves
//   the start of its match (\K)
// - REE_NO_MEMORY if memory is exhausted
enum ree_status ree_matcher_find(struct ree_matcher *matcher, const struct ree_regex *regex,
                                 const char *text, size_t n, size_t from, bool *out_found,
                                 size_t *out_start, size_t *out_end, struct ree_error *err);

#endif
