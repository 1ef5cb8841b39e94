// The CPU's self-test: every instruction set of this machine gives the recorded values; a wrong
// value is noticed; results are kept for the next start.
//
// Usage: cpu_selftest --record: prints the lines of src/device/cpu/selftest_recorded.inc.
#include "device/cpu/selftest.h"
#include "test.h"

#include <stdio.h>
#include <time.h>

static struct ree_error err;

static void record(void) {
    for (size_t i = 0; i < ree_cpu_n_tests; i++) {
        char digest[33];
        const char *name = ree_cpu_tests[i].name;
        REQUIRE(ree_cpu_test_run(&ree_cpu_tests[i], REE_CPU_PORTABLE, digest, &err) == REE_OK);
        printf("{\"%s\", %s, \"%s\"},\n", name, name, digest);
    }
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
    return test_finish();
}
