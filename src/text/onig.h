// Oniguruma's syntax of regular expressions, as tokenizer files have it, rewritten for PCRE2.
#ifndef REE_TEXT_ONIG_H
#define REE_TEXT_ONIG_H

#include "base/strbuf.h"
#include "text/vocab.h"

// Bytes of a pattern; longer ones make loading slow and are of no tokenizer.
#define REE_ONIG_MAX 32768

// Appends to *out a pattern that means to PCRE2 (UTF, UCP, MULTILINE) what `pattern` means to
// Oniguruma 6.9 in its own syntax. REE_UNSUPPORTED, with what it is, for syntax that is not
// rewritten here; what neither takes may also be left for PCRE2 to refuse.
enum ree_status ree_onig_translate(struct ree_str pattern, struct ree_strbuf *out,
                                   struct ree_error *err);

// What stands inside brackets for a property of characters (\p{name}, [:name:]) in *out_items; with
// *out_opposite, for its opposite (onig_names.c). REE_INVALID for a name that is not one;
// REE_NO_MEMORY.
enum ree_status ree_onig_property(const char *name, size_t n, const char **out_items,
                                  bool *out_opposite, char buffer[80]);

// Inside brackets: White_Space, and word characters.
#define REE_ONIG_SPACE "\\t-\\r\\x{85}\\p{Z}"
#define REE_ONIG_WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"
#define REE_ONIG_XDIGIT "0-9A-Fa-f"

#endif
