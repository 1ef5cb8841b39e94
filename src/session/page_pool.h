// Kv caches in pages, for sequences that share positions. A pool has all kv caches of a session,
// each as one long sequence: position i of each cache belongs to page i >> page_bits. The caller
// decides which sequence uses which pages. Page 0 is never written; it holds zeros.
#ifndef REE_SESSION_PAGE_POOL_H
#define REE_SESSION_PAGE_POOL_H

#include "session/types.h"

struct ree_page_pool; // session_internal.h

// A run of several sequences.
struct ree_page_run {
    // Sequences; pages per sequence, up to the last position of the run; new positions per
    // sequence.
    size_t batch, n_pages, length;
    const int32_t *table;   // (batch, n_pages): the pages of each sequence, in order, then page 0
    const int32_t *targets; // (batch, length): where each new position is in the pool
    int64_t filled;         // as for ree_session_set_filled_positions
};

// The kv caches must have been declared. Creating a pool and running it fail with REE_UNSUPPORTED
// if the session is observed. The session must outlive the pool.
enum ree_status ree_page_pool_create(struct ree_session *session, uint32_t page_bits,
                                     struct ree_page_pool **out, struct ree_error *err);
void ree_page_pool_destroy(struct ree_page_pool *pool);
size_t ree_page_pool_n_pages(const struct ree_page_pool *pool);
uint64_t ree_page_pool_page_bytes(const struct ree_page_pool *pool); // in all kv caches
// Grows to n_pages pages. Keeps their contents; new pages are zeros.
enum ree_status ree_page_pool_reserve(struct ree_page_pool *pool, size_t n_pages,
                                      struct ree_error *err);
// Copies page from[i] to page to[i] for i < n. No page may be in both lists.
enum ree_status ree_page_pool_copy(struct ree_page_pool *pool, const int32_t *from,
                                   const int32_t *to, size_t n, struct ree_error *err);
// Makes n positions of the pool zeros. None may be in page 0.
enum ree_status ree_page_pool_clear(struct ree_page_pool *pool, const int32_t *positions, size_t n,
                                    struct ree_error *err);
// ree_page_pool_bind reports in *out_rewrites whether a run would write all pages of its table and
// not only those of the targets. A run of sequences of different lengths never does: binding a
// model that would fails.
enum ree_status ree_page_pool_bind(struct ree_page_pool *pool, const struct ree_page_run *run,
                                   const struct ree_tensor *inputs, size_t n_inputs,
                                   bool *out_rewrites, struct ree_error *err);
enum ree_status ree_page_pool_run(struct ree_page_pool *pool, const struct ree_page_run *run,
                                  const struct ree_tensor *inputs, size_t n_inputs,
                                  struct ree_tensor *outputs, struct ree_error *err);
// How the last run read and wrote the kv caches: the number of dense copies that it made, because
// other operators than attention read them, and whether it wrote all pages of its table.
void ree_page_pool_last_run(const struct ree_page_pool *pool, uint32_t *out_n_copies,
                            bool *out_rewrites);

#endif
