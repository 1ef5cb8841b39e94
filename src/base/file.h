// Reads whole files into memory, and writes files so that they appear whole or not at all.
#ifndef REE_BASE_FILE_H
#define REE_BASE_FILE_H

#include "ree.h"

// Reads a regular file of any size. Release *out_bytes with ree_free; it is not NULL for an empty
// file. Fails with REE_NOT_FOUND, REE_IO or REE_NO_MEMORY.
enum ree_status ree_file_read(const char *path, void **out_bytes, size_t *out_nbytes,
                              struct ree_error *err);
// ree/file.h declares ree_file_read_small, ree_file_write and ree_file_is_private_key.

// As ree_file_write, but only the owner may read and write the file.
enum ree_status ree_file_write_secret(const char *path, const void *bytes, size_t nbytes,
                                      struct ree_error *err);
// As ree_file_write, but for a new file: fails with REE_IO if `path` exists. The process's umask is
// applied to `mode`.
enum ree_status ree_file_create(const char *path, const void *bytes, size_t nbytes, unsigned mode,
                                struct ree_error *err);

// A file that is written in steps, for contents that take hours to compute. It appears under its
// name, whole, at ree_file_commit; after a failure it does not appear at all. `mode` is 0666, or
// 0600 for a secret; the process's umask is applied to it.
struct ree_file_draft;
enum ree_status ree_file_begin(const char *path, unsigned mode, struct ree_file_draft **out,
                               struct ree_error *err);
enum ree_status ree_file_append(struct ree_file_draft *draft, const void *bytes, size_t nbytes,
                                struct ree_error *err);
// Writes all appended bytes to disk. Afterwards ree_file_commit can fail only at giving the file
// its name.
enum ree_status ree_file_sync(struct ree_file_draft *draft, struct ree_error *err);
// Gives the file its name and releases the draft, even on failure.
enum ree_status ree_file_commit(struct ree_file_draft *draft, struct ree_error *err);
void ree_file_abandon(struct ree_file_draft *draft); // deletes the draft; accepts NULL

#endif
