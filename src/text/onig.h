// Translates regular expressions from Oniguruma's syntax, which tokenizer files use, to PCRE2's.
#ifndef REE_TEXT_ONIG_H
#define REE_TEXT_ONIG_H

#include "base/strbuf.h"
#include "text/vocab.h"

// Maximum bytes of a pattern. Longer ones make loading slow, and no tokenizer has them.
#define REE_ONIG_MAX 32768

// Appends to *out a pattern that means the same to PCRE2 (UTF, UCP, MULTILINE) as `pattern` means
// to Oniguruma 6.9 in its own syntax. Fails with REE_UNSUPPORTED, and names the construct, for
// syntax that cannot be translated here. Some patterns that are invalid in both may be translated;
// PCRE2 then rejects them.
enum ree_status ree_onig_translate(struct ree_str pattern, struct ree_strbuf *out,
                                   struct ree_error *err);

// Finds a property of characters (\p{name}, [:name:]; onig_names.c). *out_items receives PCRE2's
// form of it for use inside brackets; if *out_opposite is set, the form of its complement. The form
// may be stored in `buffer`. Fails with REE_INVALID for an unknown name, and with REE_NO_MEMORY.
enum ree_status ree_onig_property(const char *name, size_t n, const char **out_items,
                                  bool *out_opposite, char buffer[80]);

// For use inside brackets: White_Space, word characters, hexadecimal digits.
#define REE_ONIG_SPACE "\\t-\\r\\x{85}\\p{Z}"
#define REE_ONIG_WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define REE_ONIG_XDIGIT "0-9A-Fa-f"

#endif
