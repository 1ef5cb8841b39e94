// Assigns pages of kv caches to sequences: counts the sequences that use each page, and copies a
// shared page before one of them writes it.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "generate/decoding.h"

// Minimum number of pages of a pool.
#define MIN_PAGES 16

// Extends the arrays that have an entry per page to the pool's number of pages.
static enum ree_status know_pages(struct ree_decoding *d, struct ree_error *err) {
    size_t n = ree_page_pool_n_pages(d->pool);
    if (n <= d->n_known_pages) return REE_OK;
    uint32_t *owners = ree_realloc(d->owners, n * sizeof *owners);
    if (owners) d->owners = owners;
    bool *is_dirty = ree_realloc(d->is_dirty, n * sizeof *is_dirty);
    if (is_dirty) d->is_dirty = is_dirty;
    int32_t *pages = ree_realloc(d->free_pages, n * sizeof *pages);
    if (pages) d->free_pages = pages;
    if (!owners || !is_dirty || !pages) return ree_no_memory(err);
    size_t first = d->n_known_pages ? d->n_known_pages : 1; // page 0 stays zeros
    // The last entry is used next, so the new pages go to the front in descending order: the lowest
    // numbers are used first.
    memmove(pages + (n - first), pages, d->n_free_pages * sizeof *pages);
    for (size_t i = first; i < n; i++)
        pages[n - 1 - i] = (int32_t)i;
    d->n_free_pages += n - first;
    memset(owners + d->n_known_pages, 0, (n - d->n_known_pages) * sizeof *owners);
    memset(is_dirty + d->n_known_pages, 0, (n - d->n_known_pages) * sizeof *is_dirty);
    d->n_known_pages = n;
    return REE_OK;
}

// Ensures that n pages are unused. The pool grows by half, so that a long text rarely moves its
// caches. If memory does not suffice for that, the pool grows only by the pages that are needed.
static enum ree_status need_pages(struct ree_decoding *d, size_t n, struct ree_error *err) {
    if (n <= d->n_free_pages) return REE_OK;
    const uint64_t page_bytes = ree_page_pool_page_bytes(d->pool);
    const size_t now = ree_page_pool_n_pages(d->pool);
    const size_t exact = (now ? now : 1) + n - d->n_free_pages;
    size_t wanted = exact + exact / 2, most = SIZE_MAX;
    if (wanted < MIN_PAGES) wanted = MIN_PAGES;
    if (d->options.max_cache_bytes) most = (size_t)(d->options.max_cache_bytes / page_bytes);
    if (exact > most)
        return ree_fail(err, REE_NO_MEMORY,
                        "%zu more pages of %zu tokens are needed, but the kv caches of all "
                        "sequences have %zu of at most %zu pages (%llu bytes each) in use or "
                        "reserved: truncate or remove a sequence, or raise max_cache_bytes",
                        n, REE_PAGE_POSITIONS, now - d->n_free_pages, most,
                        (unsigned long long)page_bytes);
    if (wanted > most) wanted = most;
    enum ree_status status = ree_page_pool_reserve(d->pool, wanted, err);
    if (status != REE_OK && wanted > exact) {
        ree_error_clear(err);
        status = ree_page_pool_reserve(d->pool, exact, err);
    }
    if (status != REE_OK) return status;
    return know_pages(d, err);
}

static enum ree_status reserve_entries(struct ree_decoding_sequence *s, size_t n,
                                       struct ree_error *err) {
    if (n <= s->pages_capacity) return REE_OK;
    size_t capacity = n + n / 2;
    int32_t *pages = ree_realloc(s->pages, capacity * sizeof *pages);
    if (!pages) return ree_no_memory(err);
    s->pages = pages;
    s->pages_capacity = capacity;
    return REE_OK;
}

static int32_t take_page(struct ree_decoding *d) {
    int32_t page = d->free_pages[--d->n_free_pages];
    d->owners[page] = 1;
    return page;
}

static void give_page(struct ree_decoding *d, int32_t page) {
    if (--d->owners[page] == 0) d->free_pages[d->n_free_pages++] = page;
}

// Copies of pages to make on the device: page from[i] to page to[i]. entries[i] says which sequence
// has page to[i], and at which index of its pages. If from[i] is 0, page to[i] becomes zeros.
struct copies {
    size_t n;
    int32_t *from, *to;
    struct entry {
        struct ree_decoding_sequence *sequence;
        size_t index;
    } * entries;
};

static void add_copy(struct copies *copies, int32_t from, struct ree_decoding_sequence *s,
                     size_t index) {
    copies->from[copies->n] = from;
    copies->to[copies->n] = s->pages[index];
    copies->entries[copies->n++] = (struct entry){s, index};
}

static size_t count_needed(const struct ree_decoding *d, const struct ree_decoding_sequence *s,
                           size_t first, size_t n_pages) {
    size_t n = n_pages > s->n_pages ? n_pages - s->n_pages : 0;
    for (size_t i = first >> REE_PAGE_BITS; i < s->n_pages && i < n_pages; i++)
        n += d->owners[s->pages[i]] > 1;
    return n;
}

// Replaces shared pages from position `first` on by the sequence's own, and adds pages up to
// n_pages. If only sequences of this call share a page, the last of them keeps it.
static void assign(struct ree_decoding *d, struct ree_decoding_sequence *s, size_t first,
                   size_t n_pages, struct copies *copies) {
    for (size_t i = first >> REE_PAGE_BITS; i < s->n_pages && i < n_pages; i++) {
        int32_t shared = s->pages[i];
        if (d->owners[shared] == 1) continue;
        s->pages[i] = take_page(d);
        d->owners[shared]--;
        add_copy(copies, shared, s, i);
    }
    while (s->n_pages < n_pages) {
        int32_t page = s->pages[s->n_pages++] = take_page(d);
        if (d->is_dirty[page]) add_copy(copies, 0, s, s->n_pages - 1);
    }
}

static void undo(struct ree_decoding *d, const struct copies *copies) {
    for (size_t i = copies->n; i-- > 0;) {
        struct ree_decoding_sequence *s = copies->entries[i].sequence;
        const size_t index = copies->entries[i].index;
        if (copies->from[i] == 0) {
            ree_pages_release(d, s, index);
            continue;
        }
        d->is_dirty[s->pages[index]] = true;
        give_page(d, s->pages[index]);
        s->pages[index] = copies->from[i];
        d->owners[copies->from[i]]++;
    }
}

enum ree_status ree_pages_reserve(struct ree_decoding *d,
                                  struct ree_decoding_sequence *const *sequences, size_t n,
                                  const size_t *first, const size_t *positions,
                                  struct ree_error *err) {
    size_t needed = 0;
    for (size_t i = 0; i < n; i++) {
        needed += count_needed(d, sequences[i], first[i], ree_pages_for(positions[i]));
        REE_TRY(reserve_entries(sequences[i], ree_pages_for(positions[i]), err));
    }
    if (needed == 0) return REE_OK;
    REE_TRY(need_pages(d, needed, err));
    struct copies copies = {.from = ree_alloc(needed * sizeof *copies.from),
                            .to = ree_alloc(needed * sizeof *copies.to),
                            .entries = ree_alloc(needed * sizeof *copies.entries)};
    enum ree_status status =
        copies.from && copies.to && copies.entries ? REE_OK : ree_no_memory(err);
    for (size_t i = 0; status == REE_OK && i < n; i++)
        assign(d, sequences[i], first[i], ree_pages_for(positions[i]), &copies);
    if (status == REE_OK) {
        status = ree_page_pool_copy(d->pool, copies.from, copies.to, copies.n, err);
        // After a failed copy, a page that was to become zeros may have any contents. It is already
        // marked as dirty.
        if (status != REE_OK) undo(d, &copies);
    }
    for (size_t i = 0; status == REE_OK && i < copies.n; i++)
        d->n_copied_pages += copies.from[i] != 0;
    for (size_t i = 0; status == REE_OK && i < n; i++)
        for (size_t k = first[i] >> REE_PAGE_BITS; k < sequences[i]->n_pages; k++)
            d->is_dirty[sequences[i]->pages[k]] = true;
    ree_free(copies.from);
    ree_free(copies.to);
    ree_free(copies.entries);
    return status;
}

// Sets the positions that truncated tokens have left in the last page to zeros. Only this sequence
// uses that page.
static enum ree_status clear_rest(struct ree_decoding *d, struct ree_decoding_sequence *s,
                                  struct ree_error *err) {
    int32_t positions[REE_PAGE_POSITIONS];
    size_t n = 0;
    for (size_t at = s->n; at < s->n_written && at % REE_PAGE_POSITIONS != 0; at++)
        positions[n++] =
            s->pages[at >> REE_PAGE_BITS] << REE_PAGE_BITS | (int32_t)(at % REE_PAGE_POSITIONS);
    return n ? ree_page_pool_clear(d->pool, positions, n, err) : REE_OK;
}

enum ree_status ree_pages_begin_run(struct ree_decoding *d,
                                    struct ree_decoding_sequence *const *sequences, size_t n,
                                    const size_t *positions, struct ree_error *err) {
    for (size_t i = 0; i < n; i++)
        REE_TRY(clear_rest(d, sequences[i], err));
    for (size_t i = 0; i < n; i++)
        sequences[i]->n_written = positions[i];
    return REE_OK;
}

void ree_pages_release(struct ree_decoding *d, struct ree_decoding_sequence *s, size_t n_pages) {
    while (s->n_pages > n_pages)
        give_page(d, s->pages[--s->n_pages]);
    const size_t kept = s->n_pages << REE_PAGE_BITS;
    if (s->n_written > kept) s->n_written = kept;
}

enum ree_status ree_pages_share(struct ree_decoding *d, const struct ree_decoding_sequence *from,
                                struct ree_decoding_sequence *fork, struct ree_error *err) {
    const size_t n = ree_pages_for(from->n); // without reserved pages
    REE_TRY(reserve_entries(fork, n, err));
    for (size_t i = 0; i < n; i++) {
        fork->pages[i] = from->pages[i];
        d->owners[from->pages[i]]++;
    }
    fork->n_pages = n;
    fork->n_written = from->n_written;
    return REE_OK;
}
