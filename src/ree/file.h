// Reads whole files with a size limit, and writes files whole or not at all.
#ifndef REE_FILE_H
#define REE_FILE_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

// Reads a regular file of at most max_nbytes bytes. Release *out_bytes with ree_free; it is not
// NULL even if the file is empty. Fails with REE_NOT_FOUND if there is no such file, with
// REE_INVALID, before reading, if the file is larger, and with REE_IO if it cannot be read or is
// not a regular file.
REE_API enum ree_status ree_file_read_small(const char *path, size_t max_nbytes, void **out_bytes,
                                            size_t *out_nbytes, struct ree_error *err);
// Writes or replaces the file `path`. The new file gets its name only when it is complete, so a
// reader sees either the old contents or the new ones. If writing fails or the process is killed,
// the old file stays. A killed process may leave another file, named `path`.SUFFIX: with all new
// contents if it was killed while replacing the old file; with part of them if the file system does
// not support unnamed files. Fails with REE_IO if a file `path` exists that is not a regular file
// or contains a private key.
REE_API enum ree_status ree_file_write(const char *path, const void *bytes, size_t nbytes,
                                       struct ree_error *err);
// Returns whether a private key in PEM form begins within the first 64 KiB of the file. Functions
// of libree never replace such a file; they fail with REE_IO.
REE_API bool ree_file_is_private_key(const char *path);
// Deletes the unfinished files of libree that have a temporary name. Call it only immediately
// before _exit, if other threads may be writing files through libree: a thread that then tries to
// complete a file blocks until the process ends.
REE_API void ree_file_abandon_named(void);

// Returns the path of the file `name` in the folder where devices keep compiled pipelines and
// self-test results; release it with ree_free. cache_dir is as in struct ree_device_options: NULL
// means the default folder. Creates nothing. Returns NULL if cache_dir is "", the environment names
// no folder, or memory is exhausted.
REE_API char *ree_cache_path(const char *cache_dir, const char *name);

#ifdef __cplusplus
}
#endif
#endif
