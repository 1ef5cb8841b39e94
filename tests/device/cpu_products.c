// Random cases of matmul and conv on the CPU, with random layouts, types and epilogues, give the
// reference's bytes on every instruction set and with any number of threads, and write nothing
// outside their outputs.
#include "cases.h"
#include "run_cpu_cases.h"
#include "test.h"

// Optional argument: divisor of the numbers of cases, for an emulated processor. Each case runs in
// at least 3 ways.
int main(int argc, char **argv) {
    const uint32_t divisor = argc > 1 ? (uint32_t)atoi(argv[1]) : TEST_SANITIZED ? 4 : 1;
    const uint32_t many = 400 / divisor, some = 200 / divisor, few = 60 / divisor;
    long n_runs;
    CHECK(run_cpu_cases(REE_REPOP_MATMUL, many, &n_runs) == 0);
    CHECK(n_runs >= many * 3L);
    CHECK(run_cpu_cases_of(case_matmul_int8, REE_REPOP_MATMUL, some, &n_runs) == 0);
    CHECK(n_runs >= some * 3L);
    CHECK(run_cpu_cases_of(case_matmul_blocks, REE_REPOP_MATMUL, few, &n_runs) == 0);
    CHECK(n_runs >= few * 3L);
    CHECK(run_cpu_cases_of(case_matmul_looked_up, REE_REPOP_MATMUL, 12, &n_runs) == 0);
    CHECK(n_runs >= 12 * 3);
    CHECK(run_cpu_cases(REE_REPOP_CONV, many, &n_runs) == 0);
    CHECK(n_runs >= many * 3L);
    return test_finish();
}
