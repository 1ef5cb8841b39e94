// Mapped files and heap blocks: the memory outside the arena that a graph's constants point into. A
// graph keeps its mappings in a list and releases them when it is destroyed.
//
// A mapped file must not be written to or truncated while it is in use: checks that were made on
// its contents would no longer hold. Reading past a new end returns zeros
// (graph/ir/mapping_guard.h). Therefore ree_mappings_check must pass before any result computed
// from mapped files leaves the library.
#ifndef REE_GRAPH_IR_MAPPING_H
#define REE_GRAPH_IR_MAPPING_H

#include "base/status.h"

struct ree_mapping {
    struct ree_mapping *prev, *next; // neighbours in the list that holds it; NULL: none
    unsigned char *data;             // NULL for an empty file; read-only if is_file
    size_t size;
    bool is_file; // false: a heap block, with data and this struct in one allocation
    int fd;       // file: descriptor that the mapping owns; -1: none, `path` is used instead
    char *path;   // file without a descriptor: its path, owned; "": unknown
    // file: time of the last write when it was mapped: seconds, nanoseconds
    int64_t modified[2];
    struct ree_guard *guard; // detects truncation; NULL for heap blocks and empty files
    // file: numbers that identify it, so that two spellings of a path share one mapping
    uint64_t device, inode;
    // file: the name by which the model refers to it; borrowed; NULL: none
    const char *location;
    bool checked;             // file: `digest` has been computed
    unsigned char digest[20]; // SHA-1 of the file's contents, if `checked`
};

// Maps an open regular file read-only. The caller still owns `fd`. Fails with REE_INVALID for other
// kinds of files. The caller destroys *out or links it into a list.
enum ree_status ree_mapping_of_fd(int fd, struct ree_mapping **out, struct ree_error *err);
// As ree_mapping_of_fd, for the file at `path`. Fails with REE_NOT_FOUND if there is none.
enum ree_status ree_mapping_of_path(const char *path, struct ree_mapping **out,
                                    struct ree_error *err);
// Allocates a heap block whose data is aligned to 64 bytes. The bytes from `size` up to the next
// multiple of 64 are readable and zero. NULL when memory is exhausted.
struct ree_mapping *ree_mapping_of_size(size_t size);

// Fails with REE_IO if the file, or for ree_mappings_check a file of the list, was written to or
// truncated since it was mapped. The message names the file by `location`. Heap blocks always pass.
enum ree_status ree_mapping_check(const struct ree_mapping *mapping, struct ree_error *err);
enum ree_status ree_mappings_check(const struct ree_mapping *list, struct ree_error *err);

// ree_mapping_link adds a mapping to a list, ree_mapping_unlink removes it. The list owns the
// mappings that it contains.
void ree_mapping_link(struct ree_mapping **list, struct ree_mapping *mapping);
void ree_mapping_unlink(struct ree_mapping **list, struct ree_mapping *mapping);
void ree_mapping_destroy(struct ree_mapping *mapping); // NULL is accepted
void ree_mappings_destroy(struct ree_mapping **list);

#endif
