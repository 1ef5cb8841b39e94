// Detects whether mpirun started this process, and loads the MPI module.
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "base/float_env.h"
#include "transport/link.h"
#include "transport/mpi/mpi_module.h"

#define MODULE "ree_mpi.so"
// Seconds beyond the deadline that mpirun may take to end after a rank has ended.
#define WATCHDOG_SLACK 10
// In the program's folder for a build; relative to the program's folder for an installation.
static const char *const places[] = {MODULE, REE_INSTALLED_MODULES MODULE};

bool ree_link_mpi_started(void) {
    // Open MPI's variable has the number of ranks; other PMIx starters only set the rank.
    const char *size = getenv("OMPI_COMM_WORLD_SIZE");
    return size ? strcmp(size, "1") != 0 : getenv("PMIX_RANK") != NULL;
}

enum ree_status ree_link_mpi_create(const struct ree_link_mpi_options *options,
                                    struct ree_link **out, struct ree_error *err) {
    char path[PATH_MAX + sizeof REE_INSTALLED_MODULES MODULE];
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
    *out = NULL;
    while (n > 0 && path[n - 1] != '/')
        n--;
    if (n <= 0) return ree_fail(err, REE_UNAVAILABLE, "cannot find the program's folder");
    bool found = false;
    for (size_t i = 0; i < sizeof places / sizeof *places && !found; i++) {
        memcpy(path + n, places[i], strlen(places[i]) + 1);
        found = access(path, R_OK) == 0;
    }
    if (!found)
        return ree_fail(err, REE_UNAVAILABLE,
                        "started by mpirun, but ree was built without MPI: there is no " MODULE
                        " in the program's folder and no %s (install libopenmpi-dev, configure and "
                        "build again)",
                        path);
    struct ree_mpi_setup setup = {*options, ree_watchdog_start(options->seconds + WATCHDOG_SLACK)};
    // UCX, which MPI may use, reads its environment when it is loaded. By default it writes its
    // messages to standard output, which is for ree-run's results.
    setenv("UCX_LOG_FILE", "stderr", 0);
    // Open MPI loads plugins that look up its symbols globally.
    void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    ree_float_env_set(); // MPI's libraries may have changed it
    if (!module) return ree_fail(err, REE_UNAVAILABLE, "%s", dlerror());
    enum ree_status (*open_mpi)(const struct ree_mpi_setup *, struct ree_link **,
                                struct ree_error *);
    void *symbol = dlsym(module, "ree_mpi_open");
    memcpy(&open_mpi, &symbol, sizeof symbol); // POSIX allows converting this to a function pointer
    if (!symbol) return ree_fail(err, REE_UNAVAILABLE, "%s", dlerror());
    return open_mpi(&setup, out, err);
}
