// Compares a RepOp's CPU kernel with its reference.
#ifndef REE_TESTS_DEVICE_RUN_CPU_CASES_H
#define REE_TESTS_DEVICE_RUN_CPU_CASES_H

#include "repops/repop.h"

// Runs n random cases of `op` on every instruction set of this machine with 1, 2 and 3 threads,
// products with and without packed weights, and compares all operands byte by byte with the
// reference, and what lies round them with what was there. Prints the first differences. Returns
// the number of runs that differed, of *n_runs.
long run_cpu_cases(enum ree_repop op, uint32_t n, long *n_runs);

#endif
