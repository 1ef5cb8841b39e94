// Random cases of matmul and conv on the CPU, with random layouts, types and epilogues, give the
// reference's bytes on every instruction set and with any number of threads, and write nothing
// outside their outputs.
#include "cases.h"
#include "run_cpu_cases.h"
#include "test.h"

int main(void) {
    long n_runs;
    CHECK(run_cpu_cases(REE_REPOP_MATMUL, 400, &n_runs) == 0);
    CHECK(n_runs >= 400 * 3);
    CHECK(run_cpu_cases_of(case_matmul_int8, REE_REPOP_MATMUL, 200, &n_runs) == 0);
    CHECK(n_runs >= 200 * 3);
    CHECK(run_cpu_cases_of(case_matmul_blocks, REE_REPOP_MATMUL, 60, &n_runs) == 0);
    CHECK(n_runs >= 60 * 3);
    CHECK(run_cpu_cases_of(case_matmul_looked_up, REE_REPOP_MATMUL, 12, &n_runs) == 0);
    CHECK(n_runs >= 12 * 3);
    CHECK(run_cpu_cases(REE_REPOP_CONV, 400, &n_runs) == 0);
    CHECK(n_runs >= 400 * 3);
    return test_finish();
}
