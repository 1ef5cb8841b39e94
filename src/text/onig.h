// Translates regular expressions from Oniguruma's syntax, which tokenizer files use, to PCRE2's.
#ifndef REE_TEXT_ONIG_H
#define REE_TEXT_ONIG_H

#include "base/strbuf.h"
#include "text/vocab.h"

// Maximum bytes of a pattern. No tokenizer has a longer one, and it would make loading slow.
#define REE_ONIG_MAX 32768

// Appends to *out a pattern that means the same to PCRE2 (UTF, UCP, MULTILINE) as `pattern` means
// to Oniguruma 6.9 in its own syntax. Fails with REE_UNSUPPORTED, and names the construct, for
// syntax that cannot be translated here. Some patterns that are invalid in both may be translated;
// PCRE2 then rejects them.
enum ree_status ree_onig_translate(struct ree_str pattern, struct ree_strbuf *out,
                                   struct ree_error *err);

// Translates the property of characters (\p{name}, [:name:]) that `name` of n bytes denotes
// (onig_names.c). *out_items receives a text that means the property inside brackets of PCRE2, or
// the property's complement if *out_opposite becomes true. The text is static or in `buffer`. Fails
// with REE_INVALID if the name is unknown, and with REE_NO_MEMORY.
enum ree_status ree_onig_property(const char *name, size_t n, const char **out_items,
                                  bool *out_opposite, char buffer[80]);

// Sets of characters for use inside brackets of PCRE2: White_Space, word characters, hexadecimal
// digits.
#define REE_ONIG_SPACE "\\t-\\r\\x{85}\\p{Z}"
#define REE_ONIG_WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define REE_ONIG_XDIGIT "0-9A-Fa-f"

#endif
