// The models of tokenizers: BPE, Unigram, WordPiece, WordLevel. Such a model converts a piece of
// text to token ids.
#ifndef REE_TEXT_LM_H
#define REE_TEXT_LM_H

#include "base/hash.h"
#include "base/strbuf.h"
#include "text/trie.h"
#include "text/vocab.h"

// Maximum bytes of a piece of Unigram and WordPiece, which search pieces from each position of a
// text. Real vocabularies have at most about 100.
#define REE_PIECE_MAX 1024
// Maximum bytes of a piece of BPE and WordLevel. It limits the text that a list of ids can decode
// to. Real vocabularies have at most 256: GPT-2's alphabet takes two bytes for some bytes.
#define REE_WORD_MAX 2048

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
    struct ree_str unk_token; // token for unknown characters or words; data NULL: none
    int32_t unk;              // id of unk_token; -1: none, or not in the vocabulary
    uint32_t byte_fallback;   // flag: an unknown character becomes the tokens <0xXX> of its bytes
    int32_t byte_ids[256];    // ids of the tokens <0x00> ... <0xFF>; -1: not in the vocabulary

    // Fields of BPE
    struct ree_merge *merges; // [merge_mask + 1]: hash table, open addressing, keyed by `pair`
    uint32_t merge_mask, n_merges;
    uint32_t fuse_unk, ignore_merges;
    // Texts added to the characters of a word before lookup: `prefix` to each but the first,
    // `suffix` to the last.
    struct ree_str prefix, suffix;
    // The pieces of text to encode are raw bytes; encoding converts them to GPT-2's alphabet.
    bool raw_bytes;
    // Per byte: id of its character in GPT-2's alphabet; -1: not in the vocabulary.
    int32_t letter_ids[256];
    // Bits, indexed by a hash of two characters (bpe.c). If a bit is 0, no merged symbol has these
    // two characters next to each other. NULL: not computed.
    uint32_t *adjacent;

    // Fields of Unigram
    double *scores; // [vocab.n]: log probability of each piece, by id
    double unk_score;

    // Fields of WordPiece
    uint32_t max_chars;   // a word of more characters becomes unk_token
    uint32_t prefix_node; // node of `trie` after `prefix`; 0: none, or the prefix is empty

    struct ree_trie trie; // Unigram and WordPiece: all pieces of the vocabulary

    // Bits, by id: the piece is a special token, which only the tokenizer's own search may find
    // in a text (REE_PARSE_SPECIAL). NULL: no piece is. unk_token is not in it.
    uint32_t *special;
};

void ree_lm_finish(struct ree_lm *lm);

// BPE: adds a merge. A later merge of the same pair replaces the earlier one. Fails only with
// REE_NO_MEMORY.
enum ree_status ree_bpe_add_merge(struct ree_lm *lm, int32_t left, int32_t right, int32_t id,
                                  uint32_t rank, struct ree_error *err);
// Computes the fields of *lm that are derived from its vocabulary, merges and options. Call it when
// these are complete, and before encoding. Fails with REE_UNSUPPORTED if a piece of the vocabulary
// is longer than REE_PIECE_MAX or REE_WORD_MAX.
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

struct ree_lm_word; // entry of the cache of words (bpe.c)
struct ree_lm_symbol;
struct ree_lm_candidate;
struct ree_lm_path;

// Working memory for encoding; belongs to one thread.
struct ree_lm_scratch {
    bool finds_special; // Unigram, WordPiece, WordLevel: pieces that are special tokens are found
    struct ree_lm_word *cache; // [cache_mask + 1]: ids of recent words; NULL: no cache
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
// Initialises working memory for texts of `nbytes` bytes in total, which determines only the size
// of the cache of words.
enum ree_status ree_lm_scratch_init(struct ree_lm_scratch *scratch, const struct ree_lm *lm,
                                    size_t nbytes, struct ree_error *err);
void ree_lm_scratch_finish(struct ree_lm_scratch *scratch);

// Encodes a piece of text, which must be valid UTF-8 of n > 0 bytes, and appends its token ids.
enum ree_status ree_lm_encode(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                              const char *piece, size_t n, struct ree_ids *ids,
                              struct ree_error *err);
// Parts of ree_lm_encode and ree_lm_prepare, each for one kind of model.
enum ree_status ree_bpe_encode(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                               const char *piece, size_t n, struct ree_ids *ids,
                               struct ree_error *err);
enum ree_status ree_bpe_prepare(struct ree_lm *lm, struct ree_error *err);
enum ree_status ree_unigram_encode(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                                   const char *piece, size_t n, struct ree_ids *ids,
                                   struct ree_error *err);
enum ree_status ree_unigram_prepare(struct ree_lm *lm, struct ree_error *err);
enum ree_status ree_wordpiece_prepare(struct ree_lm *lm, struct ree_error *err);
// Builds lm->trie.
enum ree_status ree_lm_make_trie(struct ree_lm *lm, struct ree_error *err);
// Returns the id that the model may use for a piece found in a text: `id`, or -1 for a special
// token if these are not to be found.
static inline int32_t ree_lm_found(const struct ree_lm *lm, const struct ree_lm_scratch *scratch,
                                   int32_t id) {
    if (id < 0 || scratch->finds_special || !lm->special) return id;
    return lm->special[id / 32] >> (id % 32) & 1 ? -1 : id;
}
enum ree_status ree_wordpiece_encode(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                                     const char *piece, size_t n, struct ree_ids *ids,
                                     struct ree_error *err);

// Internal to BPE (bpe_merge.c): merges adjacent pairs of `symbols`, the ids of a word, in place
// until no pair can be merged.
enum ree_status ree_bpe_merge(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                              struct ree_ids *symbols, struct ree_error *err);
// Returns the merge of a pair of ids, or NULL. The loop ends because the table always has a free
// slot (ree_lm_prepare).
static inline const struct ree_merge *ree_bpe_find(const struct ree_lm *lm, int32_t left,
                                                   int32_t right) {
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    uint32_t at = (uint32_t)ree_hash_u64(pair) & lm->merge_mask;
    for (; lm->merges[at].id >= 0; at = (at + 1) & lm->merge_mask)
        if (lm->merges[at].pair == pair) return &lm->merges[at];
    return NULL;
}

#endif
