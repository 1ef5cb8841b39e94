#include "base/memory.h"
#include "base/name_index.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) {
    const struct ree_name_entry *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

bool ree_name_index_reserve(struct ree_name_index *index, size_t n) {
    index->n = 0;
    index->entries = ree_alloc_zeroed(n + 1, sizeof *index->entries);
    return index->entries != NULL;
}

void ree_name_index_add(struct ree_name_index *index, const char *name, size_t place) {
    index->entries[index->n++] = (struct ree_name_entry){name, place};
}

void ree_name_index_sort(struct ree_name_index *index) {
    qsort(index->entries, index->n, sizeof *index->entries, compare);
}

bool ree_name_index_init(struct ree_name_index *index, size_t n,
                         const char *(*name_of)(const void *list, size_t place), const void *list) {
    if (!ree_name_index_reserve(index, n)) return false;
    for (size_t i = 0; i < n; i++) {
        const char *name = name_of(list, i);
        if (name) ree_name_index_add(index, name, i);
    }
    ree_name_index_sort(index);
    return true;
}

size_t ree_name_index_find(const struct ree_name_index *index, const char *name) {
    size_t low = 0, high = index->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(index->entries[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < index->n && strcmp(index->entries[low].name, name) == 0;
    return found ? index->entries[low].place : REE_NO_NAME;
}

void ree_name_index_finish(struct ree_name_index *index) {
    ree_free(index->entries);
    index->entries = NULL;
    index->n = 0;
}
