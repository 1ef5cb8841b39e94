// Reads and writes the files that save a device from repeating work: compiled pipelines and
// self-test results.
#ifndef REE_DEVICE_CACHE_FOLDER_H
#define REE_DEVICE_CACHE_FOLDER_H

#include "ree.h"

// ree/file.h declares ree_cache_path, which returns the path FOLDER/NAME. FOLDER is cache_dir. If
// cache_dir is NULL, FOLDER is $XDG_CACHE_HOME/ree, or else $HOME/.cache/ree. There is no path if
// cache_dir is "", or if neither variable is an absolute path.

// Security: a cache file decides which kernels are not tested again, and a driver may load compiled
// code from it. So a folder or file is used only if it belongs to the process's effective user, is
// not writable by others, and is not a symbolic link.
//
// Reads a file of at most max_nbytes bytes; the caller releases *out_bytes with ree_free. Returns
// false if the file is missing, too large or not usable by the rule above.
bool ree_cache_read(const char *path, size_t max_nbytes, void **out_bytes, size_t *out_nbytes);
// Replaces the file atomically, readable only by its owner. Creates missing parent folders with
// mode 0700. Ignores failures.
void ree_cache_write(const char *path, const void *bytes, size_t nbytes);
// Returns an open descriptor of the file's folder, or -1 if the folder is missing or not usable.
// `makes`: create the folder if it is missing.
int ree_cache_open_folder(const char *path, bool makes);
// Returns false, with the reason in out_why, if the folder or the file exists but is not usable. A
// missing file is usable. path may be NULL.
bool ree_cache_is_usable(const char *path, char *out_why, size_t size);

#endif
