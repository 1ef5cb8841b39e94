// Sequences that share pages of kv caches. For decoding.c, decoding_pages.c and decoding_run.c.
#ifndef REE_GENERATE_DECODING_H
#define REE_GENERATE_DECODING_H

#include "generate/generator.h"
#include "session/page_pool.h"

// Pages of kv caches have 2^REE_PAGE_BITS positions, which must divide REE_CHUNK and
// REE_PARTITION_POSITIONS. Smaller pages let sequences share more positions of a common prefix;
// larger ones have smaller tables.
#define REE_PAGE_BITS 4
#define REE_PAGE_POSITIONS ((size_t)1 << REE_PAGE_BITS)

struct ree_decoding_sequence {
    int32_t *ids;
    size_t n, capacity;
    // Positions n to n_written - 1 may hold values of tokens that were truncated, or of a run that
    // failed. They are in the last page.
    size_t n_written;
    int32_t *pages; // numbers of the pages of positions 0 to n - 1; reserved pages may follow
    size_t n_pages, pages_capacity;
    bool logits_changed;
    // A run replaced its kv caches, and the model is not proved to be causal: earlier positions may
    // depend on later tokens.
    bool is_replaced;
    // Such a run began in a call that did not succeed. The kv caches may not match the tokens.
    bool is_spoiled;
    uint32_t use; // number of earlier sequences with this index; part of the ree_sequence_id
    bool is_used;
};

struct ree_decoding {
    struct ree_generator *g;
    struct ree_decoding_options options;
    struct ree_page_pool *pool;
    // Per page: number of sequences that use it. No sequence uses page 0, which stays zeros.
    uint32_t *owners;
    bool *is_dirty;      // per page: it may contain something other than zeros
    int32_t *free_pages; // numbers of unused pages; the last one is used next
    size_t n_free_pages, n_known_pages;
    struct ree_decoding_sequence *sequences;
    size_t sequences_capacity, n_sequences;
    size_t vocab_size; // 0: unknown
    float *logits;     // logits requested in the last ree_decoding_run; rows of vocab_size elements
    uint64_t n_tokens, n_runs, n_copied_pages;
};

// decoding.c: returns the sequence with this id. Returns NULL, with REE_NOT_FOUND in *err, if there
// is none.
struct ree_decoding_sequence *ree_decoding_find(const struct ree_decoding *d, ree_sequence_id id,
                                                struct ree_error *err);

// The functions below are in decoding_pages.c. Positions of a page that no token has filled must be
// zeros: attention reads whole blocks of positions, and a weight of 0 does not remove an infinity.

// Returns the number of pages for `positions` positions.
static inline size_t ree_pages_for(size_t positions) {
    return (positions + REE_PAGE_POSITIONS - 1) >> REE_PAGE_BITS;
}
// Reserves pages for positions 0 to positions[i] - 1 of sequence i, for each of n sequences. If the
// sequence shares pages that hold positions from first[i] on, they are replaced by copies of its
// own. On failure the sequences have the same contents as before, but may have reserved pages.
enum ree_status ree_pages_reserve(struct ree_decoding *d,
                                  struct ree_decoding_sequence *const *sequences, size_t n,
                                  const size_t *first, const size_t *positions,
                                  struct ree_error *err);
// Must be called before a run that fills sequence i up to positions[i], for each of n sequences;
// the pages must be reserved. Sets the positions from the sequence's end to the end of its last
// page to zeros. Sets n_written to positions[i], because the run may fail after it has written
// some.
enum ree_status ree_pages_begin_run(struct ree_decoding *d,
                                    struct ree_decoding_sequence *const *sequences, size_t n,
                                    const size_t *positions, struct ree_error *err);
// Removes all pages after the first n_pages from the sequence; they become free if no other
// sequence uses them.
void ree_pages_release(struct ree_decoding *d, struct ree_decoding_sequence *s, size_t n_pages);
// Gives `fork`, which has no pages, the pages of all positions of `from`; both then share them.
enum ree_status ree_pages_share(struct ree_decoding *d, const struct ree_decoding_sequence *from,
                                struct ree_decoding_sequence *fork, struct ree_error *err);

// decoding_run.c: runs the model over the new tokens of n items. sequences[i] is the sequence of
// item i; its `ids` do not yet have the new tokens. Writes the requested logits to d->logits; those
// of item i begin at row logits_at[i]. logits_at[n] is the number of rows of all items.
enum ree_status ree_decoding_run_items(struct ree_decoding *d, const struct ree_decode *items,
                                       struct ree_decoding_sequence *const *sequences, size_t n,
                                       const size_t *logits_at, struct ree_error *err);

#endif
