// The threads of a team stay the same ones, whatever sequence of kernels runs and however little
// work some kernels have. If a smaller team runs, an OpenMP library may end the threads it leaves
// over and create new ones for the next larger team, which would happen hundreds of times in one
// step of a language model.
//
// And no kernel opens a parallel region for one thread, because that costs an allocation and a
// system call. A forked process opens none: with GCC's library, a region would wait for the threads
// of the parent.
#include "cases.h"
#include "device/cpu/execute.h"
#include "test.h"

#ifdef __linux__
#include <dirent.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_THREADS 7
#define N_CASES 60 // of each RepOp

static long n_single; // regions that were opened for one thread

// The linker replaces the OpenMP library's functions by these (--wrap).
#ifdef __clang__
void __real___kmpc_push_num_threads(void *location, int32_t thread, int32_t n_threads);
void __wrap___kmpc_push_num_threads(void *location, int32_t thread, int32_t n_threads);
void __wrap___kmpc_push_num_threads(void *location, int32_t thread, int32_t n_threads) {
    n_single += n_threads == 1;
    __real___kmpc_push_num_threads(location, thread, n_threads);
}
void __real___kmpc_serialized_parallel(void *location, int32_t thread);
void __wrap___kmpc_serialized_parallel(void *location, int32_t thread);
void __wrap___kmpc_serialized_parallel(void *location, int32_t thread) {
    n_single++;
    __real___kmpc_serialized_parallel(location, thread);
}
#else
void __real_GOMP_parallel(void (*body)(void *), void *data, unsigned n_threads, unsigned flags);
void __wrap_GOMP_parallel(void (*body)(void *), void *data, unsigned n_threads, unsigned flags);
void __wrap_GOMP_parallel(void (*body)(void *), void *data, unsigned n_threads, unsigned flags) {
    n_single += n_threads == 1;
    __real_GOMP_parallel(body, data, n_threads, flags);
}
#endif

// Returns the id of the newest thread of this process.
static long newest_thread(void) {
    long newest = 0;
    DIR *tasks = opendir("/proc/self/task");
    REQUIRE(tasks);
    for (struct dirent *task; (task = readdir(tasks));)
        if (atol(task->d_name) > newest) newest = atol(task->d_name);
    closedir(tasks);
    return newest;
}

static void run_op(enum ree_repop op, struct ree_cpu_context *ctx) {
    uint32_t n_done = 0;
    for (uint64_t seed = 1; n_done < N_CASES; seed++) {
        struct rng rng = {.state = seed * 1000003 + (uint64_t)op, .host = true};
        struct test_case c;
        if (case_generators[op](&rng, &c)) {
            struct ree_error err;
            void *operands[REE_MAX_OPERANDS];
            memcpy(operands, c.contents, sizeof operands);
            // Cases with an index out of range return an error.
            ree_cpu_run_dispatch(ctx, &c.dispatch, operands, &err);
            n_done++;
        }
        test_case_finish(&c);
    }
}

#define SIZE 256
static void compute_in_forked_process(void) {
    static float a[SIZE * SIZE], b[SIZE * SIZE], out[SIZE * SIZE];
    void *operands[REE_MAX_OPERANDS] = {a, b, out};
    const struct ree_dispatch dispatch = {
        .op = REE_REPOP_MATMUL,
        .n_operands = 3,
        .n_outputs = 1,
        .operands = {{0, 0, sizeof a}, {1, 0, sizeof b}, {2, 0, sizeof out}},
        .params.matmul = {.n_batch = 1,
                          .m = SIZE,
                          .n = SIZE,
                          .k = SIZE,
                          .a_dtype = REE_F32,
                          .b_dtype = REE_F32,
                          .dtype = REE_F32,
                          .a_stride_m = SIZE,
                          .a_stride_k = 1,
                          .b_stride_k = SIZE,
                          .b_stride_n = 1},
    };
    struct ree_error err;
    int state = -1;
    CHECK(ree_cpu_execute_threads(&dispatch, operands, 0, &err) == REE_OK);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        alarm(30);
        _exit(ree_cpu_execute_threads(&dispatch, operands, 0, &err) != REE_OK);
    }
    waitpid(child, &state, 0);
    CHECK_MSG(WIFEXITED(state) && WEXITSTATUS(state) == 0, "the forked process: state %d", state);
}

int main(void) {
    static struct ree_cpu_scratch scratch[N_THREADS];
    long started = 0;
#pragma omp parallel num_threads(N_THREADS) reduction(+ : started)
    started++;
    if (started < N_THREADS) return test_skip("OpenMP gives fewer threads than asked for");
    long newest = newest_thread();
    for (uint32_t op = 0; op < REE_N_REPOPS; op++) {
        // Grain sizes from one that gives all threads work to one that gives only one thread work.
        for (uint32_t grain = 1; grain <= 10000; grain *= 100) {
            struct ree_cpu_context ctx = {
                .n_threads = N_THREADS, .scratch = scratch, .thread_grain = grain};
            run_op((enum ree_repop)op, &ctx);
            long now = newest_thread();
            CHECK_MSG(now == newest, "%s: threads were made anew", ree_repop_name(op));
            CHECK_MSG(n_single == 0, "%s: opened %ld regions for one thread", ree_repop_name(op),
                      n_single);
            n_single = 0;
            newest = now;
        }
    }
    for (uint32_t t = 0; t < N_THREADS; t++)
        ree_cpu_scratch_finish(&scratch[t]);
    compute_in_forked_process();
    return test_finish();
}

#else

int main(void) {
    return test_skip("threads are told apart on Linux only");
}

#endif
