#include "session/memory_plan.h"

#include <stdlib.h>

#include "base/status.h"

#define ALIGN REE_MEMORY_PLAN_ALIGN

static int by_size(const void *a, const void *b) {
    const struct ree_memory_plan_tensor *x = *(struct ree_memory_plan_tensor *const *)a,
                                        *y = *(struct ree_memory_plan_tensor *const *)b;
    if (x->nbytes != y->nbytes) return x->nbytes < y->nbytes ? 1 : -1;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

// Up to this many tensors are placed by a quadratic search.
#define MAX_SEARCHED 16384

// Rounds a size in bytes up to a number of ALIGN-sized blocks with at most three significant bits,
// so that there are few sizes: 4 per power of two. *out_class receives a number that identifies the
// rounded size.
static uint64_t round_to_class(uint64_t size, uint32_t *out_class) {
    uint64_t blocks = (size + ALIGN - 1) / ALIGN;
    uint32_t shift = blocks > 8 ? 61 - (uint32_t)__builtin_clzll(blocks - 1) : 0;
    uint64_t rounded = ((blocks - 1) >> shift) + 1; // 1 to 8
    if (!blocks) rounded = 0;
    *out_class = shift * 8 + (uint32_t)rounded;
    return (rounded << shift) * ALIGN;
}

static int by_first(const void *a, const void *b) {
    const struct ree_memory_plan_tensor *x = *(struct ree_memory_plan_tensor *const *)a,
                                        *y = *(struct ree_memory_plan_tensor *const *)b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static int by_last(const void *a, const void *b) {
    const struct ree_memory_plan_tensor *x = *(struct ree_memory_plan_tensor *const *)a,
                                        *y = *(struct ree_memory_plan_tensor *const *)b;
    if (x->last != y->last) return x->last < y->last ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

// Places tensors in order of time: each takes a free place of its size class, or a new one at the
// end of the arena. O(n log n); the arena is up to a third larger than with the quadratic search.
static enum ree_status plan_many(struct ree_memory_plan_tensor *tensors, size_t n,
                                 struct ree_arena *scratch, uint64_t *out_size,
                                 struct ree_error *err) {
    enum { N_CLASSES = 64 * 8 };
    struct ree_memory_plan_tensor **order = ree_arena_alloc_array(scratch, n, sizeof *order);
    struct ree_memory_plan_tensor **ends = ree_arena_alloc_array(scratch, n, sizeof *ends);
    // Per size class, a list of the tensors whose places are free. top[class] is its first entry
    // and next[i] the entry after tensor i: 1 + index of the tensor; 0: none.
    size_t *next = ree_arena_alloc_array(scratch, n, sizeof *next);
    size_t *top = ree_arena_alloc_array(scratch, N_CLASSES, sizeof *top);
    if (!order || !ends || !next || !top) return ree_no_memory(err);
    for (size_t i = 0; i < n; i++)
        order[i] = ends[i] = &tensors[i];
    qsort(order, n, sizeof *order, by_first);
    qsort(ends, n, sizeof *ends, by_last);
    size_t n_ended = 0;
    for (size_t i = 0; i < n; i++) {
        struct ree_memory_plan_tensor *t = order[i];
        uint32_t class;
        for (; n_ended < n && ends[n_ended]->last < t->first; n_ended++) {
            round_to_class(ends[n_ended]->nbytes, &class);
            size_t ended = (size_t)(ends[n_ended] - tensors);
            next[ended] = top[class];
            top[class] = ended + 1;
        }
        uint64_t size = round_to_class(t->nbytes, &class);
        if (top[class]) {
            size_t free_one = top[class] - 1;
            top[class] = next[free_one];
            t->offset = tensors[free_one].offset;
        } else {
            t->offset = *out_size;
            *out_size += size;
        }
    }
    return REE_OK;
}

enum ree_status ree_memory_plan(struct ree_memory_plan_tensor *tensors, size_t n,
                                struct ree_arena *scratch, uint64_t *out_size,
                                struct ree_error *err) {
    *out_size = 0;
    if (n > MAX_SEARCHED) return plan_many(tensors, n, scratch, out_size, err);
    struct ree_memory_plan_tensor **order = ree_arena_alloc_array(scratch, n + 1, sizeof *order);
    // Tensors placed so far, by ascending offset.
    struct ree_memory_plan_tensor **placed = ree_arena_alloc_array(scratch, n + 1, sizeof *placed);
    if (!order || !placed) return ree_no_memory(err);
    for (size_t i = 0; i < n; i++)
        order[i] = &tensors[i];
    if (n) qsort(order, n, sizeof *order, by_size);
    for (size_t i = 0; i < n; i++) {
        struct ree_memory_plan_tensor *t = order[i];
        uint64_t size = (t->nbytes + ALIGN - 1) / ALIGN * ALIGN, at = 0;
        size_t k = 0;
        for (; k < i; k++) {
            const struct ree_memory_plan_tensor *p = placed[k];
            if (p->last < t->first || p->first > t->last) continue;
            if (p->offset >= at + size) break; // fits in the gap before p
            uint64_t end = p->offset + (p->nbytes + ALIGN - 1) / ALIGN * ALIGN;
            if (end > at) at = end;
        }
        t->offset = at;
        size_t pos = i;
        while (pos > 0 && placed[pos - 1]->offset > at) {
            placed[pos] = placed[pos - 1];
            pos--;
        }
        placed[pos] = t;
        if (at + size > *out_size) *out_size = at + size;
    }
    return REE_OK;
}
