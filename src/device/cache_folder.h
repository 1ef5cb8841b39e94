// Where a device keeps what it need not find out twice: compiled pipelines, results of self-tests.
#ifndef REE_DEVICE_CACHE_FOLDER_H
#define REE_DEVICE_CACHE_FOLDER_H

#include <stdbool.h>

// "FOLDER/NAME", released with free. FOLDER is cache_dir, or where that is NULL
// $XDG_CACHE_HOME/ree, or $HOME/.cache/ree. NULL where there is none (cache_dir is "") or no
// memory.
char *ree_cache_path(const char *cache_dir, const char *name);
// Makes the folders above a file, mode 0700. False: could not. Changes path only while it runs.
bool ree_cache_make_folders(char *path);

#endif
