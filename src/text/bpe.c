// Byte pair encoding (Sennrich et al., 2016): a word is cut into characters, and the adjacent pair
// with the lowest rank is merged until no pair can be merged.
#include "text/bytes.h"
#include "base/hash.h"
#include "base/memory.h"
#include "text/lm.h"
#include "text/utf8.h"

#include <stdlib.h>

enum ree_status ree_bpe_add_merge(struct ree_lm *lm, int32_t left, int32_t right, int32_t id,
                                  uint32_t rank, struct ree_error *err) {
    if (!lm->merges || (uint64_t)lm->n_merges * 2 >= lm->merge_mask) {
        uint32_t old = lm->merges ? lm->merge_mask + 1 : 0, n = old ? old * 2 : 1024;
        struct ree_merge *merges = ree_alloc(n * sizeof *merges), *before = lm->merges;
        if (!merges) return ree_fail(err, REE_NO_MEMORY, "no memory for the merges");
        for (uint32_t i = 0; i < n; i++)
            merges[i] = (struct ree_merge){.id = -1};
        ree_hash_init();
        lm->merges = merges;
        lm->merge_mask = n - 1;
        for (uint32_t i = 0; i < old; i++) {
            if (before[i].id < 0) continue;
            uint32_t at = (uint32_t)ree_hash_u64(before[i].pair);
            for (at &= lm->merge_mask; merges[at].id >= 0;)
                at = (at + 1) & lm->merge_mask;
            merges[at] = before[i];
        }
        ree_free(before);
    }
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    uint32_t at = (uint32_t)ree_hash_u64(pair) & lm->merge_mask;
    while (lm->merges[at].id >= 0 && lm->merges[at].pair != pair)
        at = (at + 1) & lm->merge_mask;
    if (lm->merges[at].id < 0) lm->n_merges++;
    lm->merges[at] = (struct ree_merge){pair, rank, id};
    return REE_OK;
}

// Adjacent characters. A long piece is cut into words at positions that no merge can span, because
// without a pre-tokenizer (SentencePiece) a whole text is one piece. A merged symbol is the
// concatenation of its parts. So if two characters are adjacent in no merged symbol, they are never
// adjacent within a symbol.

#define ADJACENT_BITS 18

static uint32_t pair_bit(uint32_t left, uint32_t right) {
    return (uint32_t)(ree_hash_fold((uint64_t)left << 32 | right, 0xA0761D6478BD642Fu) >>
                      (64 - ADJACENT_BITS));
}

static bool may_stand_together(const struct ree_lm *lm, uint32_t left, uint32_t right) {
    uint32_t bit = pair_bit(left, right);
    return lm->adjacent[bit / 32] >> (bit % 32) & 1;
}

static void add_adjacent(struct ree_lm *lm, const struct ree_str *piece) {
    uint32_t before = 0;
    for (size_t i = 0, step; i < piece->size; i += step) {
        uint32_t c = ree_utf8_get(piece->data + i, &step), bit = pair_bit(before, c);
        if (i > 0) lm->adjacent[bit / 32] |= 1u << (bit % 32);
        before = c;
    }
}

enum ree_status ree_bpe_prepare(struct ree_lm *lm, struct ree_error *err) {
    for (int byte = 0; byte < 256; byte++) {
        char text[4];
        size_t n = ree_utf8_put(ree_byte_char((unsigned char)byte), text);
        lm->letter_ids[byte] = ree_vocab_find(&lm->vocab, text, n);
    }
    if (!lm->merges) {
        // ree_bpe_find needs a free slot to end at.
        lm->merges = ree_alloc(sizeof *lm->merges);
        if (!lm->merges) return ree_fail(err, REE_NO_MEMORY, "no memory for the merges");
        lm->merges[0] = (struct ree_merge){.id = -1};
        lm->merge_mask = 0;
    }
    if (lm->raw_bytes || lm->prefix.size || lm->suffix.size || lm->ignore_merges) return REE_OK;
    lm->adjacent = ree_alloc_zeroed((1u << ADJACENT_BITS) / 32, sizeof *lm->adjacent);
    if (!lm->adjacent) return ree_fail(err, REE_NO_MEMORY, "no memory for the merges");
    for (uint32_t i = 0; i <= lm->merge_mask; i++)
        if (lm->merges[i].id >= 0) add_adjacent(lm, &lm->vocab.pieces[lm->merges[i].id]);
    return REE_OK;
}

// The initial symbols of a word

struct symbols {
    const struct ree_lm *lm;
    struct ree_ids *ids;
    bool unknown; // an unknown character is pending, so that adjacent ones can be fused
    struct ree_error *err;
};

static enum ree_status add_known(struct symbols *symbols, int32_t id) {
    if (symbols->unknown) REE_TRY(ree_ids_add(symbols->ids, symbols->lm->unk, symbols->err));
    symbols->unknown = false;
    return ree_ids_add(symbols->ids, id, symbols->err);
}

static enum ree_status add_unknown(struct symbols *symbols, const char *text, size_t n) {
    const struct ree_lm *lm = symbols->lm;
    bool all = lm->byte_fallback;
    for (size_t i = 0; i < n && all; i++)
        all = lm->byte_ids[(unsigned char)text[i]] >= 0;
    if (all) {
        // A pending unknown character is added after these bytes, as in the tokenizers library.
        for (size_t i = 0; i < n; i++)
            REE_TRY(ree_ids_add(symbols->ids, lm->byte_ids[(unsigned char)text[i]], symbols->err));
        return REE_OK;
    }
    if (!lm->unk_token.data) return REE_OK; // the character is dropped
    if (lm->unk < 0)
        return ree_fail(symbols->err, REE_INVALID, "unk_token '%.80s' is not in the vocabulary",
                        lm->unk_token.data);
    if (symbols->unknown && !lm->fuse_unk)
        REE_TRY(ree_ids_add(symbols->ids, lm->unk, symbols->err));
    symbols->unknown = true;
    return REE_OK;
}

static enum ree_status first_symbols(const struct ree_lm *lm, struct ree_strbuf *text,
                                     const char *word, size_t n, struct ree_ids *ids,
                                     struct ree_error *err) {
    struct symbols symbols = {lm, ids, false, err};
    for (size_t i = 0, step; i < n; i += step) {
        ree_utf8_get(word + i, &step);
        const char *symbol = word + i;
        size_t size = step;
        bool affixed = (i > 0 && lm->prefix.size) || (i + step == n && lm->suffix.size);
        if (affixed) {
            text->size = 0;
            if (i > 0) ree_strbuf_append(text, lm->prefix.data, lm->prefix.size);
            ree_strbuf_append(text, word + i, step);
            if (i + step == n) ree_strbuf_append(text, lm->suffix.data, lm->suffix.size);
            if (text->failed) return ree_fail(err, REE_NO_MEMORY, "no memory for a word");
            symbol = text->data;
            size = text->size;
        }
        int32_t id = ree_vocab_find(&lm->vocab, symbol, size);
        REE_TRY(id >= 0 ? add_known(&symbols, id) : add_unknown(&symbols, symbol, size));
    }
    return symbols.unknown ? ree_ids_add(ids, lm->unk, err) : REE_OK;
}

// Like first_symbols, for raw bytes: each byte is a symbol. Returns false if the character of a
// byte in GPT-2's alphabet is not a token; then the caller must use encode_mapped.
static bool first_bytes(const struct ree_lm *lm, const char *word, size_t n, struct ree_ids *ids,
                        enum ree_status *status, struct ree_error *err) {
    *status = REE_OK;
    for (size_t i = 0; i < n && *status == REE_OK; i++) {
        int32_t id = lm->letter_ids[(unsigned char)word[i]];
        if (id < 0) return false;
        *status = ree_ids_add(ids, id, err);
    }
    return true;
}

static enum ree_status encode_mapped(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                                     const char *word, size_t n, struct ree_error *err) {
    int32_t whole = lm->ignore_merges ? ree_vocab_find(&lm->vocab, word, n) : -1;
    if (whole >= 0) return ree_ids_add(&scratch->symbols, whole, err);
    REE_TRY(first_symbols(lm, &scratch->text, word, n, &scratch->symbols, err));
    return ree_bpe_merge(lm, scratch, &scratch->symbols, err);
}

// Writes the ids of a word to scratch->symbols.
static enum ree_status encode_word(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                                   const char *word, size_t n, struct ree_error *err) {
    scratch->symbols.n = 0;
    if (!lm->raw_bytes) return encode_mapped(lm, scratch, word, n, err);
    enum ree_status status;
    if (!lm->ignore_merges && first_bytes(lm, word, n, &scratch->symbols, &status, err)) {
        REE_TRY(status);
        return ree_bpe_merge(lm, scratch, &scratch->symbols, err);
    }
    struct ree_strbuf mapped;
    ree_strbuf_init(&mapped);
    ree_bytes_append(&mapped, word, n);
    scratch->symbols.n = 0;
    if (mapped.failed)
        status = ree_fail(err, REE_NO_MEMORY, "no memory for a word");
    else
        status = encode_mapped(lm, scratch, mapped.data, mapped.size, err);
    ree_strbuf_finish(&mapped);
    return status;
}

// Cache of words and their ids. Each word has one slot, determined by its hash. A word that is not
// in its slot replaces the word there.

#define WORD_BYTES 30
#define WORD_IDS 8

struct ree_lm_word {
    uint8_t size, n_ids; // size 0: free slot
    char bytes[WORD_BYTES];
    int32_t ids[WORD_IDS];
};

enum ree_status ree_lm_scratch_init(struct ree_lm_scratch *scratch, const struct ree_lm *lm,
                                    size_t nbytes, struct ree_error *err) {
    memset(scratch, 0, sizeof *scratch);
    // Creating a cache costs as much as encoding a few hundred words.
    if (lm->kind != REE_LM_BPE || nbytes < 2048) return REE_OK;
    uint32_t n = 256;
    while (n < nbytes / 16 && n < 1u << 15)
        n *= 2;
    scratch->cache = ree_alloc_zeroed(n, sizeof *scratch->cache);
    if (!scratch->cache) return ree_fail(err, REE_NO_MEMORY, "no memory for a cache of words");
    scratch->cache_mask = n - 1;
    return REE_OK;
}

void ree_lm_scratch_finish(struct ree_lm_scratch *scratch) {
    ree_free(scratch->cache);
    ree_free(scratch->symbols.items);
    ree_free(scratch->list);
    ree_free(scratch->heap);
    ree_free(scratch->paths);
    ree_strbuf_finish(&scratch->text);
    memset(scratch, 0, sizeof *scratch);
}

static enum ree_status append(struct ree_ids *ids, const int32_t *items, size_t n,
                              struct ree_error *err) {
    while (ids->capacity - ids->n < n)
        REE_TRY(ree_ids_grow(ids, err));
    if (n) memcpy(ids->items + ids->n, items, n * sizeof *items);
    ids->n += n;
    return REE_OK;
}

static enum ree_status encode_cached(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                                     const char *word, size_t n, struct ree_ids *ids,
                                     struct ree_error *err) {
    struct ree_lm_word *slot = NULL;
    if (scratch->cache && n <= WORD_BYTES) {
        slot = &scratch->cache[ree_hash_bytes(word, n) & scratch->cache_mask];
        if (slot->size == n && memcmp(slot->bytes, word, n) == 0)
            return append(ids, slot->ids, slot->n_ids, err);
    }
    REE_TRY(encode_word(lm, scratch, word, n, err));
    const struct ree_ids *made = &scratch->symbols;
    if (slot && made->n <= WORD_IDS) {
        slot->size = (uint8_t)n;
        slot->n_ids = (uint8_t)made->n;
        memcpy(slot->bytes, word, n);
        if (made->n) memcpy(slot->ids, made->items, made->n * sizeof *made->items);
    }
    return append(ids, made->items, made->n, err);
}

// Returns whether the word can be cut before word + i, between the characters `left`, at left_at,
// and `right`, of `step` bytes. Both must be tokens themselves, because replacements of unknown
// characters are merged and fused by other rules.
static bool can_cut(const struct ree_lm *lm, const char *word, size_t left_at, uint32_t left,
                    size_t i, size_t step, uint32_t right) {
    return !may_stand_together(lm, left, right) &&
           ree_vocab_find(&lm->vocab, word + left_at, i - left_at) >= 0 &&
           ree_vocab_find(&lm->vocab, word + i, step) >= 0;
}

enum ree_status ree_bpe_encode(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                               const char *piece, size_t n, struct ree_ids *ids,
                               struct ree_error *err) {
    if (n <= WORD_BYTES || !lm->adjacent) return encode_cached(lm, scratch, piece, n, ids, err);
    size_t start = 0, left_at = 0;
    uint32_t left = 0;
    for (size_t i = 0, step; i < n; i += step) {
        uint32_t c = ree_utf8_get(piece + i, &step);
        if (i > 0 && can_cut(lm, piece, left_at, left, i, step, c)) {
            REE_TRY(encode_cached(lm, scratch, piece + start, i - start, ids, err));
            start = i;
        }
        left_at = i;
        left = c;
    }
    return encode_cached(lm, scratch, piece + start, n - start, ids, err);
}
