// A file being written: on the disk, where it gets its name when it is whole (base/file.h), or in
// memory, without a name.
#ifndef REE_GRAPH_HF_OUTPUT_H
#define REE_GRAPH_HF_OUTPUT_H

#include "base/status.h"

struct ree_file_draft;
struct ree_output {
    const char *path;             // NULL: not open
    struct ree_file_draft *draft; // NULL: in memory
    int fd;                       // of the one in memory; -1: there is none
    uint64_t size;                // written so far
};

// `path` has to outlive it.
enum ree_status ree_output_open(struct ree_output *out, const char *path, struct ree_error *err);
enum ree_status ree_output_write(struct ree_output *out, const void *bytes, uint64_t n,
                                 struct ree_error *err);
// Zeros up to the next multiple of `alignment`.
enum ree_status ree_output_align(struct ree_output *out, uint64_t alignment, struct ree_error *err);
// A file in memory, which `name` names in messages; and what was written to it, mapped. Closed
// afterwards, also on failure.
struct ree_mapping;
enum ree_status ree_output_open_memory(struct ree_output *out, const char *name,
                                       struct ree_error *err);
enum ree_status ree_output_map(struct ree_output *out, struct ree_mapping **out_mapping,
                               struct ree_error *err);
// Puts a file onto the disk, so that of several none gets its name if one has no room.
enum ree_status ree_output_sync(struct ree_output *out, struct ree_error *err);
// Gives the file its name. Closed afterwards, also on failure.
enum ree_status ree_output_commit(struct ree_output *out, struct ree_error *err);
// Removes what was written and not committed; a file that is not open is accepted.
void ree_output_discard(struct ree_output *out);

#endif
