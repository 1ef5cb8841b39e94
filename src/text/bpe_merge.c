// The merges of BPE: always the pair of lowest rank, and among these the leftmost. Short words scan
// all pairs. Long words use a heap of candidates over a linked list, which takes O(n log n) time
// for n symbols.
#include "text/lm.h"

#include <stdlib.h>
#include "base/memory.h"

#define SHORT_WORD 64

static uint32_t rank_of(const struct ree_lm *lm, const int32_t *ids, size_t i) {
    const struct ree_merge *merge = ree_bpe_find(lm, ids[i], ids[i + 1]);
    return merge ? merge->rank : UINT32_MAX;
}

static void merge_short(const struct ree_lm *lm, struct ree_ids *symbols) {
    uint32_t ranks[SHORT_WORD]; // rank of the pair that starts at i
    int32_t *ids = symbols->items;
    size_t n = symbols->n;
    for (size_t i = 0; i + 1 < n; i++)
        ranks[i] = rank_of(lm, ids, i);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (ranks[i] < ranks[best]) best = i;
        if (ranks[best] == UINT32_MAX) break;
        ids[best] = ree_bpe_find(lm, ids[best], ids[best + 1])->id;
        n--;
        memmove(ids + best + 1, ids + best + 2, (n - best - 1) * sizeof *ids);
        // The pairs at `best` and before it are new. The ranks after them move down.
        if (best + 1 < n) {
            memmove(ranks + best + 1, ranks + best + 2, (n - best - 2) * sizeof *ranks);
            ranks[best] = rank_of(lm, ids, best);
        }
        if (best > 0) ranks[best - 1] = rank_of(lm, ids, best - 1);
    }
    symbols->n = n;
}

struct ree_lm_symbol {
    int32_t id;             // -1: merged into the previous symbol
    uint32_t before, after; // adjacent symbols; UINT32_MAX: none
};

struct ree_lm_candidate {
    uint32_t rank, at; // at: index of the pair's left symbol
    int32_t id;        // the merged symbol
};

static bool less(const struct ree_lm_candidate *a, const struct ree_lm_candidate *b) {
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static enum ree_status push(struct ree_lm_scratch *scratch, struct ree_lm_candidate candidate,
                            struct ree_error *err) {
    if (scratch->n_heap == scratch->heap_capacity) {
        size_t capacity = scratch->heap_capacity ? scratch->heap_capacity * 2 : 256;
        void *heap = ree_realloc(scratch->heap, capacity * sizeof *scratch->heap);
        if (!heap) return ree_fail(err, REE_NO_MEMORY, "no memory for a long word");
        scratch->heap = heap;
        scratch->heap_capacity = capacity;
    }
    struct ree_lm_candidate *heap = scratch->heap;
    size_t i = scratch->n_heap++;
    while (i > 0 && less(&candidate, &heap[(i - 1) / 2])) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = candidate;
    return REE_OK;
}

static struct ree_lm_candidate pop(struct ree_lm_scratch *scratch) {
    struct ree_lm_candidate *heap = scratch->heap, top = heap[0];
    struct ree_lm_candidate last = heap[--scratch->n_heap];
    size_t n = scratch->n_heap, i = 0;
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && less(&heap[child + 1], &heap[child])) child++;
        if (!less(&heap[child], &last)) break;
        heap[i] = heap[child];
    }
    heap[i] = last;
    return top;
}

static enum ree_status push_pair(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                                 uint32_t at, struct ree_error *err) {
    const struct ree_lm_symbol *list = scratch->list;
    if (at == UINT32_MAX || list[at].after == UINT32_MAX) return REE_OK;
    const struct ree_merge *merge = ree_bpe_find(lm, list[at].id, list[list[at].after].id);
    if (!merge) return REE_OK;
    return push(scratch, (struct ree_lm_candidate){merge->rank, at, merge->id}, err);
}

// A candidate is valid only if its pair still exists: its symbols may have been merged since.
static bool is_current(const struct ree_lm *lm, const struct ree_lm_symbol *list,
                       const struct ree_lm_candidate *candidate) {
    const struct ree_lm_symbol *symbol = &list[candidate->at];
    if (symbol->id < 0 || symbol->after == UINT32_MAX) return false;
    const struct ree_merge *merge = ree_bpe_find(lm, symbol->id, list[symbol->after].id);
    return merge && merge->rank == candidate->rank && merge->id == candidate->id;
}

static enum ree_status merge_long(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                                  struct ree_ids *symbols, struct ree_error *err) {
    size_t n = symbols->n;
    if (n >= UINT32_MAX)
        return ree_fail(err, REE_UNSUPPORTED, "a word of %zu symbols is too long", n);
    if (n > scratch->list_capacity) {
        ree_free(scratch->list);
        scratch->list = ree_alloc_zeroed(n, sizeof *scratch->list);
        scratch->list_capacity = scratch->list ? n : 0;
        if (!scratch->list) return ree_fail(err, REE_NO_MEMORY, "no memory for a long word");
    }
    struct ree_lm_symbol *list = scratch->list;
    for (uint32_t i = 0; i < n; i++)
        list[i] = (struct ree_lm_symbol){symbols->items[i], i - 1, i + 1 < n ? i + 1 : UINT32_MAX};
    scratch->n_heap = 0;
    for (uint32_t i = 0; i + 1 < n; i++)
        REE_TRY(push_pair(lm, scratch, i, err));
    while (scratch->n_heap) {
        struct ree_lm_candidate best = pop(scratch);
        if (!is_current(lm, list, &best)) continue;
        struct ree_lm_symbol *left = &list[best.at], *right = &list[left->after];
        left->id = best.id;
        right->id = -1;
        left->after = right->after;
        if (right->after != UINT32_MAX) list[right->after].before = best.at;
        REE_TRY(push_pair(lm, scratch, left->before, err));
        REE_TRY(push_pair(lm, scratch, best.at, err));
    }
    symbols->n = 0;
    for (uint32_t i = 0; i != UINT32_MAX; i = list[i].after)
        symbols->items[symbols->n++] = list[i].id;
    return REE_OK;
}

enum ree_status ree_bpe_merge(const struct ree_lm *lm, struct ree_lm_scratch *scratch,
                              struct ree_ids *symbols, struct ree_error *err) {
    if (symbols->n > SHORT_WORD) return merge_long(lm, scratch, symbols, err);
    if (symbols->n > 1) merge_short(lm, symbols);
    return REE_OK;
}
