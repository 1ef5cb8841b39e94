// A team with as many threads as the machine has processors binds each worker to its own processor.
// The caller's thread, teams of other sizes, and programs that set OMP_PROC_BIND keep their
// affinity. Each case runs in its own process, because a bound thread stays bound.
#include "device/cpu/cpu_internal.h"
#include "test.h"

#ifdef __linux__
#include <omp.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_THREADS 256

static cpu_set_t before[MAX_THREADS], after[MAX_THREADS];

static void get_masks(cpu_set_t *masks, uint32_t n) {
    bool ok = true;
#pragma omp parallel num_threads(n) reduction(&& : ok)
    ok = sched_getaffinity(0, sizeof(cpu_set_t), &masks[omp_get_thread_num()]) == 0;
    REQUIRE(ok);
}

// Runs one case in a process that has not bound any thread yet.
static int check_case(const char *name) {
    uint32_t n_cpus = (uint32_t)omp_get_num_procs();
    uint32_t n = n_cpus + (strcmp(name, "more") == 0) - (strcmp(name, "fewer") == 0);
    get_masks(before, n);
    for (int i = 0; i < 3; i++)
        ree_cpu_bind_team(n);
    get_masks(after, n);
    CHECK_MSG(CPU_EQUAL(&before[0], &after[0]), "the caller was bound");
    bool binds = strcmp(name, "all") == 0;
    for (uint32_t i = 1; i < n; i++) {
        if (!binds) {
            CHECK_MSG(CPU_EQUAL(&before[i], &after[i]), "%s: worker %u was bound", name, i);
            continue;
        }
        cpu_set_t both;
        CPU_AND(&both, &after[i], &before[0]);
        CHECK_MSG(CPU_COUNT(&after[i]) == 1 && CPU_EQUAL(&both, &after[i]),
                  "worker %u has %d processors", i, CPU_COUNT(&after[i]));
        for (uint32_t j = 1; j < i; j++)
            CHECK_MSG(!CPU_EQUAL(&after[i], &after[j]), "workers %u and %u share a processor", j,
                      i);
    }
    return test_finish();
}

static void run_case(const char *name, const char *bind) {
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        if (bind)
            setenv("OMP_PROC_BIND", bind, 1);
        else
            unsetenv("OMP_PROC_BIND");
        unsetenv("GOMP_CPU_AFFINITY");
        unsetenv("KMP_AFFINITY");
        execl("/proc/self/exe", "device_cpu_affinity", name, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: status %d", name, status);
}

int main(int argc, char **argv) {
    if (argc > 1) return check_case(argv[1]);
    // Counts the processors without OpenMP, because its threads do not survive fork().
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2 ||
        CPU_COUNT(&allowed) >= MAX_THREADS)
        return test_skip("needs 2 to 255 processors");
    run_case("all", NULL);
    run_case("more", NULL);
    if (CPU_COUNT(&allowed) > 2) // otherwise the team has no workers
        run_case("fewer", NULL);
    else
        printf("fewer: not tried, needs 3 processors\n");
    run_case("asked", "false");
    return test_finish();
}

#else

int main(void) {
    return test_skip("threads are placed on Linux only");
}

#endif
