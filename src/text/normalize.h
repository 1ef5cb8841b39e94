// Normalizers of tokenizers: rewrite a text before it is cut into pieces, for example in lower
// case.
#ifndef REE_TEXT_NORMALIZE_H
#define REE_TEXT_NORMALIZE_H

#include "text/stage.h"

// Maximum bytes that stages may add to texts of n bytes in total. Only a malicious file exceeds it.
#define REE_GROWTH_MAX(n) ((uint64_t)(n)*64 + (1u << 20))

// What all texts of a call share. The call is an encoding, or the loading of a tokenizer.
struct ree_normalizing {
    struct ree_matcher *matcher; // for all searches; borrowed
    uint64_t n_left;             // bytes that stages may still add to the texts
};

// Normalizes *text, which must be valid UTF-8, in place. *origin is the number of bytes at its
// beginning that come from the first character of the whole text of which *text is a part; the call
// updates it. Subtracts the bytes that each stage adds from run->n_left; bytes that a stage removes
// are not given back. Fails with REE_UNSUPPORTED if a stage would add more, or if the searches of
// run->matcher exceed their limit.
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
