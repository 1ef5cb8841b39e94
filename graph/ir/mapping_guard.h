// Prevents the truncation of a mapped file from ending the process.
//
// Reading a page of a mapped file past the file's new end raises SIGBUS in the thread that reads,
// which may be any thread of the process. While at least one mapping is registered, the process has
// a SIGBUS handler that does the following:
//
// - For an address inside a registered mapping, replaces the whole mapping by zero pages and marks
//   it as damaged. The read then succeeds. Every user of the mapping must call ree_guard_is_damaged
//   before a result leaves the library.
// - For any other SIGBUS, does what the previous handler does.
//
// The previous handler is restored when the last mapping is destroyed. A handler that the host
// installs in the meantime is left in place. That host must either forward signals it does not
// handle, or decide itself what happens when a file is truncated.
#ifndef REE_GRAPH_IR_MAPPING_GUARD_H
#define REE_GRAPH_IR_MAPPING_GUARD_H

#include <stdbool.h>
#include <stddef.h>

struct ree_guard;
// Registers a private, read-only mapping of `size` > 0 bytes at `data`. NULL when memory is
// exhausted.
struct ree_guard *ree_guard_create(void *data, size_t size);
bool ree_guard_is_damaged(const struct ree_guard *guard);
void ree_guard_destroy(struct ree_guard *guard); // call before munmap; accepts NULL

#endif
