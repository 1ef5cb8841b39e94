// Compares the CPU kernels of a RepOp with its reference implementation (reference.h).
#ifndef REE_TESTS_DEVICE_RUN_CPU_CASES_H
#define REE_TESTS_DEVICE_RUN_CPU_CASES_H

#include "repops/repop.h"

// Runs n random cases of `op` on every instruction set of this machine with 1, 2 and 3 threads;
// matmul and conv with and without packed weights. Compares all operands with the reference byte by
// byte, except outputs if an index is out of range, and checks that the bytes around them are
// unchanged. Prints the first differences. Sets *n_runs to the number of runs. Returns the number
// of runs that differed.
long run_cpu_cases(enum ree_repop op, uint32_t n, long *n_runs);
// The same for the cases of one generator (cases.h).
struct rng;
struct test_case;
long run_cpu_cases_of(bool (*generate)(struct rng *rng, struct test_case *out), enum ree_repop op,
                      uint32_t n, long *n_runs);

#endif
