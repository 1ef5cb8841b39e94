#include "session/plan.h"

#include <stdlib.h>

#include "base/status.h"

#define ALIGN REE_PLAN_ALIGN

static int by_size(const void *a, const void *b) {
    const struct ree_plan_tensor *x = *(struct ree_plan_tensor *const *)a,
                                 *y = *(struct ree_plan_tensor *const *)b;
    if (x->nbytes != y->nbytes) return x->nbytes < y->nbytes ? 1 : -1;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

enum ree_status ree_plan_memory(struct ree_plan_tensor *tensors, size_t n,
                                struct ree_arena *scratch, uint64_t *out_size,
                                struct ree_error *err) {
    *out_size = 0;
    struct ree_plan_tensor **order = ree_arena_alloc_array(scratch, n + 1, sizeof *order);
    // Tensors placed so far, by ascending offset.
    struct ree_plan_tensor **placed = ree_arena_alloc_array(scratch, n + 1, sizeof *placed);
    if (!order || !placed) return ree_fail(err, REE_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < n; i++)
        order[i] = &tensors[i];
    if (n) qsort(order, n, sizeof *order, by_size);
    for (size_t i = 0; i < n; i++) {
        struct ree_plan_tensor *t = order[i];
        uint64_t size = (t->nbytes + ALIGN - 1) / ALIGN * ALIGN, at = 0;
        size_t k = 0;
        for (; k < i; k++) {
            const struct ree_plan_tensor *p = placed[k];
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
