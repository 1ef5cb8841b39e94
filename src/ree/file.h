// Whole files: read with a limit; written whole or not at all.
#ifndef REE_FILE_H
#define REE_FILE_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

// Reads a regular file of at most max_nbytes bytes. Release *out_bytes with ree_free; it is not
// NULL for an empty file. Fails with REE_NOT_FOUND if there is no such file, with REE_INVALID,
// before reading, if it has more bytes, and with REE_IO if it cannot be read or is not a regular
// file.
REE_API enum ree_status ree_file_read_small(const char *path, size_t max_nbytes, void **out_bytes,
                                            size_t *out_nbytes, struct ree_error *err);
// Writes the contents first and gives them the name afterwards: a reader sees the old contents or
// the new ones. If writing fails or the process is killed, the old file stays. A killed process may
// leave another file named `path`.SUFFIX: with the new contents if it was killed while replacing
// the old file; with part of them if the file system does not support unnamed files. Fails with
// REE_IO if the existing file at `path` is not a regular file, or has a private key.
REE_API enum ree_status ree_file_write(const char *path, const void *bytes, size_t nbytes,
                                       struct ree_error *err);
// Whether a private key in PEM form begins within the first 64 KiB of the file. Functions of libree
// that replace a file fail with REE_IO instead of replacing a file with a private key.
REE_API bool ree_file_is_private_key(const char *path);
// For a thread that is about to end the process with _exit while other threads may be writing files
// through libree. Deletes unfinished files that have a temporary name. Afterwards a thread that
// tries to complete a file blocks until the process ends.
REE_API void ree_file_abandon_named(void);

// Returns the path "FOLDER/NAME"; release it with ree_free. FOLDER is where devices keep compiled
// pipelines and self-test results: cache_dir, as in struct ree_device_options. Creates nothing.
// Returns NULL if cache_dir is "", the environment names no folder, or memory is exhausted.
REE_API char *ree_cache_path(const char *cache_dir, const char *name);

#ifdef __cplusplus
}
#endif
#endif
