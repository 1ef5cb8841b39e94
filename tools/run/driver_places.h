// Where the drivers of devices have their files: libraries, manifests, settings, device nodes and
// caches, as the environment and the usual places say.
#ifndef REE_TOOLS_RUN_DRIVER_PLACES_H
#define REE_TOOLS_RUN_DRIVER_PLACES_H

#include <stdbool.h>

struct driver_places {
    // Each is called with a path that may not be there, and that is released afterwards.
    void (*may_read)(void *user, const char *path);   // a file, or a folder with all in it
    void (*may_open)(void *user, const char *path);   // device nodes
    void (*may_change)(void *user, const char *path); // a cache's folder, which is there
    // Makes a folder and those above it that are missing, for its owner only; it goes again at the
    // end if nothing came into it. False: it is not there.
    bool (*make)(void *user, const char *path);
    void *user;
};

// What any process has: the C library, the system's libraries and what it says of the machine.
void driver_places_of_system(const struct driver_places *p);
// ree's own cache: results of self-tests, pipelines.
void driver_places_of_ree(const struct driver_places *p);
void driver_places_of_vulkan(const struct driver_places *p);
void driver_places_of_cuda(const struct driver_places *p);

#endif
