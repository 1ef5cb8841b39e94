// WordPiece: takes the longest piece of the vocabulary at the start of the word, then repeatedly
// the longest continuation (pieces with a prefix, "##"). If this fails, the whole word is unknown.
#include "text/lm.h"
#include "text/utf8.h"

static enum ree_status unknown(const struct ree_lm *lm, struct ree_ids *ids,
                               struct ree_error *err) {
    if (lm->unk < 0)
        return ree_fail(err, REE_INVALID,
                        "a word is not in the vocabulary, which has no token for unknown words");
    return ree_ids_add(ids, lm->unk, err);
}

enum ree_status ree_wordpiece_encode(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                                     const char *piece, size_t n, struct ree_ids *ids,
                                     struct ree_error *err) {
    if (ree_utf8_count(piece, n) > lm->max_chars) return unknown(lm, ids, err);
    struct ree_strbuf *text = &scratch->text;
    text->size = 0;
    ree_strbuf_append(text, lm->prefix.data, lm->prefix.size);
    ree_strbuf_append(text, piece, n);
    if (text->failed) return ree_fail(err, REE_NO_MEMORY, "no memory for a word");
    size_t before = ids->n;
    for (size_t start = 0; start < n;) {
        size_t end = n;
        int32_t id = -1;
        // The prefix overwrites the bytes before `start`, which are no longer needed.
        size_t prefix = start ? lm->prefix.size : 0;
        char *from = text->data + lm->prefix.size + start - prefix;
        if (prefix) memcpy(from, lm->prefix.data, prefix);
        while (end > start) {
            id = ree_vocab_find(&lm->vocab, from, prefix + end - start);
            if (id >= 0) break;
            end -= ree_utf8_last_size(piece, end);
        }
        if (id < 0) {
            ids->n = before;
            return unknown(lm, ids, err);
        }
        REE_TRY(ree_ids_add(ids, id, err));
        start = end;
    }
    return REE_OK;
}
