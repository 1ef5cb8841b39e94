// Thread affinity: one processor per thread, for a team with as many threads as the process has
// processors.
//
// Without affinity, the system sometimes wakes a worker on the processor where the caller already
// runs and leaves both there for some milliseconds, while another processor is idle. That is longer
// than most dispatches take: the product of one row ran at half its rate in every second run.
//
// If the OpenMP library recreates a worker, the new worker is unbound until ree_cpu_bind_team finds
// the caller on another processor. libgomp does this after a smaller team; kernels never request
// one (ree_cpu_threads_for).
#include "device/cpu/cpu_internal.h"

#include <omp.h>
#include <sched.h>
#include <stdlib.h>

#ifdef __linux__

// The caller's processor and the team's size in the last call of ree_cpu_bind_team that found one
// of them changed.
static _Thread_local int bound_around = -1;
static _Thread_local uint32_t bound_threads;

// Binds the calling thread to the n-th processor of `allowed`, not counting `skipped`.
static void bind_self(const cpu_set_t *allowed, int skipped, int n) {
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (cpu == skipped || !CPU_ISSET(cpu, allowed) || n-- > 0) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        // A failure costs only speed.
        sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

void ree_cpu_bind_team(uint32_t n_threads) {
    if (n_threads < 2 || omp_in_parallel()) return;
    int here = sched_getcpu();
    if (here < 0 || (here == bound_around && n_threads == bound_threads)) return;
    bound_around = here;
    bound_threads = n_threads;
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

void ree_cpu_bind_team(uint32_t n_threads) {
    (void)n_threads;
}

#endif
