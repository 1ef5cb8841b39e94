// Lists the files that device drivers need (libraries, manifests, settings, device nodes, caches),
// so that the sandbox can allow them. Environment variables name them, or they are in the usual
// folders.
#ifndef REE_TOOLS_RUN_DRIVER_PATHS_H
#define REE_TOOLS_RUN_DRIVER_PATHS_H

#include <stdbool.h>

struct driver_paths {
    // Callbacks for the paths found. A path is valid only during the call and may not exist.
    // may_read: a file or a folder, with everything in it, that is only read. may_open: a device
    // node or a folder of pipes, which is opened for reading and writing. may_change: the folder of
    // a cache, which exists and in which files are created and removed.
    void (*may_read)(void *user, const char *path);
    void (*may_open)(void *user, const char *path);
    void (*may_change)(void *user, const char *path);
    // Callback that must create a folder and its missing parents, with access for the owner only.
    // Folders that are still empty when the process ends may be removed. Returns false if the
    // folder does not exist and cannot be created.
    bool (*make)(void *user, const char *path);
    void *user;
};

// Lists the files that any process needs: the C library, system libraries, and the system's
// information about the machine.
void driver_paths_of_system(const struct driver_paths *p);
// Lists the folder of ree's own cache (self-test results, compiled pipelines) and creates it.
void driver_paths_of_ree(const struct driver_paths *p);
void driver_paths_of_vulkan(const struct driver_paths *p);
void driver_paths_of_cuda(const struct driver_paths *p);

#endif
