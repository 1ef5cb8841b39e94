// Normalizers of tokenizers: rewrite a text before it is cut into pieces, for example in lower
// case.
#ifndef REE_TEXT_NORMALIZE_H
#define REE_TEXT_NORMALIZE_H

#include "text/stage.h"

struct ree_normalizing {
    struct ree_matcher *matcher; // for all searches of the call
    size_t limit;                // maximum bytes that a stage may make
};

// Normalizes *text, which must be valid UTF-8, in place. *origin is the number of bytes at its
// beginning that come from the first character of the whole text of which *text is a part; the call
// updates it. Fails with REE_UNSUPPORTED if a stage makes more than run->limit bytes, or if the
// searches of run->matcher exceed their limit.
enum ree_status ree_normalize(const struct ree_stage *stage, struct ree_normalizing *run,
                              struct ree_strbuf *text, size_t *origin, struct ree_error *err);

// Appends the text, valid UTF-8 of n bytes, in a Unicode normalization form: NFC if `compose`,
// otherwise NFD; with `compat` NFKC or NFKD.
enum ree_status ree_unicode_form(bool compose, bool compat, const char *text, size_t n,
                                 struct ree_strbuf *out, struct ree_error *err);

// A SentencePiece character map (stage "Precompiled") holds a trie as a double array.
// ree_charsmap_check fails with REE_INVALID if the map `blob` is malformed; *out_units receives the
// length of the double array. ree_charsmap_apply appends the mapped text, and stops when *out has
// more than `limit` bytes.
enum ree_status ree_charsmap_check(struct ree_str blob, uint32_t *out_units, struct ree_error *err);
void ree_charsmap_apply(const struct ree_stage *stage, const char *text, size_t n, size_t limit,
                        struct ree_strbuf *out);

#endif
