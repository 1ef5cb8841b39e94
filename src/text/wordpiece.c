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

enum ree_status ree_wordpiece_prepare(struct ree_lm *lm, struct ree_error *err) {
    REE_TRY(ree_lm_make_trie(lm, err));
    lm->prefix_node = 0;
    for (size_t i = 0; i < lm->prefix.size; i++) {
        lm->prefix_node =
            ree_trie_step(&lm->trie, lm->prefix_node, (unsigned char)lm->prefix.data[i]);
        if (!lm->prefix_node) break;
    }
    return REE_OK;
}

// Returns the id of the longest piece at the start of the text of n bytes, and its size; -1: none.
// Pieces and text are whole characters, so a piece ends at the end of a character of the text.
static int32_t longest(const struct ree_lm *lm, const struct ree_lm_scratch *scratch, uint32_t node,
                       const char *text, size_t n, size_t *out_size) {
    int32_t best = -1;
    for (size_t i = 0; i < n && i < REE_PIECE_MAX; i++) {
        node = ree_trie_step(&lm->trie, node, (unsigned char)text[i]);
        if (!node) break;
        int32_t id = ree_lm_found(lm, scratch, lm->trie.nodes[node].value);
        if (id < 0) continue;
        best = id;
        *out_size = i + 1;
    }
    return best;
}

enum ree_status ree_wordpiece_encode(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                                     const char *piece, size_t n, struct ree_ids *ids,
                                     struct ree_error *err) {
    if (ree_utf8_count(piece, n) > lm->max_chars) return unknown(lm, ids, err);
    size_t before = ids->n;
    for (size_t start = 0, size = 0; start < n; start += size) {
        bool continues = start > 0 && lm->prefix.size > 0;
        int32_t id = continues && !lm->prefix_node
                         ? -1
                         : longest(lm, scratch, continues ? lm->prefix_node : 0, piece + start,
                                   n - start, &size);
        if (id < 0) {
            ids->n = before;
            return unknown(lm, ids, err);
        }
        REE_TRY(ree_ids_add(ids, id, err));
    }
    return REE_OK;
}
