// The CPU's self-test: every instruction set of this machine gives the recorded values; changed
// floating-point modes are noticed, whatever was found out without them, in this process or in one
// that left a record.
//
// Usage: cpu_selftest --record: prints the lines of src/device/cpu/selftest_recorded.inc.
#include "device/cpu/selftest.h"
#include "test.h"

#include <fenv.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

static struct ree_error err;

static void record(void) {
    for (size_t i = 0; i < ree_cpu_n_tests; i++) {
        char digest[33];
        const char *name = ree_cpu_tests[i].name;
        REQUIRE(ree_cpu_test_run(&ree_cpu_tests[i], REE_CPU_PORTABLE, digest, &err) == REE_OK);
        printf("{\"%s\", %s, \"%s\"},\n", name, name, digest);
    }
}

// As a library built with -ffast-math leaves them: subnormals are zero.
static void set_fast_modes(bool on) {
#if defined(__SSE__)
    const unsigned bits = 1u << 15 | 1u << 6; // FTZ, DAZ
    _mm_setcsr(on ? _mm_getcsr() | bits : _mm_getcsr() & ~bits);
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    control = on ? control | 1u << 24 : control & ~(uint64_t)(1u << 24); // FZ
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
#else
    fesetround(on ? FE_TOWARDZERO : FE_TONEAREST);
#endif
}

static enum ree_status open_once(const char *cache_dir) {
    const struct ree_device_options options = {.cache_dir = cache_dir, .n_threads = 1};
    struct ree_device *device = NULL;
    enum ree_status status = ree_cpu_device_open(&options, &device, &err);
    if (device) device->vtable->destroy(device);
    return status;
}

// The same in a new process, which knows only what the folder has.
static enum ree_status open_at_start(const char *cache_dir, bool fast) {
    fflush(NULL);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        set_fast_modes(fast);
        _exit(open_once(cache_dir));
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return (enum ree_status)WEXITSTATUS(status);
}

static void notices_modes(void) {
    char folder[] = "cpu-selftest-XXXXXX", path[512];
    REQUIRE(mkdtemp(folder) != NULL);
    CHECK(open_at_start("", false) == REE_OK);
    CHECK(open_at_start("", true) == REE_UNSUPPORTED);
    // With what a normal process left, and a normal one after a failure.
    CHECK(open_at_start(folder, true) == REE_UNSUPPORTED);
    CHECK(open_at_start(folder, false) == REE_OK);
    snprintf(path, sizeof path, "%s/cpu.tests", folder);
    CHECK(access(path, F_OK) == 0);
    CHECK(open_at_start(folder, true) == REE_UNSUPPORTED);
    CHECK(open_at_start(folder, false) == REE_OK);
    // In one process.
    for (int i = 0; i < 2; i++) {
        CHECK_MSG(open_once(folder) == REE_OK, "%s", err.message);
        set_fast_modes(true);
        enum ree_status status = open_once(folder);
        set_fast_modes(false);
        CHECK(status == REE_UNSUPPORTED);
        fesetround(FE_UPWARD);
        status = open_once(folder);
        fesetround(FE_TONEAREST);
        CHECK(status == REE_UNSUPPORTED);
    }
    CHECK(open_once(folder) == REE_OK);
    unlink(path);
    CHECK(rmdir(folder) == 0);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--record") == 0) {
        record();
        return 0;
    }
    for (int isa = 0; isa < REE_N_CPU_ISAS; isa++) {
        if (!ree_cpu_isa_available((enum ree_cpu_isa)isa)) continue;
        struct timespec begin, end;
        double total = 0;
        for (size_t i = 0; i < ree_cpu_n_tests; i++) {
            const struct ree_cpu_test *test = &ree_cpu_tests[i];
            char digest[33];
            clock_gettime(CLOCK_MONOTONIC, &begin);
            enum ree_status status = ree_cpu_test_run(test, (enum ree_cpu_isa)isa, digest, &err);
            clock_gettime(CLOCK_MONOTONIC, &end);
            double ms = (double)(end.tv_sec - begin.tv_sec) * 1e3 +
                        (double)(end.tv_nsec - begin.tv_nsec) * 1e-6;
            total += ms;
            if (argc > 1)
                printf("%s %s %.1f ms\n", ree_cpu_isa_name((enum ree_cpu_isa)isa), test->name, ms);
            CHECK_MSG(status == REE_OK && strcmp(digest, test->recorded) == 0, "%s, %s: %s",
                      ree_cpu_isa_name((enum ree_cpu_isa)isa), test->name,
                      status == REE_OK ? digest : err.message);
        }
        printf("%s: %.1f ms\n", ree_cpu_isa_name((enum ree_cpu_isa)isa), total);
    }
    notices_modes();
    return test_finish();
}
