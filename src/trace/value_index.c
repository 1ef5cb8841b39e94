#include "trace/value_index.h"

#include <stdlib.h>

#include "base/memory.h"

static int compare(const void *a, const void *b) {
    const struct ree_value_entry *x = a, *y = b;
    const uintptr_t i = (uintptr_t)x->value, j = (uintptr_t)y->value;
    if (i != j) return i < j ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

bool ree_value_index_init(struct ree_value_index *index, struct ree_value *const *values,
                          size_t n) {
    index->n = 0;
    index->entries = ree_alloc((n + 1) * sizeof *index->entries);
    if (!index->entries) return false;
    for (size_t i = 0; i < n; i++)
        if (values[i]) index->entries[index->n++] = (struct ree_value_entry){values[i], i};
    qsort(index->entries, index->n, sizeof *index->entries, compare);
    return true;
}

size_t ree_value_index_find(const struct ree_value_index *index, const struct ree_value *value) {
    size_t low = 0, high = index->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)index->entries[middle].value < (uintptr_t)value)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < index->n && index->entries[low].value == value;
    return found ? index->entries[low].place : REE_NO_VALUE;
}

void ree_value_index_finish(struct ree_value_index *index) {
    ree_free(index->entries);
    index->entries = NULL;
    index->n = 0;
}
