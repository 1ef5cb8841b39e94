// Writes a file step by step. The file is either on disk, and gets its name only when it is
// complete (base/file.h), or in memory, without a name.
#ifndef REE_GRAPH_HF_OUTPUT_H
#define REE_GRAPH_HF_OUTPUT_H

#include "base/status.h"

struct ree_file_draft;
struct ree_output {
    const char *path; // path, or for a file in memory its name in messages; NULL: not open
    struct ree_file_draft *draft; // file on disk; NULL: in memory
    int fd;                       // descriptor of the file in memory; -1: none
    uint64_t size;                // bytes written so far
};

// Begins a file on disk. `path` must outlive *out.
enum ree_status ree_output_open(struct ree_output *out, const char *path, struct ree_error *err);
enum ree_status ree_output_write(struct ree_output *out, const void *bytes, uint64_t n,
                                 struct ree_error *err);
// Writes zeros up to the next multiple of `alignment`.
enum ree_status ree_output_align(struct ree_output *out, uint64_t alignment, struct ree_error *err);
// ree_output_open_memory begins a file in memory; `name` appears in messages and must outlive *out.
// ree_output_map returns the written contents as a mapping, which the caller owns, and closes the
// file, also on failure.
struct ree_mapping;
enum ree_status ree_output_open_memory(struct ree_output *out, const char *name,
                                       struct ree_error *err);
enum ree_status ree_output_map(struct ree_output *out, struct ree_mapping **out_mapping,
                               struct ree_error *err);
// Flushes a file on disk. If several files are flushed before the first is committed, a full disk
// leaves none of them under its final name.
enum ree_status ree_output_sync(struct ree_output *out, struct ree_error *err);
// Gives a file on disk its name and closes it, also on failure.
enum ree_status ree_output_commit(struct ree_output *out, struct ree_error *err);
// Closes a file without committing it, and removes what was written. Does nothing if the file is
// not open.
void ree_output_discard(struct ree_output *out);

#endif
