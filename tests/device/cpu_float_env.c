// Every RepOp gives the same bits if all threads (the caller's and the OpenMP team's) round down,
// flush subnormals and have trapping exceptions, and each thread keeps that environment. Also tests
// the scopes of base/float_env.h: calls, nested calls, callbacks, and threads that ree started.
#include "base/float_env.h"
#include "cases.h"
#include "device/cpu/execute.h"
#include "test.h"

#include <fenv.h>
#include <omp.h>
#include <stdlib.h>

#define N_THREADS 3
#define N_CASES 40 // of each RepOp

// The control and status registers, status flags included.
struct registers {
    uint64_t control, status;
};

static struct registers read_registers(void) {
    struct registers r = {0};
#if defined(__x86_64__)
    uint32_t mxcsr;
    uint16_t control, status;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1\n\tfnstsw %2"
                     : "=m"(mxcsr), "=m"(control), "=m"(status));
    r = (struct registers){mxcsr, (uint64_t)control << 16 | (status & 0xFF)};
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=&r"(r.control), "=r"(r.status));
#else
    r.control = (uint64_t)fegetround();
#endif
    return r;
}

static bool same(struct registers a, struct registers b) {
    return a.control == b.control && a.status == b.status;
}

// Rounds down, flushes subnormals and, on x86-64, traps exceptions. Must not be set while the test
// itself computes.
static void set_hostile(void) {
    fesetround(FE_DOWNWARD);
#if defined(__x86_64__)
    uint32_t mxcsr;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    mxcsr |= 1u << 15 | 1u << 6; // FTZ, DAZ
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
    feenableexcept(FE_ALL_EXCEPT);
#elif defined(__aarch64__)
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    fpcr |= 1u << 24 | 1u << 19; // FZ, FZ16
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
#endif
}

static bool is_own(void) {
    const struct registers r = read_registers();
#if defined(__x86_64__)
    return (r.control & ~0x3Fu) == 0x1F80 && r.status >> 16 == 0x037F;
#else
    return r.control == 0;
#endif
}

// Scopes

static struct registers caller; // the caller's environment, which callbacks must see

static void inner_call(void) {
    REE_FLOAT_ENV_API();
    CHECK(is_own());
}

static int outer_call(bool changes);

static void callback(bool changes) {
    CHECK(same(read_registers(), caller));
    if (!changes) return;
    outer_call(false); // the program calls ree again
    CHECK(same(read_registers(), caller));
    fesetround(FE_UPWARD);
    caller = read_registers();
}

static volatile float one = 1, three = 3;

static int outer_call(bool changes) {
    REE_FLOAT_ENV_API();
    CHECK(is_own());
    inner_call();
    CHECK(is_own());
    {
        REE_FLOAT_ENV_CALLBACK();
        {
            REE_FLOAT_ENV_CALLBACK(); // no effect
            callback(changes);
        }
        CHECK(same(read_registers(), caller));
    }
    CHECK(is_own());
    volatile float third = one / three; // raises a flag
    (void)third;
    REE_FLOAT_ENV_WORKER();
    CHECK(is_own());
    return changes;
}

static void checks_scopes(void) {
    set_hostile();
    caller = read_registers();
    outer_call(true);
    CHECK(same(read_registers(), caller));
    struct ree_float_env env;
    ree_float_call_caller(&env);
    CHECK(same(read_registers(), caller));
    {
        REE_FLOAT_ENV_WORKER();
#if defined(__x86_64__)
        CHECK((read_registers().control & ~0x3Fu) == 0x1F80);
#else
        CHECK(is_own());
#endif
    }
    CHECK(same(read_registers(), caller));
    ree_float_env_set();
    CHECK(is_own());
    { // as in a thread that was started on behalf of a caller with that environment
        REE_FLOAT_ENV_THREAD(&env);
        CHECK(is_own());
        REE_FLOAT_ENV_CALLBACK();
        CHECK(read_registers().control == caller.control);
    }
    fesetenv(FE_DFL_ENV);
}

// Kernels

static void run(enum ree_repop op, uint64_t seed, const struct ree_cpu_context *ctx, bool hostile,
                struct test_case *c) {
    struct rng rng = {.state = seed * 1000003 + (uint64_t)op, .host = true};
    if (!case_generators[op](&rng, c)) return;
    struct ree_error err;
    void *operands[REE_MAX_OPERANDS];
    memcpy(operands, c->contents, sizeof operands);
    if (hostile) set_hostile();
    const struct registers before = read_registers();
    {
        REE_FLOAT_ENV_API();
        // Cases with an index out of range return an error.
        ree_cpu_run_dispatch(ctx, &c->dispatch, operands, &err);
    }
    const struct registers after = read_registers();
    if (hostile) fesetenv(FE_DFL_ENV);
    CHECK_MSG(same(before, after), "%s, seed %u: another environment", ree_repop_name(op),
              (unsigned)seed);
}

static void checks_kernels(void) {
    static struct ree_cpu_scratch scratch[N_THREADS];
    const struct ree_cpu_context alone = {
        .n_threads = 1, .isa = ree_cpu_isa_best(), .scratch = scratch};
    const struct ree_cpu_context team = {
        .n_threads = N_THREADS, .isa = ree_cpu_isa_best(), .scratch = scratch, .thread_grain = 1};
    struct registers before[N_THREADS] = {0}, after[N_THREADS] = {0};
    int n_before = 0, n_after = 0; // threads of the team
#pragma omp parallel num_threads(N_THREADS)
    if (omp_get_thread_num() > 0) {
        set_hostile();
        before[omp_get_thread_num()] = read_registers();
    } else {
        n_before = omp_get_num_threads();
    }
    for (uint32_t op = 0; op < REE_N_REPOPS; op++) {
        for (uint64_t seed = 1; seed <= N_CASES; seed++) {
            struct test_case right = {0}, c = {0};
            run((enum ree_repop)op, seed, &alone, false, &right);
            run((enum ree_repop)op, seed, &team, true, &c);
            for (uint32_t i = 0; i < c.dispatch.n_operands; i++)
                CHECK_MSG(memcmp(c.contents[i], right.contents[i], c.dispatch.operands[i].size) ==
                              0,
                          "%s, seed %u: other bits", ree_repop_name(op), (unsigned)seed);
            test_case_finish(&right);
            test_case_finish(&c);
        }
    }
#pragma omp parallel num_threads(N_THREADS)
    {
        after[omp_get_thread_num()] = read_registers();
        if (omp_get_thread_num() == 0) n_after = omp_get_num_threads();
    }
    REQUIRE(n_before == N_THREADS && n_after == N_THREADS);
    for (uint32_t t = 1; t < N_THREADS; t++)
        CHECK_MSG(same(before[t], after[t]), "thread %u has another environment", t);
    for (uint32_t t = 0; t < N_THREADS; t++)
        ree_cpu_scratch_finish(&scratch[t]);
}

int main(void) {
    // Otherwise LLVM's OpenMP library gives its threads the environment of the thread that opens a
    // region, which would hide whether ree changes theirs. The library reads this variable when the
    // first region opens.
    setenv("KMP_INHERIT_FP_CONTROL", "0", 1);
    checks_scopes();
    checks_kernels();
    return test_finish();
}
