// Finds the index of a name in a list in O(log n): models and receipts may have 100,000 inputs.
#ifndef REE_BASE_NAME_INDEX_H
#define REE_BASE_NAME_INDEX_H

#include <stdbool.h>
#include <stddef.h>

#define REE_NO_NAME ((size_t)-1)

struct ree_name_entry {
    const char *name;
    size_t place; // index in the list
};

struct ree_name_index {
    struct ree_name_entry *entries; // sorted by name, then by place
    size_t n;
};

// Builds an index of the n names that name_of returns for places 0 to n - 1. The names are
// borrowed. Skips NULL names. Returns false if memory is exhausted.
bool ree_name_index_init(struct ree_name_index *index, size_t n,
                         const char *(*name_of)(const void *list, size_t place), const void *list);
// The same in three steps, for names that are not in one list: reserve capacity for n names, add
// each, then sort. ree_name_index_reserve returns false if memory is exhausted.
bool ree_name_index_reserve(struct ree_name_index *index, size_t n);
void ree_name_index_add(struct ree_name_index *index, const char *name, size_t place);
void ree_name_index_sort(struct ree_name_index *index);
// Returns the lowest place of the name; REE_NO_NAME if it is absent.
size_t ree_name_index_find(const struct ree_name_index *index, const char *name);
void ree_name_index_finish(struct ree_name_index *index);

#endif
