// Shared by the files of lowering's core.
#ifndef REE_GRAPH_LOWER_CORE_LOWER_INTERNAL_H
#define REE_GRAPH_LOWER_CORE_LOWER_INTERNAL_H

#include "graph/lower/core/lower.h"

static inline enum ree_status ree_lower_no_memory(struct ree_lower *lower) {
    return ree_lower_fail(lower, REE_NO_MEMORY, "out of memory");
}
// Adds a storage without contents; NULL: out of memory.
struct ree_storage *ree_lower_add_storage(struct ree_lower *lower, enum ree_storage_kind kind,
                                          uint64_t nbytes);
// Allocates host memory that a dispatch may write: zeroed, and padded so that whole words can be
// accessed. NULL: out of memory.
void *ree_lower_host_memory(struct ree_lower *lower, uint64_t nbytes);

#endif
