// Functions that only the files of lowering's core use.
#ifndef REE_GRAPH_LOWER_CORE_LOWER_INTERNAL_H
#define REE_GRAPH_LOWER_CORE_LOWER_INTERNAL_H

#include "graph/lower/core/lower.h"

// Adds a storage of nbytes bytes to lower->storages, without contents. NULL: out of memory.
struct ree_storage *ree_lower_add_storage(struct ree_lower *lower, enum ree_storage_kind kind,
                                          uint64_t nbytes);
// Allocates nbytes bytes of host memory that a dispatch may write: zeroed, and with padding, so
// that kernels may access the last word as a whole. NULL: out of memory.
void *ree_lower_host_memory(struct ree_lower *lower, uint64_t nbytes);

#endif
