// Random cases of map on the CPU give the reference's bytes on every instruction set and with any
// number of threads, and write nothing outside their outputs.
#include "cases.h"
#include "run_cpu_cases.h"
#include "test.h"

int main(void) {
    long n_runs;
    CHECK(run_cpu_cases(REE_REPOP_MAP, 600, &n_runs) == 0);
    CHECK(n_runs >= 600 * 3);
    CHECK(run_cpu_cases_of(case_map_looked_up, REE_REPOP_MAP, 24, &n_runs) == 0);
    CHECK(n_runs >= 24 * 3);
    CHECK(run_cpu_cases_of(case_map_of_constant, REE_REPOP_MAP, 4, &n_runs) == 0);
    CHECK(n_runs >= 4 * 3);
    return test_finish();
}
