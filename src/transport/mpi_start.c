// Detects whether mpirun started this process, and loads the MPI module.
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/options.h"
#include "ree/testing.h"
#include "transport/link.h"
#include "transport/mpi/mpi_module.h"
#include "transport/transport.h"

#define MODULE "ree_mpi.so"
// Seconds beyond the deadline that mpirun may take to end after a rank has ended.
#define WATCHDOG_SLACK 10
// Where the module may be, relative to the program's folder: in a build, in an installation.
static const char *const places[] = {MODULE, REE_INSTALLED_MODULES MODULE};
// Where the module may be, relative to the folder of libree.so: in a build, in an installation.
static const char *const places_of_library[] = {MODULE, "ree/" MODULE};

// Looks for the module at the n places `where`, relative to the folder of `file`. `out` receives
// its path or, if the module is at none of them, the last path tried.
static bool find_module(const char *file, const char *const *where, size_t n, char *out,
                        size_t size) {
    const char *slash = strrchr(file, '/');
    int folder = slash ? (int)(slash + 1 - file) : 0;
    for (size_t i = 0; i < n; i++) {
        snprintf(out, size, "%.*s%s", folder, file, where[i]);
        if (access(out, R_OK) == 0) return true;
    }
    return false;
}

bool ree_transport_started(void) {
    // Open MPI's variable has the number of ranks; other PMIx starters only set the rank.
    const char *size = getenv("OMPI_COMM_WORLD_SIZE");
    return size ? strcmp(size, "1") != 0 : getenv("PMIX_RANK") != NULL;
}

enum ree_status ree_link_mpi_create(const struct ree_link_mpi_options *options,
                                    struct ree_link **out, struct ree_error *err) {
    char program[PATH_MAX], path[PATH_MAX + sizeof REE_INSTALLED_MODULES MODULE];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    *out = NULL;
    if (n <= 0) return ree_fail(err, REE_UNAVAILABLE, "cannot find the program's folder");
    program[n] = 0;
    Dl_info library; // of this code: libree.so, or the program itself
    bool found = dladdr(places, &library) && library.dli_fname && strchr(library.dli_fname, '/') &&
                 find_module(library.dli_fname, places_of_library, 2, path, sizeof path);
    if (!found && !find_module(program, places, 2, path, sizeof path))
        return ree_fail(err, REE_UNAVAILABLE,
                        "started by mpirun, but ree was built without MPI: there is no " MODULE
                        " in the program's folder and no %s (install libopenmpi-dev, configure and "
                        "build again)",
                        path);
    struct ree_mpi_setup setup = {.options = *options,
                                  .watchdog = ree_watchdog_start(options->seconds + WATCHDOG_SLACK),
                                  .reallocate = ree_realloc,
                                  .release = ree_free};
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

enum ree_status ree_transport_open_mpi(const struct ree_transport_open_options *options,
                                       struct ree_transport **out, struct ree_error *err) {
    REE_FLOAT_ENV_API();
    struct ree_transport_open_options o;
    struct ree_ranks_testing testing;
    struct ree_link *link;
    *out = NULL;
    REE_TRY(ree_options_read(&o, sizeof o, options, "ree_transport_open_options", err));
    REE_TRY(ree_options_read(&testing, sizeof testing, o.testing, "ree_ranks_testing", err));
    if (o.deadline <= 0) o.deadline = REE_TRANSPORT_DEADLINE;
    struct ree_link_mpi_options mpi = {.seconds = o.deadline, .piece = testing.message_piece};
    REE_TRY(ree_link_mpi_create(&mpi, &link, err));
    const struct ree_transport_options own = {.deadline = o.deadline,
                                              .work_deadline = o.work_deadline,
                                              .on_lost = o.on_lost,
                                              .user = o.user,
                                              .corrupt = testing.corrupt};
    return ree_transport_create(link, &own, out, err);
}
