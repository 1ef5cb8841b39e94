// Whole files: read into memory, written whole or not at all.
#ifndef REE_BASE_FILE_H
#define REE_BASE_FILE_H

#include "ree.h"

// Reads a regular file. *out_bytes is released with free and is not NULL for an empty file.
enum ree_status ree_file_read(const char *path, void **out_bytes, size_t *out_nbytes,
                              struct ree_error *err);
// The same of at most so many bytes; of more, and nothing is read, REE_INVALID.
enum ree_status ree_file_read_small(const char *path, size_t max_nbytes, void **out_bytes,
                                    size_t *out_nbytes, struct ree_error *err);
// Whether the file begins with, or soon has, a private key in PEM form. No function below that
// replaces a file replaces one of these: REE_IO.
bool ree_file_is_private_key(const char *path);
// Writes the contents first and gives them the name afterwards: a reader sees the old contents or
// the new, and a failure leaves the old, as does a process that is killed meanwhile (it may leave a
// file of another name beside it: of the new contents, killed in the moment of replacing, or of a
// part of them, where the file system has no files without a name). What is there already has to be
// a regular file.
enum ree_status ree_file_write(const char *path, const void *bytes, size_t nbytes,
                               struct ree_error *err);
// The same, readable and writable by its owner only.
enum ree_status ree_file_write_secret(const char *path, const void *bytes, size_t nbytes,
                                      struct ree_error *err);
// The same for a new file: REE_IO where the name is taken. `mode` is without the user's mask.
enum ree_status ree_file_create(const char *path, const void *bytes, size_t nbytes, unsigned mode,
                                struct ree_error *err);

// The same piece by piece, for what is made over hours: nothing is there under the name until
// ree_file_commit, and nothing at all after a failure. `mode` is without the user's mask: 0666,
// or 0600 for a secret.
struct ree_file_draft;
enum ree_status ree_file_begin(const char *path, unsigned mode, struct ree_file_draft **out,
                               struct ree_error *err);
enum ree_status ree_file_append(struct ree_file_draft *draft, const void *bytes, size_t nbytes,
                                struct ree_error *err);
// Puts what was appended onto the disk: from then on only the name can fail.
enum ree_status ree_file_sync(struct ree_file_draft *draft, struct ree_error *err);
// Releases the draft in any case.
enum ree_status ree_file_commit(struct ree_file_draft *draft, struct ree_error *err);
void ree_file_abandon(struct ree_file_draft *draft); // accepts NULL
// For a thread that is about to end the process with _exit while others may be writing: removes the
// drafts that have a name of their own beside that of their file. No draft can be named or
// published afterwards; who tries waits for the end.
void ree_file_abandon_named(void);

#endif
