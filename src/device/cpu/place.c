// One processor for each thread of a team that has as many threads as the process has processors.
//
// Left alone, the system now and then wakes a worker on the processor where the caller already
// runs and leaves the two there, another processor idle, for some milliseconds: longer than most
// dispatches take, so that the product of one row ran at half its rate in every second run.
//
// A worker that the OpenMP library makes anew, as libgomp does when a smaller team came between
// (kernels ask for none, ree_cpu_threads_for), is free until the caller is seen on another
// processor.
#include "device/cpu/cpu_internal.h"

#include <omp.h>
#include <sched.h>
#include <stdlib.h>

#ifdef __linux__

// Of the calling thread's team: the caller's processor when it was placed, and its size.
static _Thread_local int placed_around = -1;
static _Thread_local uint32_t placed_threads;

// Binds the calling thread to the `n`-th processor of `allowed`, `skipped` not counted.
static void bind_self(const cpu_set_t *allowed, int skipped, int n) {
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (cpu == skipped || !CPU_ISSET(cpu, allowed) || n-- > 0) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        // Where this is not allowed nothing is lost but speed.
        sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

void ree_cpu_place_team(uint32_t n_threads) {
    if (n_threads < 2 || omp_in_parallel()) return;
    int here = sched_getcpu();
    if (here < 0 || (here == placed_around && n_threads == placed_threads)) return;
    placed_around = here;
    placed_threads = n_threads;
    if (getenv("OMP_PROC_BIND") || omp_get_proc_bind() != omp_proc_bind_false) return;
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    if ((uint32_t)CPU_COUNT(&allowed) != n_threads || !CPU_ISSET(here, &allowed)) return;
#pragma omp parallel num_threads(n_threads)
    {
        REE_FLOAT_ENV_WORKER();
        if (omp_get_thread_num() > 0) bind_self(&allowed, here, omp_get_thread_num() - 1);
    }
}

#else

void ree_cpu_place_team(uint32_t n_threads) {
    (void)n_threads;
}

#endif
