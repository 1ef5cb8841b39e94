#include "device/cache_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

char *ree_cache_path(const char *cache_dir, const char *name) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *path = NULL;
    int n = -1;
    if (cache_dir)
        n = cache_dir[0] ? asprintf(&path, "%s/%s", cache_dir, name) : -1;
    else if (xdg && xdg[0] == '/')
        n = asprintf(&path, "%s/ree/%s", xdg, name);
    else if (home && home[0] == '/')
        n = asprintf(&path, "%s/.cache/ree/%s", home, name);
    return n < 0 ? NULL : path;
}

bool ree_cache_make_folders(char *path) {
    for (char *slash = path + 1; *slash; slash++) {
        if (*slash != '/') continue;
        *slash = '\0';
        bool ok = mkdir(path, 0700) == 0 || errno == EEXIST;
        *slash = '/';
        if (!ok) return false;
    }
    return true;
}
