// Kv caches in pages, so that sequences can share positions. A pool holds all kv caches of a
// session, each as one long sequence: position i of each cache belongs to page i >> page_bits. The
// caller decides which sequence uses which pages. Page 0 holds zeros and is never written.
#ifndef REE_SESSION_PAGE_POOL_H
#define REE_SESSION_PAGE_POOL_H

#include "session/types.h"

struct ree_page_pool; // defined in session_internal.h

// Describes a run of several sequences.
struct ree_page_run {
    // batch: number of sequences. n_pages: pages per sequence, enough for the last position of the
    // longest sequence. length: new positions per sequence.
    size_t batch, n_pages, length;
    // (batch, n_pages): the page numbers of each sequence, in order; the rest is 0.
    const int32_t *table;
    const int32_t *targets; // (batch, length): position in the pool of each new position
    // Number of positions that the run treats as filled: at least the length of the longest
    // sequence.
    int64_t filled;
};

// Creates an empty pool for the declared kv caches of a session; a page has 2^page_bits positions.
// The session must outlive the pool. Creating a pool and running it fail with REE_UNSUPPORTED if
// the session is observed.
enum ree_status ree_page_pool_create(struct ree_session *session, uint32_t page_bits,
                                     struct ree_page_pool **out, struct ree_error *err);
void ree_page_pool_destroy(struct ree_page_pool *pool);
size_t ree_page_pool_n_pages(const struct ree_page_pool *pool);
// Returns the bytes of one page, summed over all kv caches.
uint64_t ree_page_pool_page_bytes(const struct ree_page_pool *pool);
// Grows the pool to at least n_pages pages. Existing pages keep their contents; new pages hold
// zeros.
enum ree_status ree_page_pool_reserve(struct ree_page_pool *pool, size_t n_pages,
                                      struct ree_error *err);
// Copies page from[i] to page to[i] for i < n. No page may be in both lists.
enum ree_status ree_page_pool_copy(struct ree_page_pool *pool, const int32_t *from,
                                   const int32_t *to, size_t n, struct ree_error *err);
// Sets n positions of the pool to zeros. None of them may be in page 0.
enum ree_status ree_page_pool_clear(struct ree_page_pool *pool, const int32_t *positions, size_t n,
                                    struct ree_error *err);
// ree_page_pool_bind prepares a run, ree_page_pool_run runs it; inputs and outputs are as for
// ree_session_run. *out_rewrites is set to whether the run would write all pages of its table
// instead of only the targets. *out_replaces is set to whether the run replaces a kv cache instead
// of appending to it in place: the same, but also true if no position was filled before. If the kv
// caches were declared with a positions_input, binding such a model fails with REE_UNSUPPORTED.
enum ree_status ree_page_pool_bind(struct ree_page_pool *pool, const struct ree_page_run *run,
                                   const struct ree_tensor *inputs, size_t n_inputs,
                                   bool *out_rewrites, bool *out_replaces, struct ree_error *err);
enum ree_status ree_page_pool_run(struct ree_page_pool *pool, const struct ree_page_run *run,
                                  const struct ree_tensor *inputs, size_t n_inputs,
                                  struct ree_tensor *outputs, struct ree_error *err);
// Returns how the last run read and wrote the kv caches. *out_n_copies: how many dense copies of kv
// caches it made, for operators other than attention. *out_rewrites: whether it wrote all pages of
// its table instead of only the targets.
void ree_page_pool_last_run(const struct ree_page_pool *pool, uint32_t *out_n_copies,
                            bool *out_rewrites);

#endif
