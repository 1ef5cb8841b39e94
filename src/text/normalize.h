// Normalizers: text to text, before it is cut.
#ifndef REE_TEXT_NORMALIZE_H
#define REE_TEXT_NORMALIZE_H

#include "text/stage.h"

// Normalizes *text, valid UTF-8, in place.
enum ree_status ree_normalize(const struct ree_stage *stage, struct ree_strbuf *text,
                              struct ree_error *err);

// A SentencePiece character map ("Precompiled"): the size in units of its double array, checked;
// and the map over a text.
enum ree_status ree_charsmap_check(struct ree_str blob, uint32_t *out_units, struct ree_error *err);
void ree_charsmap_apply(const struct ree_stage *stage, const char *text, size_t n,
                        struct ree_strbuf *out);

#endif
