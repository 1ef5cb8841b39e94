// Normalizers: text to text, before it is cut.
#ifndef REE_TEXT_NORMALIZE_H
#define REE_TEXT_NORMALIZE_H

#include "text/stage.h"

// Normalizes *text, valid UTF-8, in place. *origin: how many bytes at its beginning come from where
// the whole text begins, before and after. Fails when a stage makes more than `limit` bytes.
enum ree_status ree_normalize(const struct ree_stage *stage, struct ree_strbuf *text,
                              size_t *origin, size_t limit, struct ree_error *err);

// Appends the text in NFC (compose), NFD, or with `compat` NFKC, NFKD.
enum ree_status ree_unicode_form(bool compose, bool compat, const char *text, size_t n,
                                 struct ree_strbuf *out, struct ree_error *err);

// A SentencePiece character map ("Precompiled"): the size in units of its double array, checked;
// and the map over a text, until more than `limit` bytes are made.
enum ree_status ree_charsmap_check(struct ree_str blob, uint32_t *out_units, struct ree_error *err);
void ree_charsmap_apply(const struct ree_stage *stage, const char *text, size_t n, size_t limit,
                        struct ree_strbuf *out);

#endif
