// attention on the CPU gives the reference's bytes for random cases, on every instruction set and
// with any number of threads, and touches nothing else.
#include "run_cpu_cases.h"
#include "test.h"

int main(void) {
    long n_runs;
    CHECK(run_cpu_cases(REE_REPOP_ATTENTION, 500, &n_runs) == 0);
    CHECK(n_runs >= 500 * 3);
    return test_finish();
}
