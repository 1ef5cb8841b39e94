// The CPU's self-test:
// - Every instruction set of this machine gives the recorded values, whatever floating-point modes
//   the calling thread has. The modes do not change the verdict, and the self-test does not change
//   the modes.
// - A record counts only if it says "passed", and is written only if the caller allows it.
// - Without memory there is no verdict.
//
// Usage: cpu_selftest --record prints the lines of src/device/cpu/selftest_recorded.inc.
#include "device/cpu/selftest.h"
#include "test.h"

#include <errno.h>
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

static struct ree_error err;

// Replaces the allocator of the problems' operands, so that it can fail.
static bool has_memory = true;
static uint64_t n_allocations;
int posix_memalign(void **out, size_t alignment, size_t size) {
    n_allocations++;
    *out = has_memory ? aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                      : NULL;
    return *out ? 0 : ENOMEM;
}

static void record(void) {
    for (size_t i = 0; i < ree_cpu_n_tests; i++) {
        char digest[33];
        const char *name = ree_cpu_tests[i].name;
        REQUIRE(ree_cpu_test_run(&ree_cpu_tests[i], REE_CPU_PORTABLE, digest, &err) == REE_OK);
        printf("GROUP(%s, \"%s\")\n", name, digest);
    }
}

// Sets the modes that a library built with -ffast-math sets: subnormals are zero.
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
    const struct ree_device_options options = {
        .size = sizeof options, .cache_dir = cache_dir, .n_threads = 1};
    struct ree_device *device = NULL;
    enum ree_status status = ree_cpu_device_open(&options, &device, &err);
    if (device) device->vtable->destroy(device);
    return status;
}

// Returns what `what` returns in a new process, which knows only what is in the folder.
static int at_start(int (*what)(const char *folder), const char *folder) {
    fflush(NULL);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(what(folder));
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int open_fast(const char *cache_dir) {
    set_fast_modes(true);
    return (int)open_once(cache_dir);
}

// Executes a dispatch with a known result, without a device.
static bool execute_once(void) {
    float x[4] = {1, 2, 3, 4}, sum = 0;
    struct ree_dispatch d = {.op = REE_REPOP_REDUCE, .n_operands = 2, .n_outputs = 1};
    d.params.reduce = (struct ree_reduce_params){.kind = REE_REDUCE_SUM,
                                                 .dtype = REE_F32,
                                                 .n_outer = 1,
                                                 .n_reduce = 4,
                                                 .reduce_rank = 1,
                                                 .reduce_dims = {4},
                                                 .reduce_strides = {1}};
    return ree_cpu_execute(&d, (void *[]){x, &sum}, &err) == REE_OK && sum == 10;
}

// Opens a device that does not test the best instruction set, so that ree_cpu_execute must test it.
static bool open_portable(const char *cache_dir) {
    const struct ree_device_options options = {
        .size = sizeof options, .cache_dir = cache_dir, .n_threads = 1, .cpu_isa = "portable"};
    struct ree_device *device = NULL;
    if (ree_cpu_device_open(&options, &device, &err) != REE_OK) return false;
    device->vtable->destroy(device);
    return true;
}

static int execute_alone(const char *home) {
    setenv("XDG_CACHE_HOME", home, 1);
    return !execute_once();
}
static int execute_keeping_nothing(const char *home) {
    setenv("XDG_CACHE_HOME", home, 1);
    return !(open_portable(NULL) && open_portable("") && execute_once());
}
static int execute_keeping(const char *home) {
    setenv("XDG_CACHE_HOME", home, 1);
    return !(open_portable(NULL) && execute_once());
}

// Returns the size in bytes of the record in the default folder below `home`, and removes it.
static size_t record_size(const char *home, char *text, size_t size) {
    char path[512];
    snprintf(path, sizeof path, "%s/ree/cpu.tests", home);
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(text, 1, size, file) : 0;
    if (file) fclose(file);
    unlink(path);
    return n;
}

static void keeps_only_where_allowed(void) {
    char name[] = "cpu-selftest-XXXXXX", folder[512], text[4096];
    REQUIRE(mkdtemp(name) != NULL);
    char *home = realpath(name, NULL); // relative paths are ignored
    REQUIRE(home != NULL);
    CHECK(at_start(execute_alone, home) == 0);
    CHECK(record_size(home, text, sizeof text) == 0);
    CHECK(at_start(execute_keeping, home) == 0);
    const size_t all = record_size(home, text, sizeof text);
    CHECK(at_start(execute_keeping_nothing, home) == 0);
    const size_t portable = record_size(home, text, sizeof text);
    CHECK(portable > 0);
    if (ree_cpu_isa_best() == REE_CPU_PORTABLE)
        CHECK(all == portable);
    else
        CHECK(all > portable);
    snprintf(folder, sizeof folder, "%s/ree", home);
    CHECK(rmdir(folder) == 0 && rmdir(home) == 0);
    free(home);
}

// Returns whether opening a device runs self-tests; 2 if it fails.
static int tests_anew(const char *folder) {
    n_allocations = 0;
    if (open_once(folder) != REE_OK) return 2;
    return n_allocations > 0;
}

static void believes_only_what_passed(void) {
    char folder[] = "cpu-selftest-XXXXXX", path[512], text[4096];
    REQUIRE(mkdtemp(folder) != NULL);
    CHECK(at_start(tests_anew, folder) == 1);
    CHECK(at_start(tests_anew, folder) == 0);
    snprintf(path, sizeof path, "%s/cpu.tests", folder);
    FILE *file = fopen(path, "r+");
    REQUIRE(file != NULL);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    char *state = strstr(text, " passed");
    REQUIRE(state != NULL);
    rewind(file);
    fprintf(file, "%.*s failed%s", (int)(state - text), text, state + 7);
    fclose(file);
    CHECK(at_start(tests_anew, folder) == 1);
    unlink(path);
    CHECK(rmdir(folder) == 0);
}

static unsigned modes(void) {
#if defined(__SSE__)
    return _mm_getcsr();
#else
    return (unsigned)fegetround();
#endif
}

static void ignores_modes(void) {
    char folder[] = "cpu-selftest-XXXXXX", path[512];
    REQUIRE(mkdtemp(folder) != NULL);
    CHECK(at_start(open_fast, "") == REE_OK);
    // There is one record, whatever the floating-point modes of the process that wrote it.
    CHECK(at_start(open_fast, folder) == REE_OK);
    CHECK(at_start(tests_anew, folder) == 0);
    snprintf(path, sizeof path, "%s/cpu.tests", folder);
    CHECK(unlink(path) == 0);
    // The same within one process.
    set_fast_modes(true);
    fesetround(FE_UPWARD);
    const unsigned before = modes();
    CHECK_MSG(open_once(folder) == REE_OK, "%s", err.message);
    CHECK(execute_once());
    CHECK(modes() == before);
    fesetround(FE_TONEAREST);
    set_fast_modes(false);
    CHECK(open_once(folder) == REE_OK);
    unlink(path);
    CHECK(rmdir(folder) == 0);
}

static int open_without_memory(const char *cache_dir) {
    has_memory = false;
    bool refused =
        open_once(cache_dir) == REE_NO_MEMORY && !ree_cpu_isa_verdict(ree_cpu_isa_best());
    has_memory = true;
    return !(refused && open_once(cache_dir) == REE_OK);
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
    CHECK(at_start(open_without_memory, "") == 0);
    keeps_only_where_allowed();
    believes_only_what_passed();
    ignores_modes();
    return test_finish();
}
