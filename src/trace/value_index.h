// Finds a value's first place in a list of values of one graph in O(log n): a node may have 100,000
// inputs.
#ifndef REE_TRACE_VALUE_INDEX_H
#define REE_TRACE_VALUE_INDEX_H

#include "graph/ir/ir.h"

#define REE_NO_VALUE ((size_t)-1)

struct ree_value_index {
    struct ree_value_entry {
        const struct ree_value *value;
        size_t place;
    } * entries; // sorted by address, then by place
    size_t n;
};

// Builds the index of `values`; NULLs among them are skipped. Returns false if memory is exhausted.
bool ree_value_index_init(struct ree_value_index *index, struct ree_value *const *values, size_t n);
size_t ree_value_index_find(const struct ree_value_index *index, const struct ree_value *value);
void ree_value_index_finish(struct ree_value_index *index);

#endif
