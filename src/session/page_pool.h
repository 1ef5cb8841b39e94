// Kv caches in pages, for sequences that share positions. A pool has all kv caches of a session, as
// caches of one sequence: position i of each cache belongs to page i >> page_bits. Who uses which
// page is the caller's business. Page 0 is never written; it holds zeros.
#ifndef REE_SESSION_PAGE_POOL_H
#define REE_SESSION_PAGE_POOL_H

#include "session/session_internal.h"

#define REE_PAGE_TENSORS 2 // page table and targets
#define REE_PAGE_PROGRAMS 5

struct ree_page_pool {
    struct ree_session *session;
    struct ree_kv_cache *kv_caches; // dims[axis]: all positions
    uint32_t page_bits;
    // Programs that copy 1, 2, 4, ... pages; made on first use for the present capacity.
    struct ree_device_program *copies[REE_PAGE_PROGRAMS];
    struct ree_device_buffer *index, *moved; // page numbers; pages on their way
    // During a run: i32 [batch, pages], i32 [batch, new positions].
    struct ree_tensor tensors[REE_PAGE_TENSORS];
    bool rewrites_pages;    // of the last run that was prepared: see struct ree_bind
    uint32_t n_page_copies; // of the last run
};

// A run of several sequences. Each table row has the pages of its sequence, in order, and page 0
// after them; n_pages pages reach to the last position of the run.
struct ree_page_run {
    size_t batch, n_pages, length;
    const int32_t *table;   // (batch, n_pages)
    const int32_t *targets; // (batch, length): positions in the pool of the new positions
    int64_t filled;         // positions before the run, as ree_session_set_filled_positions
};

// The kv caches must have been declared. The pool must not outlive the session.
enum ree_status ree_page_pool_create(struct ree_session *session, uint32_t page_bits,
                                     struct ree_page_pool **out, struct ree_error *err);
void ree_page_pool_destroy(struct ree_page_pool *pool);
size_t ree_page_pool_n_pages(const struct ree_page_pool *pool);
uint64_t ree_page_pool_page_bytes(const struct ree_page_pool *pool); // in all kv caches
// Grows to n_pages pages. Keeps their contents; new pages are zeros.
enum ree_status ree_page_pool_reserve(struct ree_page_pool *pool, size_t n_pages,
                                      struct ree_error *err);
// Copies page from[i] to page to[i] for i < n. No page is in both.
enum ree_status ree_page_pool_copy(struct ree_page_pool *pool, const int32_t *from,
                                   const int32_t *to, size_t n, struct ree_error *err);
// Prepares a run: *out_rewrites tells whether it will write all pages of the tables, not only those
// of the targets. Then ree_page_pool_run runs it, like ree_session_run.
enum ree_status ree_page_pool_bind(struct ree_page_pool *pool, const struct ree_page_run *run,
                                   const struct ree_tensor *inputs, size_t n_inputs,
                                   bool *out_rewrites, struct ree_error *err);
enum ree_status ree_page_pool_run(struct ree_page_pool *pool, const struct ree_page_run *run,
                                  const struct ree_tensor *inputs, size_t n_inputs,
                                  struct ree_tensor *outputs, struct ree_error *err);

#endif
