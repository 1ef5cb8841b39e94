#include "text/lm.h"

#include "base/memory.h"
#include "text/utf8.h"

#include <stdio.h>
#include <stdlib.h>

void ree_lm_finish(struct ree_lm *lm) {
    ree_vocab_finish(&lm->vocab);
    ree_trie_finish(&lm->trie);
    ree_free(lm->merges);
    ree_free(lm->adjacent);
    ree_free(lm->scores);
    ree_free(lm->special);
    memset(lm, 0, sizeof *lm);
}

enum ree_status ree_ids_grow(struct ree_ids *ids, struct ree_error *err) {
    size_t capacity = ids->capacity ? ids->capacity * 2 : 256;
    int32_t *items = ree_realloc(ids->items, capacity * sizeof *items);
    if (!items) return ree_fail(err, REE_NO_MEMORY, "no memory for token ids");
    ids->items = items;
    ids->capacity = capacity;
    return REE_OK;
}

static enum ree_status check_pieces(const struct ree_lm *lm, struct ree_error *err) {
    bool searched = lm->kind == REE_LM_UNIGRAM || lm->kind == REE_LM_WORDPIECE;
    size_t most = searched ? REE_PIECE_MAX : REE_WORD_MAX;
    for (uint32_t id = 0; id < lm->vocab.n; id++) {
        const struct ree_str *piece = ree_vocab_piece(&lm->vocab, (int32_t)id);
        if (piece && piece->size > most)
            return ree_fail(err, REE_UNSUPPORTED,
                            "token %u has %zu bytes, more than the %zu that a model of this kind "
                            "may have",
                            id, piece->size, most);
    }
    return REE_OK;
}

enum ree_status ree_lm_prepare(struct ree_lm *lm, struct ree_error *err) {
    REE_TRY(check_pieces(lm, err));
    for (int byte = 0; byte < 256; byte++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", byte);
        lm->byte_ids[byte] = ree_vocab_find(&lm->vocab, text, 6);
    }
    if (lm->kind != REE_LM_UNIGRAM) {
        const struct ree_str *unk = &lm->unk_token;
        lm->unk = unk->data ? ree_vocab_find(&lm->vocab, unk->data, unk->size) : -1;
    }
    if (lm->kind == REE_LM_BPE) return ree_bpe_prepare(lm, err);
    if (lm->kind == REE_LM_UNIGRAM) return ree_unigram_prepare(lm, err);
    return lm->kind == REE_LM_WORDPIECE ? ree_wordpiece_prepare(lm, err) : REE_OK;
}

enum ree_status ree_lm_make_trie(struct ree_lm *lm, struct ree_error *err) {
    size_t n = 0;
    struct ree_trie_entry *entries = ree_alloc_zeroed(lm->vocab.n + 1, sizeof *entries);
    if (!entries) return ree_fail(err, REE_NO_MEMORY, "no memory for the vocabulary");
    for (uint32_t id = 0; id < lm->vocab.n; id++) {
        const struct ree_str *piece = ree_vocab_piece(&lm->vocab, (int32_t)id);
        if (piece && piece->size) entries[n++] = (struct ree_trie_entry){*piece, (int32_t)id};
    }
    enum ree_status status = ree_trie_init(&lm->trie, entries, n, err);
    ree_free(entries);
    return status;
}

static enum ree_status encode_wordlevel(const struct ree_lm *lm,
                                        const struct ree_lm_scratch *scratch, const char *piece,
                                        size_t n, struct ree_ids *ids, struct ree_error *err) {
    int32_t id = ree_lm_found(lm, scratch, ree_vocab_find(&lm->vocab, piece, n));
    if (id < 0) id = lm->unk;
    if (id >= 0) return ree_ids_add(ids, id, err);
    return ree_fail(
        err, REE_INVALID,
        "the word '%.*s' is not in the vocabulary, which has no token for unknown words",
        n > 80 ? 80 : (int)n, piece);
}

enum ree_status ree_lm_encode(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                              const char *piece, size_t n, struct ree_ids *ids,
                              struct ree_error *err) {
    switch (lm->kind) {
    case REE_LM_BPE: return ree_bpe_encode(lm, scratch, piece, n, ids, err);
    case REE_LM_UNIGRAM: return ree_unigram_encode(lm, scratch, piece, n, ids, err);
    case REE_LM_WORDPIECE: return ree_wordpiece_encode(lm, scratch, piece, n, ids, err);
    default: return encode_wordlevel(lm, scratch, piece, n, ids, err);
    }
}
