// Finds the index of a name in a list in O(log n): models and receipts may have 100,000 inputs.
#ifndef REE_BASE_NAME_INDEX_H
#define REE_BASE_NAME_INDEX_H

#include <stdbool.h>
#include <stddef.h>

#define REE_NO_NAME ((size_t)-1)

struct ree_name_entry {
    const char *name;
    size_t place; // index of the name in the list
};

struct ree_name_index {
    struct ree_name_entry *entries; // sorted by name, then by place
    size_t n;
};

// Builds an index of the names name_of(list, 0) to name_of(list, n - 1). The names are borrowed;
// NULL names are skipped. Returns false if memory is exhausted.
bool ree_name_index_init(struct ree_name_index *index, size_t n,
                         const char *(*name_of)(const void *list, size_t place), const void *list);
// Build an index in three steps, for names that are not in one list: reserve capacity for n names,
// add each, then sort. ree_name_index_reserve returns false if memory is exhausted.
bool ree_name_index_reserve(struct ree_name_index *index, size_t n);
void ree_name_index_add(struct ree_name_index *index, const char *name, size_t place);
void ree_name_index_sort(struct ree_name_index *index);
// Returns the lowest place of the name, or REE_NO_NAME if the name is absent.
size_t ree_name_index_find(const struct ree_name_index *index, const char *name);
void ree_name_index_finish(struct ree_name_index *index);

#endif
