// Where a device keeps what it need not find out twice: compiled pipelines, results of self-tests.
#ifndef REE_DEVICE_CACHE_FOLDER_H
#define REE_DEVICE_CACHE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

// "FOLDER/NAME", released with free. FOLDER is cache_dir, or where that is NULL
// $XDG_CACHE_HOME/ree, or $HOME/.cache/ree. NULL where there is none (cache_dir is "") or no
// memory.
char *ree_cache_path(const char *cache_dir, const char *name);

// A file says what need not be tested again, and a driver reads compiled code from one. So a folder
// or a file that somebody else could have written is not used: both must belong to the user that
// the process runs as, must not be writable by others, and must not be symbolic links.
//
// Reads a file of at most so many bytes, to be released with free. False: it is not there, or not
// used.
bool ree_cache_read(const char *path, size_t max_nbytes, void **out_bytes, size_t *out_nbytes);
// Writes it whole or not at all, readable by its owner only. Makes the folders above it, mode 0700.
void ree_cache_write(const char *path, const void *bytes, size_t nbytes);
// An open descriptor of the file's folder, which `makes` makes; -1: it is not there, or not used.
int ree_cache_open_folder(const char *path, bool makes);
// False, with the reason: the folder or the file is there and is not used.
bool ree_cache_is_usable(const char *path, char *out_why, size_t size);

#endif
