// Normalizers: convert text to text before it is cut into pieces.
#ifndef REE_TEXT_NORMALIZE_H
#define REE_TEXT_NORMALIZE_H

#include "text/stage.h"

// Normalizes *text, which must be valid UTF-8, in place. *origin: number of bytes at its beginning
// that come from the beginning of the whole text; updated. Fails if a stage makes more than `limit`
// bytes.
enum ree_status ree_normalize(const struct ree_stage *stage, struct ree_strbuf *text,
                              size_t *origin, size_t limit, struct ree_error *err);

// Appends the text in NFC (compose) or NFD; with `compat` in NFKC or NFKD.
enum ree_status ree_unicode_form(bool compose, bool compat, const char *text, size_t n,
                                 struct ree_strbuf *out, struct ree_error *err);

// A SentencePiece character map ("Precompiled"). ree_charsmap_check checks it and returns the size
// of its double array in units. ree_charsmap_apply maps a text, and stops after more than `limit`
// bytes.
enum ree_status ree_charsmap_check(struct ree_str blob, uint32_t *out_units, struct ree_error *err);
void ree_charsmap_apply(const struct ree_stage *stage, const char *text, size_t n, size_t limit,
                        struct ree_strbuf *out);

#endif
