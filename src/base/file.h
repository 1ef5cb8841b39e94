// Whole files: read into memory; written whole or not at all.
#ifndef REE_BASE_FILE_H
#define REE_BASE_FILE_H

#include "ree.h"

// Reads a regular file. Release *out_bytes with ree_free; it is not NULL for an empty file.
enum ree_status ree_file_read(const char *path, void **out_bytes, size_t *out_nbytes,
                              struct ree_error *err);
// ree_file_read_small, ree_file_write, ree_file_is_private_key: ree/file.h

// Like ree_file_write; only the owner may read and write the file.
enum ree_status ree_file_write_secret(const char *path, const void *bytes, size_t nbytes,
                                      struct ree_error *err);
// Like ree_file_write, but for a new file: fails with REE_IO if the name exists. The process's
// umask is applied to `mode`.
enum ree_status ree_file_create(const char *path, const void *bytes, size_t nbytes, unsigned mode,
                                struct ree_error *err);

// Like ree_file_write, in steps, for contents that take hours to compute: the file appears at
// ree_file_commit and not before; after a failure it does not appear at all. The process's umask is
// applied to `mode`: 0666, or 0600 for a secret.
struct ree_file_draft;
enum ree_status ree_file_begin(const char *path, unsigned mode, struct ree_file_draft **out,
                               struct ree_error *err);
enum ree_status ree_file_append(struct ree_file_draft *draft, const void *bytes, size_t nbytes,
                                struct ree_error *err);
// Writes what was appended to disk. Afterwards ree_file_commit can fail only at giving the name.
enum ree_status ree_file_sync(struct ree_file_draft *draft, struct ree_error *err);
// Gives the file its name. Releases the draft even on failure.
enum ree_status ree_file_commit(struct ree_file_draft *draft, struct ree_error *err);
void ree_file_abandon(struct ree_file_draft *draft); // accepts NULL

#endif
