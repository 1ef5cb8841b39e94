// Random cases of reduce on the CPU give the reference's bytes on every instruction set and with
// any number of threads, and write nothing outside their outputs.
#include "run_cpu_cases.h"
#include "test.h"

int main(void) {
    long n_runs;
    CHECK(run_cpu_cases(REE_REPOP_REDUCE, 1500, &n_runs) == 0);
    CHECK(n_runs >= 1500 * 3);
    return test_finish();
}
