// The models of tokenizers: BPE, Unigram, WordPiece, WordLevel. A model converts a piece of text to
// ids.
#ifndef REE_TEXT_LM_H
#define REE_TEXT_LM_H

#include "base/strbuf.h"
#include "text/trie.h"
#include "text/vocab.h"

enum ree_lm_kind { REE_LM_BPE, REE_LM_UNIGRAM, REE_LM_WORDPIECE, REE_LM_WORDLEVEL };

// A pair of adjacent symbols that is merged into one.
struct ree_merge {
    uint64_t pair; // left id << 32 | right id
    uint32_t rank; // lower ranks are merged first
    int32_t id;    // the merged symbol; -1: free slot
};

struct ree_lm {
    enum ree_lm_kind kind;
    struct ree_vocab vocab;
    struct ree_str unk_token; // data is NULL: none
    int32_t unk;              // its id; -1: none, or not in the vocabulary
    uint32_t byte_fallback;   // bytes of unknown characters become <0x00> ... <0xFF>
    int32_t byte_ids[256];    // ids of these byte tokens; -1: not in the vocabulary

    // BPE
    struct ree_merge *merges; // open addressing, keyed by `pair`
    uint32_t merge_mask, n_merges;
    uint32_t fuse_unk, ignore_merges;
    // Prefix of every symbol of a word but the first; suffix of the last symbol.
    struct ree_str prefix, suffix;
    // Pieces are raw bytes, which encoding converts to GPT-2's alphabet.
    bool raw_bytes;
    // Ids of the characters of GPT-2's alphabet; -1: not in the vocabulary.
    int32_t letter_ids[256];
    // Set, with false positives, of the pairs of characters that are adjacent within a merged
    // symbol; NULL: unknown.
    uint32_t *adjacent;

    // Unigram
    double *scores; // [vocab.n]
    double unk_score;
    struct ree_trie trie; // of all pieces

    // WordPiece
    uint32_t max_chars; // longer words are unknown
};

void ree_lm_finish(struct ree_lm *lm);

// BPE: adds a merge. A later merge of the same pair replaces the earlier one. Fails only with
// REE_NO_MEMORY.
enum ree_status ree_bpe_add_merge(struct ree_lm *lm, int32_t left, int32_t right, int32_t id,
                                  uint32_t rank, struct ree_error *err);
// Computes what is derived from the vocabulary, merges and options. Call it when these are
// complete.
enum ree_status ree_lm_prepare(struct ree_lm *lm, struct ree_error *err);

struct ree_ids {
    int32_t *items;
    size_t n, capacity;
};
enum ree_status ree_ids_grow(struct ree_ids *ids, struct ree_error *err);
static inline enum ree_status ree_ids_add(struct ree_ids *ids, int32_t id, struct ree_error *err) {
    if (ids->n == ids->capacity) REE_TRY(ree_ids_grow(ids, err));
    ids->items[ids->n++] = id;
    return REE_OK;
}

struct ree_lm_word; // entry of the cache
struct ree_lm_symbol;
struct ree_lm_candidate;
struct ree_lm_path;

// Working memory for encoding; belongs to one thread.
struct ree_lm_scratch {
    struct ree_lm_word *cache; // of words; may be NULL
    uint32_t cache_mask;
    struct ree_ids symbols;
    struct ree_lm_symbol *list;
    size_t list_capacity;
    struct ree_lm_candidate *heap;
    size_t n_heap, heap_capacity;
    struct ree_lm_path *paths;
    size_t paths_capacity;
    struct ree_strbuf text;
};
// `nbytes`: expected bytes of text, which determine the size of the cache.
enum ree_status ree_lm_scratch_init(struct ree_lm_scratch *scratch, const struct ree_lm *lm,
                                    size_t nbytes, struct ree_error *err);
void ree_lm_scratch_finish(struct ree_lm_scratch *scratch);

// Appends the ids of a piece, which must be valid UTF-8 of n > 0 bytes.
enum ree_status ree_lm_encode(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                              const char *piece, size_t n, struct ree_ids *ids,
                              struct ree_error *err);
// The implementations for each kind of model.
enum ree_status ree_bpe_encode(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                               const char *piece, size_t n, struct ree_ids *ids,
                               struct ree_error *err);
enum ree_status ree_bpe_prepare(struct ree_lm *lm, struct ree_error *err);
enum ree_status ree_unigram_encode(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                                   const char *piece, size_t n, struct ree_ids *ids,
                                   struct ree_error *err);
enum ree_status ree_unigram_prepare(struct ree_lm *lm, struct ree_error *err);
enum ree_status ree_wordpiece_encode(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                                     const char *piece, size_t n, struct ree_ids *ids,
                                     struct ree_error *err);

// Internal to BPE: merges `symbols` (the ids of a word) until no pair can be merged (bpe_merge.c).
enum ree_status ree_bpe_merge(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                              struct ree_ids *symbols, struct ree_error *err);
static inline const struct ree_merge *ree_bpe_find(const struct ree_lm *lm, int32_t left,
                                                   int32_t right) {
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    uint32_t at = (uint32_t)ree_hash_fold(pair, 0x9E3779B97F4A7C15u) & lm->merge_mask;
    for (; lm->merges[at].id >= 0; at = (at + 1) & lm->merge_mask)
        if (lm->merges[at].pair == pair) return &lm->merges[at];
    return NULL;
}

// The table of merges always has a free slot (see ree_lm_prepare), so ree_bpe_find always ends.

#endif
