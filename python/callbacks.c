// The part of ree._ree that is written by hand; cffi generates the rest around it.
#include "ree.h"
#include "ree/bench.h"

#include <time.h>

#define INTERVAL 0.05 // seconds between calls into Python

struct ree_py_progress {
    void *handle;
    double next_call;
};

static bool ree_py_progress_call(void *handle, const char *what, uint64_t done, uint64_t total);

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool ree_py_report(void *user, const char *what, uint64_t done, uint64_t total) {
    struct ree_py_progress *progress = user;
    double now = seconds();
    if (now < progress->next_call) return true;
    progress->next_call = now + INTERVAL;
    return ree_py_progress_call(progress->handle, what, done, total);
}
