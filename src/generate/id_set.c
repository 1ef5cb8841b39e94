#include "generate/id_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"

static int compare(const void *a, const void *b) {
    const int32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

enum ree_status ree_id_set_make(const int32_t *ids, size_t n, struct ree_id_set *out,
                                struct ree_error *err) {
    *out = (struct ree_id_set){.ids = ree_alloc_zeroed(n + 1, sizeof *ids)};
    if (!out->ids) return ree_no_memory(err);
    if (n) memcpy(out->ids, ids, n * sizeof *ids);
    qsort(out->ids, n, sizeof *ids, compare);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || out->ids[i] != out->ids[out->n - 1]) out->ids[out->n++] = out->ids[i];
    return REE_OK;
}

bool ree_id_set_has(const struct ree_id_set *set, int32_t id) {
    return set->n && bsearch(&id, set->ids, set->n, sizeof id, compare);
}

bool ree_id_set_contains(const struct ree_id_set *set, const struct ree_id_set *part) {
    for (size_t i = 0; i < part->n; i++)
        if (!ree_id_set_has(set, part->ids[i])) return false;
    return true;
}

bool ree_id_set_is_same(const struct ree_id_set *a, const struct ree_id_set *b) {
    return a->n == b->n && (a->n == 0 || memcmp(a->ids, b->ids, a->n * sizeof *a->ids) == 0);
}

void ree_id_set_finish(struct ree_id_set *set) {
    ree_free(set->ids);
    *set = (struct ree_id_set){0};
}
