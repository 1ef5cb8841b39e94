// Keeps a mapped file that is truncated from ending the process.
//
// Reading a page of a mapped file past the file's new end raises SIGBUS, in whichever thread reads:
// the caller's, an OpenMP worker, a driver's thread. While at least one mapping is registered here,
// the process has a handler for SIGBUS that
//
//   - for an address inside a registered mapping, puts zero pages in place of the whole mapping and
//     marks it as damaged: the read goes on, and whoever used the mapping must ask
//     ree_guard_is_damaged before a result leaves the library;
//   - for any other SIGBUS, does what the handler before it does.
//
// The previous handler comes back with the last mapping's end. A handler that the host installs
// meanwhile is left alone: such a host either passes on what it does not know, or decides itself
// what a truncated file does.
#ifndef REE_GRAPH_MAPPING_GUARD_H
#define REE_GRAPH_MAPPING_GUARD_H

#include <stdbool.h>
#include <stddef.h>

struct ree_guard;
// Registers size > 0 bytes of a private, read-only mapping. NULL when memory is exhausted.
struct ree_guard *ree_guard_create(void *data, size_t size);
bool ree_guard_is_damaged(const struct ree_guard *guard);
void ree_guard_destroy(struct ree_guard *guard); // before munmap; NULL is accepted

#endif
