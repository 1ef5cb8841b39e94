// Lists the files that device drivers need: libraries, manifests, settings, device nodes and
// caches. Environment variables name them, or they are in the usual folders.
#ifndef REE_TOOLS_RUN_DRIVER_PATHS_H
#define REE_TOOLS_RUN_DRIVER_PATHS_H

#include <stdbool.h>

struct driver_paths {
    // Callbacks. Each gets a path, which may not exist and is valid only during the call.
    void (*may_read)(void *user, const char *path);   // a file, or a folder with everything in it
    void (*may_open)(void *user, const char *path);   // device nodes
    void (*may_change)(void *user, const char *path); // a cache's folder, which exists
    // Creates a folder and its missing parents, with access for the owner only. The folder is
    // removed at the end if it is still empty. Returns false if the folder does not exist and
    // cannot be created.
    bool (*make)(void *user, const char *path);
    void *user;
};

// Files that any process needs: the C library, system libraries, and the system's information about
// the machine.
void driver_paths_of_system(const struct driver_paths *p);
// ree's own cache: self-test results and pipelines.
void driver_paths_of_ree(const struct driver_paths *p);
void driver_paths_of_vulkan(const struct driver_paths *p);
void driver_paths_of_cuda(const struct driver_paths *p);

#endif
