// Sequences that share pages of kv caches. For decoding.c, decoding_pages.c and decoding_run.c.
#ifndef REE_GENERATE_DECODING_H
#define REE_GENERATE_DECODING_H

#include "generate/generator.h"
#include "session/page_pool.h"

// Divides REE_CHUNK and REE_PARTITION_POSITIONS. Smaller pages share more positions of a prefix;
// larger ones have smaller tables.
#define REE_PAGE_BITS 4
#define REE_PAGE_POSITIONS ((size_t)1 << REE_PAGE_BITS)

struct ree_decoding_sequence {
    int32_t *ids;
    size_t n, capacity;
    // Positions n ... n_written - 1 of the last page may hold values of tokens that were truncated,
    // or of a run that failed.
    size_t n_written;
    int32_t *pages; // pages of positions 0 ... n - 1; reserved pages may follow
    size_t n_pages, pages_capacity;
    bool logits_changed;
    uint32_t use; // number of earlier sequences with this index; part of the ree_sequence_id
    bool is_used;
};

struct ree_decoding {
    struct ree_generator *g;
    struct ree_decoding_options options;
    struct ree_page_pool *pool;
    // Per page: number of sequences that have it. Page 0 belongs to nobody.
    uint32_t *owners;
    bool *is_dirty;      // per page: has been written since it was zeros
    int32_t *free_pages; // unused pages; the next one to use is the last
    size_t n_free_pages, n_known_pages;
    struct ree_decoding_sequence *sequences;
    size_t sequences_capacity, n_sequences;
    size_t vocab_size; // 0: unknown
    float *logits;     // of the last call
    uint64_t n_tokens, n_runs, n_copied_pages;
};

// decoding.c: NULL with REE_NOT_FOUND in *err if there is no such sequence.
struct ree_decoding_sequence *ree_decoding_find(const struct ree_decoding *d, ree_sequence_id id,
                                                struct ree_error *err);

// decoding_pages.c. A new page is zeros, and so is what follows a truncated sequence: attention
// reads whole blocks of positions, and a weight of 0 does not remove an infinity.
static inline size_t ree_pages_for(size_t positions) {
    return (positions + REE_PAGE_POSITIONS - 1) >> REE_PAGE_BITS;
}
// Reserves pages for positions 0 ... positions[i] - 1 of sequence i. If the sequence shares pages
// that hold positions from first[i] on, they are replaced by copies of its own. On failure the
// sequences have the same contents as before, but may have reserved pages.
enum ree_status ree_pages_reserve(struct ree_decoding *d,
                                  struct ree_decoding_sequence *const *sequences, size_t n,
                                  const size_t *first, const size_t *positions,
                                  struct ree_error *err);
// Must be called before a run that fills sequence i up to positions[i]; the pages must be reserved.
// Makes the positions from the sequence's end to the end of its last page zeros. Until the next
// call these positions count as written, because the run may fail after it has written some.
enum ree_status ree_pages_begin_run(struct ree_decoding *d,
                                    struct ree_decoding_sequence *const *sequences, size_t n,
                                    const size_t *positions, struct ree_error *err);
// Gives back the pages after the first n_pages.
void ree_pages_release(struct ree_decoding *d, struct ree_decoding_sequence *s, size_t n_pages);
// The fork shares the pages of all positions of `from`.
enum ree_status ree_pages_share(struct ree_decoding *d, const struct ree_decoding_sequence *from,
                                struct ree_decoding_sequence *fork, struct ree_error *err);

// decoding_run.c: runs the items; the sequences are in the items' order, and their ids are not yet
// appended. Writes the requested logits to d->logits; item i's begin at logits_at[i].
enum ree_status ree_decoding_run_items(struct ree_decoding *d, const struct ree_decode *items,
                                       struct ree_decoding_sequence *const *sequences, size_t n,
                                       const size_t *logits_at, struct ree_error *err);

#endif
