// The memory a graph's constants point into, besides its arena: mapped files and heap blocks. A
// graph keeps its mappings in a list and releases them when it is destroyed.
//
// A mapped file must not be written to or shortened while it is in use: what was checked would no
// longer hold. Reading past a new end gives zeros (graph/mapping_guard.h), so everything that was
// computed from mapped files is checked by ree_mappings_check before it leaves the library.
#ifndef REE_GRAPH_MAPPING_H
#define REE_GRAPH_MAPPING_H

#include "base/status.h"

struct ree_mapping {
    struct ree_mapping *prev, *next; // of the list it is in
    unsigned char *data;             // NULL for an empty file; a file's are read-only
    size_t size;
    bool is_file;             // else a heap block, data and this struct in one allocation
    int fd;                   // of a file: its own descriptor; -1: `path` stands for it
    char *path;               // of a file without a descriptor; malloc
    int64_t modified[2];      // of a file: when it was last written to, in seconds and nanoseconds
    struct ree_guard *guard;  // of a file that is not empty
    uint64_t device, inode;   // of a file: one mapping for two spellings of one path
    const char *location;     // of a file: what the model called it; owned by the graph's arena
    bool checked;             // of a file: its checksum was compared
    unsigned char digest[20]; // then this is it
};

// Maps an open regular file read-only; `fd` stays the caller's. Other kinds of file are refused.
enum ree_status ree_mapping_of_fd(int fd, struct ree_mapping **out, struct ree_error *err);
// Opens and maps the file at `path`; a missing one is REE_NOT_FOUND.
enum ree_status ree_mapping_of_path(const char *path, struct ree_mapping **out,
                                    struct ree_error *err);
// A heap block whose data are aligned to 64 bytes and readable, as zeros, up to the next multiple
// of 64 past `size`. NULL when memory is exhausted.
struct ree_mapping *ree_mapping_of_size(size_t size);

// REE_IO, with the name, where a file was written to or shortened since it was mapped. Other
// mappings pass.
enum ree_status ree_mapping_check(const struct ree_mapping *mapping, struct ree_error *err);
enum ree_status ree_mappings_check(const struct ree_mapping *list, struct ree_error *err);

void ree_mapping_link(struct ree_mapping **list, struct ree_mapping *mapping);
void ree_mapping_unlink(struct ree_mapping **list, struct ree_mapping *mapping);
void ree_mapping_destroy(struct ree_mapping *mapping); // NULL is accepted
void ree_mappings_destroy(struct ree_mapping **list);

#endif
